/**
 * Handles the notifications of servers.
 *
 * @module
 */

import { messageOf } from "../../core/errors.ts";
import type { CallClient } from "../../protocol/call.ts";
import { type JsonObject, memberOf, textOf } from "../../core/json.ts";
import { notificationMembers } from "../../protocol/message_members.ts";
import { withoutNamed, withoutPmlMeta } from "../../protocol/result_members.ts";
import type { ListName } from "../../protocol/lists.ts";
import { resultOf } from "./_answers.ts";
import { readTaskState, type RunningTasks } from "./_tasks.ts";
import type { UpstreamsHost } from "./upstreams_host.ts";

/** Removes cached lists of a server. Throws if its definition cannot be used. */
type ForgetLists = (server: string, lists: readonly ListName[]) => void;

type NoticesHost = Pick<UpstreamsHost, "clients" | "logServer">;

/** The lists that have changed, by notification. */
const CHANGES: Readonly<Record<string, readonly ListName[]>> = {
  "notifications/tools/list_changed": ["tools"],
  "notifications/resources/list_changed": ["resources", "resourceTemplates", "skills"],
  "notifications/prompts/list_changed": ["prompts"],
};

/** Passes on notifications of servers. */
export class Notices {
  readonly #host: NoticesHost;
  readonly #tasks: RunningTasks;
  readonly #forget: ForgetLists;

  /** Takes the collaborators. */
  constructor(host: NoticesHost, tasks: RunningTasks, forget: ForgetLists) {
    this.#host = host;
    this.#tasks = tasks;
    this.#forget = forget;
  }

  /** Handles one notification of a server. */
  take(
    server: string,
    { method, params, members, client }: {
      readonly method: string;
      readonly params: JsonObject;
      /** The members next to `method` and `params` that JSON-RPC does not define. */
      readonly members?: JsonObject | undefined;
      /** The client of the request that it belongs to, if that is known. */
      readonly client?: CallClient | undefined;
    },
  ): void {
    const { clients } = this.#host;
    if (method === "notifications/message") return clients.logged(params, members);
    if (method === "notifications/elicitation/complete") return clients.elicited(params, members);
    if (method === "notifications/resources/updated") {
      const others = notificationMembers(withoutNamed(params, ["uri"]), members);
      return clients.updated(server, textOf(params.uri), others);
    }
    if (method === "notifications/tasks/status" || method === "notifications/tasks") {
      return this.#task(server, params);
    }
    const lists = memberOf(CHANGES, method);
    if (lists === undefined) {
      // It acknowledges a subscription of PML itself.
      if (method === "notifications/subscriptions/acknowledged") return;
      return clients.notified(server, { method, params, members, client });
    }
    // The server may have started before its definition was read again.
    try {
      // guard: listed-anew
      this.#forget(server, lists);
    } catch {
      // A value is missing, so no list is cached. Listing it reports the error.
    }
    const others = notificationMembers(withoutPmlMeta(params), members);
    for (const [at, list] of lists.entries()) {
      // Clients are notified of the members once, although there are two lists of resources.
      clients.changed(server, list, at === 0 ? others : undefined);
    }
  }

  /** Passes on the state of a task. A state over the limits is dropped: clients can request it. */
  #task(server: string, params: JsonObject): void {
    const state = readTaskState(params);
    if (state === undefined) return;
    this.#tasks.update(server, state);
    try {
      const result = resultOf(params, server, { method: "tasks/get", extensions: () => [] });
      this.#host.clients.task(server, result as unknown as JsonObject); // plain JSON
    } catch (error) {
      this.#host.logServer(server, "debug", `A notification was dropped: ${messageOf(error)}`);
    }
  }
}

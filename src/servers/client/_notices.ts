/**
 * Passes the notifications of servers on to the clients, and applies them to the cached lists.
 *
 * @module
 */

import { messageOf } from "../../core/errors.ts";
import type { CallClient } from "../../protocol/call.ts";
import { type JsonObject, memberOf, textOf } from "../../core/json.ts";
import { notificationMembers } from "../../protocol/message_members.ts";
import { withoutNamed, withoutPmlMeta } from "../../protocol/result_members.ts";
import type { ListName } from "../../protocol/lists.ts";
import { resultOf } from "./_server_call.ts";
import { readTaskState, type RunningTasks } from "./_tasks.ts";
import type { UpstreamsHost } from "./upstreams_host.ts";

/** Removes lists of a server from the cache. Throws if its definition cannot be used. */
type ForgetLists = (server: string, lists: readonly ListName[]) => void;

type NoticesHost = Pick<UpstreamsHost, "clients" | "logServer">;

/** The lists that have changed, by the method of the notification. */
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

  /** `forget` removes lists from the cache. */
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
    if (method === "notifications/message") return clients.onLog(params, members);
    if (method === "notifications/elicitation/complete") {
      return clients.onElicitationComplete(params, members);
    }
    if (method === "notifications/resources/updated") {
      const others = notificationMembers(withoutNamed(params, ["uri"]), members);
      return clients.onResourceUpdated(server, textOf(params.uri), others);
    }
    if (method === "notifications/tasks/status" || method === "notifications/tasks") {
      return this.#passTaskState(server, params);
    }
    const lists = memberOf(CHANGES, method);
    if (lists === undefined) {
      // This notification answers a subscription of PML itself, so no client gets it.
      if (method === "notifications/subscriptions/acknowledged") return;
      return clients.onNotification(server, { method, params, members, client });
    }
    try {
      // guard: listed-anew
      this.#forget(server, lists);
    } catch {
      // The definition may have changed since the server started: if the value of a variable is
      // missing now, no list is cached. The next request of a list reports the error.
    }
    const others = notificationMembers(withoutPmlMeta(params), members);
    for (const [index, list] of lists.entries()) {
      // Passes the other members on once, although one notification can be about several lists.
      clients.onListChanged(server, list, index === 0 ? others : undefined);
    }
  }

  /** Passes on the state of a task. Drops a state over the limits: clients can still request it. */
  #passTaskState(server: string, params: JsonObject): void {
    const state = readTaskState(params);
    if (state === undefined) return;
    this.#tasks.update(server, state);
    try {
      const result = resultOf(params, server, { method: "tasks/get", extensions: () => [] });
      this.#host.clients.onTask(server, result as unknown as JsonObject); // it is plain JSON
    } catch (error) {
      this.#host.logServer(server, "debug", `A notification was dropped: ${messageOf(error)}`);
    }
  }
}

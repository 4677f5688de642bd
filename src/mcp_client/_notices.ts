/**
 * What servers tell by themselves, and not in an answer.
 *
 * @module
 */

import { type JsonObject, textOf } from "../core/json.ts";
import type { ListName } from "../core/lists.ts";
import { resultOf } from "./_answers.ts";
import { type RunningTasks, stateOf } from "./_tasks.ts";
import type { UpstreamEvents } from "./upstream_events.ts";

/** Who needs to know what servers tell. */
export interface NoticesOptions {
  readonly told: UpstreamEvents;
  readonly tasks: RunningTasks;
  /** Has lists of a server asked for again; throws where its definition cannot be used. */
  readonly forget: (server: string, lists: readonly ListName[]) => void;
  readonly onLog: (server: string, level: "debug", text: string) => void;
}

/** Which lists a notification says have changed. */
const CHANGES: Readonly<Record<string, readonly ListName[]>> = {
  "notifications/tools/list_changed": ["tools"],
  "notifications/resources/list_changed": ["resources", "resourceTemplates"],
  "notifications/prompts/list_changed": ["prompts"],
};

/** Passes on what servers tell. */
export class Notices {
  readonly #options: NoticesOptions;

  /** Takes who needs to know. */
  constructor(options: NoticesOptions) {
    this.#options = options;
  }

  /** Takes one notification of a server. */
  take(
    server: string,
    { method, params }: { readonly method: string; readonly params: JsonObject },
  ): void {
    const { told, forget } = this.#options;
    if (method === "notifications/message") return told.logged(params);
    if (method === "notifications/elicitation/complete") return told.elicited(params);
    if (method === "notifications/resources/updated") {
      return told.updated(server, textOf(params.uri));
    }
    if (method === "notifications/tasks/status" || method === "notifications/tasks") {
      return this.#task(server, params);
    }
    const lists = CHANGES[method] ?? [];
    // It may run since before its definition was read again, and what is known is known of that.
    try {
      forget(server, lists);
    } catch {
      // A value is missing, and nothing is kept of it: who asks for its list is told.
    }
    for (const list of lists) told.changed(server, list);
  }

  /** Takes how a task stands; one that is more than it may be is asked for by who wants it. */
  #task(server: string, params: JsonObject): void {
    const { told, tasks, onLog } = this.#options;
    const state = stateOf(params);
    if (state === undefined) return;
    tasks.heard(server, state);
    try {
      const result = resultOf(params, { name: server, method: "tasks/get" });
      told.task?.(server, result as unknown as JsonObject); // plain JSON
    } catch (error) {
      onLog(server, "debug", `A notification was passed over: ${error}`);
    }
  }
}

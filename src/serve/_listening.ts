/**
 * The resources and tasks that a client of the newest revision listens for. The SDK handles these
 * requests without telling anybody, and does not support tasks.
 *
 * @module
 */

import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { parseExact } from "../core/exact_json.ts";
import { isObject, type JsonObject, objectOf, textsOf } from "../core/json.ts";
import type { ReadLine } from "../protocol/message.ts";

type Request = Extract<ReadLine, { readonly kind: "request" }>;

/** Everything that a client listens for. */
export interface Subscriptions {
  /** The URIs of resources. */
  readonly uris: readonly string[];
  /** The ids of tasks. */
  readonly tasks: readonly string[];
}

/** Where a notification names the request that listens for it. */
export const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";

/** Keeps the open `subscriptions/listen` requests. */
export class Listening {
  readonly #open = new Map<string, Subscriptions>();

  /** Reads a request. Returns everything that the client listens for now, if that changed. */
  take({ message, id }: Request): Subscriptions | undefined {
    if (!("method" in message)) return undefined;
    const { method, params } = message;
    if (method !== "subscriptions/listen" || !isObject(params)) return undefined;
    const { resourceSubscriptions, taskIds } = objectOf(params.notifications);
    const [uris, tasks] = [textsOf(resourceSubscriptions), textsOf(taskIds)];
    if (uris.length + tasks.length === 0) return undefined;
    this.#open.set(id, { uris, tasks });
    return this.#all();
  }

  /** Removes a request that ended. Returns the same. */
  end(id: string): Subscriptions | undefined {
    return this.#open.delete(id) ? this.#all() : undefined;
  }

  /**
   * Returns the messages to send for a notification: one for each request that listens for its
   * task, or the notification itself.
   */
  messagesFor(message: JSONRPCMessage, isTask: (id: string) => boolean): readonly unknown[] {
    if (!("method" in message)) return [message];
    const params = objectOf(message.params);
    const put = (more: object) => ({ ...message, params: { ...params, ...more } });
    if (message.method === "notifications/tasks") {
      return [...this.#open].filter(([, { tasks }]) => tasks.includes(String(params.taskId)))
        .map(([id]) => put({ _meta: { ...metaOf(params), [SUBSCRIPTION]: parseExact(id) } }));
    }
    if (message.method !== "notifications/subscriptions/acknowledged") return [message];
    const { tasks = [] } = this.#open.get(JSON.stringify(metaOf(params)[SUBSCRIPTION])) ?? {};
    const taskIds = tasks.filter(isTask);
    if (taskIds.length === 0) return [message];
    return [put({ notifications: { ...objectOf(params.notifications), taskIds } })];
  }

  #all(): Subscriptions {
    const all = [...this.#open.values()];
    return {
      uris: [...new Set(all.flatMap(({ uris }) => uris))],
      tasks: [...new Set(all.flatMap(({ tasks }) => tasks))],
    };
  }
}

function metaOf({ _meta }: JsonObject): JsonObject {
  return objectOf(_meta);
}

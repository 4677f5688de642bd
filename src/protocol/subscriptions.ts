/**
 * The `subscriptions/listen` requests of a client of the stateless revision.
 *
 * @module
 */

import { parseExact } from "../core/exact_json.ts";
import { isObject, type JsonObject, objectOf, textsOf } from "../core/json.ts";
import { ERROR, type ErrorObject } from "./errors.ts";

/** The resources and tasks that a client listens for. */
export interface Listened {
  /** The URIs of resources. */
  readonly uris: readonly string[];
  /** The ids of tasks. */
  readonly tasks: readonly string[];
}

/** The member of `_meta` in which a notification names the request that listens for it. */
export const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";

/** How many requests of one client may be open. */
const MOST = 1_024;

const LISTS: Readonly<Record<string, string>> = {
  toolsListChanged: "notifications/tools/list_changed",
  promptsListChanged: "notifications/prompts/list_changed",
  resourcesListChanged: "notifications/resources/list_changed",
};

/** One open request. */
interface Subscription extends Listened {
  /** The notifications about lists. */
  readonly methods: readonly string[];
}

/** A notification. */
export interface Notification {
  readonly method: string;
  readonly params?: unknown;
  /** Members next to `method` and `params`, which the client gets if it takes them. */
  readonly members?: JsonObject | undefined;
}

/** Keeps the open requests of one client. */
export class ListenRequests {
  readonly #open = new Map<string, Subscription>();
  readonly #isTask: (id: string) => boolean;

  /** Takes a function that returns whether there is a task with an id. */
  constructor(isTask: (id: string) => boolean) {
    this.#isTask = isTask;
  }

  /** The resources and tasks that the client listens for in any request. */
  get listened(): Listened {
    const all = [...this.#open.values()];
    return {
      uris: [...new Set(all.flatMap(({ uris }) => uris))],
      tasks: [...new Set(all.flatMap(({ tasks }) => tasks))],
    };
  }

  /** Opens a request. `id` is its id as JSON. Returns why it is refused; undefined if it is not. */
  open(id: string, { notifications }: JsonObject): ErrorObject | undefined {
    if (this.#open.size >= MOST) {
      return { code: ERROR.internalError, message: "Subscription limit reached" };
    }
    if (!isFilter(notifications)) {
      const why = "notifications must be an object with booleans and lists of texts";
      return { code: ERROR.invalidParams, message: `Invalid params: ${why}` };
    }
    const { resourceSubscriptions, taskIds } = notifications;
    this.#open.set(id, {
      methods: Object.keys(LISTS).filter((name) => notifications[name] === true)
        .map((name) => LISTS[name] ?? ""),
      uris: textsOf(resourceSubscriptions),
      tasks: textsOf(taskIds),
    });
    return undefined;
  }

  /** Returns the notification that acknowledges a request. */
  acknowledgement(id: string): Notification {
    const { methods = [], uris = [], tasks = [] } = this.#open.get(id) ?? {};
    const taskIds = tasks.filter(this.#isTask);
    const notifications = {
      ...Object.fromEntries(
        Object.entries(LISTS).filter(([, method]) => methods.includes(method))
          .map(([name]) => [name, true]),
      ),
      ...uris.length > 0 && { resourceSubscriptions: uris },
      ...taskIds.length > 0 && { taskIds },
    };
    const acknowledged = { method: "notifications/subscriptions/acknowledged" };
    return stamped({ ...acknowledged, params: { notifications } }, id);
  }

  /** Returns whether a request listens for nothing. */
  isIdle(id: string): boolean {
    const { methods = [], uris = [], tasks = [] } = this.#open.get(id) ?? {};
    return methods.length + uris.length + tasks.length === 0;
  }

  /** Closes a request. Returns false if none with this id is open. */
  close(id: string): boolean {
    return this.#open.delete(id);
  }

  /**
   * Returns the notifications to send: one copy for each request that listens for this one, or the
   * notification itself if it is of a kind that needs no request.
   */
  copiesOf(notification: Notification): readonly Notification[] {
    const wants = this.#listenerOf(notification);
    if (wants === undefined) return [notification];
    return [...this.#open].filter(([, one]) => wants(one))
      .map(([id]) => stamped(notification, id));
  }

  #listenerOf({ method, params }: Notification): ((one: Subscription) => boolean) | undefined {
    const { uri, taskId } = objectOf(params);
    if (method === "notifications/resources/updated") {
      return ({ uris }) => uris.includes(String(uri));
    }
    if (method === "notifications/tasks") return ({ tasks }) => tasks.includes(String(taskId));
    if (!Object.values(LISTS).includes(method)) return undefined;
    return ({ methods }) => methods.includes(method);
  }
}

function isFilter(value: unknown): value is JsonObject {
  if (!isObject(value)) return false;
  const { resourceSubscriptions = [], taskIds = [] } = value;
  return [resourceSubscriptions, taskIds].every(isTexts) &&
    Object.keys(LISTS).every((name) => ["undefined", "boolean"].includes(typeof value[name]));
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

function stamped({ params, ...notification }: Notification, id: string): Notification {
  const { _meta, ...rest } = objectOf(params);
  return {
    ...notification,
    params: { ...rest, _meta: { ...objectOf(_meta), [SUBSCRIPTION]: parseExact(id) } },
  };
}

/**
 * The `subscriptions/listen` requests of a client of the stateless revision.
 *
 * @module
 */

import { parseExact } from "../core/exact_json.ts";
import { isObject, type JsonObject, objectOf, textsOf } from "../core/json.ts";
import { ERROR, type ErrorObject } from "./errors.ts";

/** The resources and tasks that a client listens for. */
export interface ListenedItems {
  /** The URIs of resources. */
  readonly uris: readonly string[];
  /** The ids of tasks. */
  readonly tasks: readonly string[];
}

/**
 * The key in the `_meta` of a notification. Its value is the id of the request that listens for the
 * notification.
 */
export const SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId";

/** The maximum number of open `subscriptions/listen` requests of one client. */
const OPEN_MAX = 1_024;

/** The notifications about lists, by the members of the param `notifications` that request them. */
const LIST_NOTIFICATIONS: Readonly<Record<string, string>> = {
  toolsListChanged: "notifications/tools/list_changed",
  promptsListChanged: "notifications/prompts/list_changed",
  resourcesListChanged: "notifications/resources/list_changed",
};

/** The notifications that one open request listens for. */
interface Subscription extends ListenedItems {
  /** The notifications about lists. */
  readonly methods: readonly string[];
}

/** A notification. */
export interface Notification {
  readonly method: string;
  readonly params?: unknown;
  /** Members that JSON-RPC does not define. Only a client that sends such members gets them. */
  readonly members?: JsonObject | undefined;
}

/** Keeps the open requests of one client. */
export class ListenRequests {
  readonly #openRequests = new Map<string, Subscription>();
  readonly #isTask: (id: string) => boolean;

  /** Takes a function that returns whether there is a task with an id. */
  constructor(isTask: (id: string) => boolean) {
    this.#isTask = isTask;
  }

  /** The resources and tasks that the client listens for in any request. */
  get listened(): ListenedItems {
    const all = [...this.#openRequests.values()];
    return {
      uris: [...new Set(all.flatMap(({ uris }) => uris))],
      tasks: [...new Set(all.flatMap(({ tasks }) => tasks))],
    };
  }

  /** Opens a request. `id` is its id as JSON. Returns why it is refused; undefined if it is not. */
  open(id: string, { notifications }: JsonObject): ErrorObject | undefined {
    if (this.#openRequests.size >= OPEN_MAX) {
      return { code: ERROR.internalError, message: "Subscription limit reached" };
    }
    if (!isNotificationsParam(notifications)) {
      const why = "notifications must be an object with booleans and arrays of strings";
      return { code: ERROR.invalidParams, message: `Invalid params: ${why}` };
    }
    const { resourceSubscriptions, taskIds } = notifications;
    this.#openRequests.set(id, {
      methods: Object.keys(LIST_NOTIFICATIONS).filter((name) => notifications[name] === true)
        .map((name) => LIST_NOTIFICATIONS[name] ?? ""),
      uris: textsOf(resourceSubscriptions),
      tasks: textsOf(taskIds),
    });
    return undefined;
  }

  /** Returns the notification that acknowledges a request. */
  acknowledgement(id: string): Notification {
    const { methods = [], uris = [], tasks = [] } = this.#openRequests.get(id) ?? {};
    const taskIds = tasks.filter(this.#isTask);
    const notifications = {
      ...Object.fromEntries(
        Object.entries(LIST_NOTIFICATIONS).filter(([, method]) => methods.includes(method))
          .map(([name]) => [name, true]),
      ),
      ...uris.length > 0 && { resourceSubscriptions: uris },
      ...taskIds.length > 0 && { taskIds },
    };
    const acknowledgement = { method: "notifications/subscriptions/acknowledged" };
    return withSubscriptionId({ ...acknowledgement, params: { notifications } }, id);
  }

  /** Returns whether a request listens for nothing. */
  isIdle(id: string): boolean {
    const { methods = [], uris = [], tasks = [] } = this.#openRequests.get(id) ?? {};
    return methods.length + uris.length + tasks.length === 0;
  }

  /** Closes a request. Returns false if none with this id is open. */
  close(id: string): boolean {
    return this.#openRequests.delete(id);
  }

  /**
   * Returns the notifications to send: one copy for each request that listens for `notification`,
   * or `notification` itself if clients get it without a request.
   */
  copiesOf(notification: Notification): readonly Notification[] {
    const listensFor = this.#testFor(notification);
    if (listensFor === undefined) return [notification];
    return [...this.#openRequests].filter(([, subscription]) => listensFor(subscription))
      .map(([id]) => withSubscriptionId(notification, id));
  }

  /**
   * Returns a test whether a request listens for a notification; undefined if clients get the
   * notification without a request.
   */
  #testFor({ method, params }: Notification): ((one: Subscription) => boolean) | undefined {
    const { uri, taskId } = objectOf(params);
    if (method === "notifications/resources/updated") {
      return ({ uris }) => uris.includes(String(uri));
    }
    if (method === "notifications/tasks") return ({ tasks }) => tasks.includes(String(taskId));
    if (!Object.values(LIST_NOTIFICATIONS).includes(method)) return undefined;
    return ({ methods }) => methods.includes(method);
  }
}

function isNotificationsParam(value: unknown): value is JsonObject {
  if (!isObject(value)) return false;
  const { resourceSubscriptions = [], taskIds = [] } = value;
  return [resourceSubscriptions, taskIds].every(isTexts) &&
    Object.keys(LIST_NOTIFICATIONS).every((name) =>
      ["undefined", "boolean"].includes(typeof value[name])
    );
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function withSubscriptionId({ params, ...notification }: Notification, id: string): Notification {
  const { _meta, ...rest } = objectOf(params);
  return {
    ...notification,
    params: { ...rest, _meta: { ...objectOf(_meta), [SUBSCRIPTION_KEY]: parseExact(id) } },
  };
}

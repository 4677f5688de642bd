/**
 * The revisions of MCP that PML speaks, and the request methods of each kind.
 *
 * @module
 */

import { type JsonObject, memberOf } from "../core/json.ts";

/** The latest revision that begins with `initialize`. PML offers it to servers. */
export const HANDSHAKE_REVISION = "2025-11-25";

/** The latest revision without `initialize`. PML uses it with servers that support it. */
export const STATELESS_REVISION = "2026-07-28";

/** The revisions that begin with `initialize`, newest first. */
export const HANDSHAKE_REVISIONS: readonly string[] = [
  HANDSHAKE_REVISION,
  "2025-06-18",
  "2025-03-26",
  "2024-11-05",
  "2024-10-07",
];

/** The revisions without `initialize`, whose requests each name their revision, newest first. */
export const STATELESS_REVISIONS: readonly string[] = [STATELESS_REVISION];

/** Whether a connection begins with `initialize`, or each request names its revision. */
export type RevisionKind = "handshake" | "stateless";

const SHARED_METHODS = [
  "tools/list",
  "tools/call",
  "prompts/list",
  "prompts/get",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "completion/complete",
] as const;

/** The request methods of the specification by kind. */
const METHODS_BY_KIND = {
  handshake: [
    ...SHARED_METHODS,
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "tasks/get",
    "tasks/result",
    "tasks/list",
    "tasks/cancel",
    "sampling/createMessage",
    "elicitation/create",
    "roots/list",
  ],
  stateless: [
    ...SHARED_METHODS,
    "server/discover",
    "subscriptions/listen",
    // The tasks extension has these names again.
    "tasks/get",
    "tasks/cancel",
  ],
} as const;
const METHODS: Readonly<Record<RevisionKind, readonly string[]>> = METHODS_BY_KIND;

/** A request method of the specification. A test compares them with the SDK's. */
export type DefinedMethod = typeof METHODS_BY_KIND[RevisionKind][number];

/** The methods of notifications in the specification, in all revisions and both directions. */
const NOTIFICATIONS: ReadonlySet<string> = new Set([
  "notifications/cancelled",
  "notifications/initialized",
  "notifications/progress",
  "notifications/message",
  "notifications/roots/list_changed",
  "notifications/tools/list_changed",
  "notifications/prompts/list_changed",
  "notifications/resources/list_changed",
  "notifications/resources/updated",
  "notifications/elicitation/complete",
  "notifications/subscriptions/acknowledged",
  "notifications/tasks/status",
  // This notification belongs to the tasks extension.
  "notifications/tasks",
]);

/** Returns whether a revision defines a method. All other methods may belong to extensions. */
export function isDefinedMethod(method: string): boolean {
  return METHODS.handshake.includes(method) || METHODS.stateless.includes(method) ||
    NOTIFICATIONS.has(method);
}

/** The methods that only the other kind has. */
const OTHER_KIND_METHODS: Readonly<Record<RevisionKind, ReadonlySet<string>>> = {
  handshake: new Set(METHODS.stateless.filter((method) => !METHODS.handshake.includes(method))),
  stateless: new Set(METHODS.handshake.filter((method) => !METHODS.stateless.includes(method))),
};

/**
 * Returns whether a method belongs to the other kind only, so that it does not exist in this one.
 * Methods that no revision defines may belong to an extension.
 */
export function isOfOtherKind(method: string, kind: RevisionKind): boolean {
  return OTHER_KIND_METHODS[kind].has(method);
}

/** The request that subscribes to notifications, in 2026-07-28. */
export const LISTEN = "subscriptions/listen";

/** The part of PML that answers a request of 2026-07-28. */
export type StatelessPart = "discover" | "listen" | "connection";

/**
 * Returns the part of PML that answers a method in 2026-07-28; undefined if only older revisions have
 * the method.
 */
export function statelessPart(method: string): StatelessPart | undefined {
  if (isOfOtherKind(method, "stateless")) return undefined;
  if (method === "server/discover") return "discover";
  return method === LISTEN ? "listen" : "connection";
}

/** The params that the header `Mcp-Name` repeats, by method. */
const NAMED_PARAMS: Readonly<Record<string, string>> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
  "tasks/get": "taskId",
  "tasks/update": "taskId",
  "tasks/cancel": "taskId",
};

/** Returns the value of the header `Mcp-Name` for a request; undefined if there is none. */
export function nameHeaderOf(method: string, params: JsonObject): unknown {
  const param = memberOf(NAMED_PARAMS, method);
  return param === undefined ? undefined : params[param];
}

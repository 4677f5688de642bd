/**
 * Removes members from the results of servers that a client could read differently from PML.
 *
 * @module
 */

import { isObject } from "../core/json.ts";
import { META } from "./envelope.ts";

/** The members of results in the revisions of the protocol, and of their tasks. */
const PROTOCOL_MEMBERS = new Set([
  ...["_meta", "resultType", "inputRequests", "requestState", "ttlMs", "cacheScope"],
  ...["content", "structuredContent", "isError", "task", "messages", "description", "contents"],
  ...["completion", "nextCursor", "tools", "prompts", "resources", "resourceTemplates", "tasks"],
  ...["skills", "skill"],
  ...["taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt", "ttl", "pollInterval"],
  ...["pollIntervalMs", "result", "error"],
]);
/** The names of these members with folded case. */
const FOLDED_MEMBERS = new Set([...PROTOCOL_MEMBERS].map(foldCase));
/** The prefix of the members of `_meta` that only PML writes. */
const PML_PREFIX = "pml/";
/**
 * The member of `_meta` in which PML states its own name to clients. A server of the newest revision
 * states its name there, which clients must not take for PML's name.
 */
const SERVER_NAME_KEY = foldCase(META.server);

/**
 * Returns a result without forged members; the same object if it has none. Members are forged if
 * their names differ from names of the protocol only in case, because some parsers ignore case (for
 * example Go's). Members `pml/*` in the `_meta` of the result and of its blocks are forged, too:
 * otherwise a server could mark a block as a remark of PML, which plans and code do not get.
 */
export function withoutForged<T extends object>(result: T): T {
  const names = Object.keys(result).filter(isForged);
  const rest = withoutPmlMeta(names.length === 0 ? result : omit(result, names));
  const { content } = rest as { readonly content?: unknown };
  if (!Array.isArray(content) || !content.some(hasPmlMeta)) return rest;
  return {
    ...rest,
    content: content.map((block) => hasPmlMeta(block) ? withoutPmlMeta(block) : block),
  };
}

/** Returns an object without the members of PML in its `_meta`: the same object if it has none. */
export function withoutPmlMeta<T extends object>(object: T): T {
  if (!hasPmlMeta(object)) return object;
  const { _meta } = object;
  return { ...object, _meta: omit(_meta, Object.keys(_meta).filter(isPmlMember)) };
}

function hasPmlMeta(value: unknown): value is { readonly _meta: object } {
  return isObject(value) && isObject(value._meta) && Object.keys(value._meta).some(isPmlMember);
}

function isForged(name: string): boolean {
  return !PROTOCOL_MEMBERS.has(name) && FOLDED_MEMBERS.has(foldCase(name));
}

function isPmlMember(name: string): boolean {
  const foldedName = foldCase(name);
  return foldedName.startsWith(PML_PREFIX) || foldedName === SERVER_NAME_KEY;
}

/**
 * Returns an object without members whose names are in `names`, in any case, and without `pml/*` in
 * its `_meta`.
 */
export function withoutNamed<T extends object>(object: T, names: readonly string[]): T {
  const foldedNames = names.map(foldCase);
  const dropped = Object.keys(object).filter((name) => foldedNames.includes(foldCase(name)));
  return withoutPmlMeta(omit(object, dropped));
}

/**
 * Folds case as Go's parser does, which also folds the long s to `s` and the Kelvin sign to `k`.
 */
function foldCase(name: string): string {
  return name.toUpperCase().toLowerCase();
}

function omit<T extends object>(object: T, names: readonly string[]): T {
  const entries = Object.entries(object).filter(([name]) => !names.includes(name));
  return Object.fromEntries(entries) as T;
}

/**
 * Removes members from the results of servers that a client could read differently from PML.
 *
 * @module
 */

import { isObject } from "../core/json.ts";
import { META } from "./envelope.ts";

/** The members of results in the revisions of the protocol, and of their tasks. */
const MEMBERS = new Set([
  ...["_meta", "resultType", "inputRequests", "requestState", "ttlMs", "cacheScope"],
  ...["content", "structuredContent", "isError", "task", "messages", "description", "contents"],
  ...["completion", "nextCursor", "tools", "prompts", "resources", "resourceTemplates", "tasks"],
  ...["skills", "skill"],
  ...["taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt", "ttl", "pollInterval"],
  ...["pollIntervalMs", "result", "error"],
]);
const FOLDED = new Set([...MEMBERS].map(folded));
/** How the names of members of `_meta` begin that only PML writes. */
const OF_PML = "pml/";
/**
 * The member of `_meta` in which PML names itself. A server of the newest revision names itself
 * there.
 */
const SERVER = folded(META.server);

/**
 * Returns a result without members whose names differ from the protocol's only in case (parsers
 * that ignore case, such as Go's, confuse them), and without `pml/*` in its `_meta` and in that of
 * its blocks: plans and code do not get blocks that PML marks as its remarks. Returns the same
 * object if it has none.
 */
export function withoutForged<T extends object>(result: T): T {
  const names = Object.keys(result).filter(isForged);
  const rest = withoutPmlMeta(names.length === 0 ? result : without(result, names));
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
  return { ...object, _meta: without(_meta, Object.keys(_meta).filter(isOfPml)) };
}

function hasPmlMeta(value: unknown): value is { readonly _meta: object } {
  return isObject(value) && isObject(value._meta) && Object.keys(value._meta).some(isOfPml);
}

function isForged(name: string): boolean {
  return !MEMBERS.has(name) && FOLDED.has(folded(name));
}

function isOfPml(name: string): boolean {
  const one = folded(name);
  return one.startsWith(OF_PML) || one === SERVER;
}

/**
 * Returns an object without members whose names are in `names`, in any case, and without `pml/*` in
 * its `_meta`.
 */
export function withoutNamed<T extends object>(object: T, names: readonly string[]): T {
  const all = names.map(folded);
  const dropped = Object.keys(object).filter((name) => all.includes(folded(name)));
  return withoutPmlMeta(without(object, dropped));
}

/** Folds case as Go's parser does, which also folds the long s to `s` and the Kelvin sign to `k`. */
function folded(name: string): string {
  return name.toUpperCase().toLowerCase();
}

function without<T extends object>(object: T, names: readonly string[]): T {
  const entries = Object.entries(object).filter(([name]) => !names.includes(name));
  return Object.fromEntries(entries) as T;
}

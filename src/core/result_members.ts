/**
 * Removes members from the results of servers by which a client could read something else than PML.
 *
 * @module
 */

import { isObject } from "./json.ts";

/** The members of results in the revisions of the protocol, and of their tasks. */
const MEMBERS = new Set([
  ...["_meta", "resultType", "inputRequests", "requestState", "ttlMs", "cacheScope"],
  ...["content", "structuredContent", "isError", "task", "messages", "description", "contents"],
  ...["completion", "nextCursor", "tools", "prompts", "resources", "resourceTemplates", "tasks"],
  ...["taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt", "ttl", "pollInterval"],
  ...["pollIntervalMs", "result", "error"],
]);
const FOLDED = new Set([...MEMBERS].map(folded));
/** How the names of members of `_meta` begin that only PML writes. */
const OF_PML = "pml/";

/**
 * Returns a result without members whose names differ from the protocol's only in case (parsers that
 * ignore case, such as Go's, take them for those), and without `pml/*` in its `_meta`. Returns the
 * same object if it has none.
 */
export function withoutForged<T extends object>(result: T): T {
  const names = Object.keys(result).filter(isForged);
  const { _meta } = result as { readonly _meta?: unknown };
  const meta = isObject(_meta) ? Object.keys(_meta).filter(isOfPml) : [];
  if (names.length + meta.length === 0) return result;
  const rest = without(result, names);
  return meta.length === 0 ? rest : { ...rest, _meta: without(_meta as object, meta) };
}

function isForged(name: string): boolean {
  return !MEMBERS.has(name) && FOLDED.has(folded(name));
}

function isOfPml(name: string): boolean {
  return folded(name).startsWith(OF_PML);
}

/** Folds case as Go's parser does, for which the long s and the Kelvin sign are letters, too. */
function folded(name: string): string {
  return name.toUpperCase().toLowerCase();
}

function without<T extends object>(object: T, names: readonly string[]): T {
  const kept = Object.entries(object).filter(([name]) => !names.includes(name));
  return Object.fromEntries(kept) as T;
}

/**
 * The tools that a server has listed on a connection. A call of a tool is compared with them before
 * it is sent: the program behind a new connection may be another one than before.
 *
 * @module
 */

import type { ListItem } from "../../protocol/lists.ts";
import { FRESH_MS, type ListKey } from "./_server_lists.ts";
import type { ServerConnection } from "./connection.ts";
import type { UpstreamServer } from "./upstream_server.ts";
import type { ListedTools } from "./_server_lists.ts";

/** The longest time that a list from a server over HTTP counts as current, in milliseconds. */
const OLDEST_MS = 300_000;

/** Returns whether the cached tools are those that the server has listed on this connection. */
export function isListedNow(
  connection: Pick<ServerConnection, "listedTools" | "tells" | "lostAt">,
  { isRemote = false, owner, tools }: Pick<UpstreamServer, "isRemote"> & {
    readonly owner: ListKey;
    /** The cached tools. */
    readonly tools: readonly ListItem[];
  },
): boolean {
  const last = connection.listedTools.get(owner);
  if (last === undefined || tools !== last.tools) return false;
  // A program on a pipe is the same as long as the pipe is open.
  if (!isRemote) return true;
  // A server that could not be reached may have been started again.
  return last.at > connection.lostAt &&
    performance.now() - last.at <= longestOf(last, connection.tells);
}

/** Returns for how long a list from a server over HTTP counts as current, in milliseconds. */
function longestOf({ ttlMs }: ListedTools, tells: boolean): number {
  if (ttlMs !== undefined && ttlMs > 0) return Math.min(ttlMs, OLDEST_MS);
  if (tells) return OLDEST_MS;
  return ttlMs ?? FRESH_MS;
}

/** Returns the earlier list if a new one is equal: values derived from it stay valid. */
export function sameOrNew(
  before: readonly ListItem[],
  now: readonly ListItem[],
): readonly ListItem[] {
  const isSame = before.length === now.length && before.length > 0 &&
    now.every((item, at) => JSON.stringify(item) === JSON.stringify(before[at]));
  return isSame ? before : now;
}

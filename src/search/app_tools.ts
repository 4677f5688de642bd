/**
 * The tools that pages of MCP Apps call.
 *
 * @module
 */

import { memoized } from "../core/memo.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { isForPages, toolPage } from "../protocol/apps.ts";
import type { CatalogEntry } from "./catalog.ts";

/** The tools that pages may call, of all servers. */
export interface AppTools {
  /** The servers with a tool that names a page. */
  readonly servers: ReadonlySet<string>;
  /** The tools of these servers that pages may call, by their names at the server. */
  readonly byName: ReadonlyMap<string, readonly ToolId[]>;
}

/**
 * Returns the tools of a catalog that pages may call. Returns the same object for the same list.
 */
export const appTools: (entries: readonly CatalogEntry[]) => AppTools = memoized((entries) => {
  const servers = new Set(
    entries.filter(({ tool }) => toolPage(tool) !== undefined).map(({ server }) => server.name),
  );
  const ids = entries
    .filter(({ tool, server }) => servers.has(server.name) && isForPages(tool))
    .map(({ id }) => id);
  // Pages use the server's names of tools, not the names that the user gave to them.
  return { servers, byName: Map.groupBy(ids, (id) => splitToolId(id).tool) };
});

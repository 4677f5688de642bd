/**
 * Decides whether the tools of well-known servers run locally or in the cloud, by the list that
 * ships with PML.
 *
 * @module
 */

import routing from "../../../config/mcp-routing.json" with { type: "json" };

/** Where a tool runs if neither the user nor a manifest says where. */
export type ToolRouting = "local" | "cloud";

const CLOUD_NAMES: ReadonlySet<string> = new Set(routing.cloud);

/** Returns whether the list states that a server runs on this machine. */
export function isListedLocal(server: string): boolean {
  return routing.local.includes(server);
}

/**
 * Returns where the tools of a server run by the list that ships with PML; a server that is not on
 * the list is local. Takes a server, `server:tool` or `server__tool`.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { getToolRouting } from "@casys/pml";
 *
 * assert.equal(getToolRouting("filesystem:read_file"), "local");
 * ```
 */
export function getToolRouting(id: string): ToolRouting {
  const [server = ""] = id.replace(/^mcp__pml__/, "").split(/:|__/, 1);
  return CLOUD_NAMES.has(server) || CLOUD_NAMES.has(`${server}:*`) ? "cloud" : "local";
}

/**
 * Names of servers and tools: `server:tool` inside PML, `server__tool` on the wire. Only this file
 * converts between them.
 *
 * @module
 */

import { PmlError } from "./errors.ts";
import { sha256 } from "./hash.ts";
import { quoted } from "./json.ts";

/** The id of a tool inside PML, in the configuration and on the command line: `server:tool`. */
export type ToolId = string & { readonly __toolId: never };

/** The largest length of a tool's name that clients accept. */
export const WIRE_NAME_MAX = 64;

/** The pattern of server names. Excludes the names of meta-tools. */
const SERVER_NAME =
  /^(?!.*(?:__|\.\.)|execute_|(?:search|schema|call|batch)$)[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$/;
/** The usual characters, in words, with at most one other character between two words. */
const TOOL_NAME = /^(?=.{1,128}$)[A-Za-z0-9_./-]+(?:[ &+'][A-Za-z0-9_./-]+)*$/;
const MCP_NAME = /^[A-Za-z0-9._-]{1,128}$/;
const WIRE_NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** Returns whether a text is valid as the server's name in the id of a tool. */
export function isServerName(name: string): boolean {
  return SERVER_NAME.test(name);
}

/** Returns whether users may choose a name: `pml` belongs to the cloud (`pml:search_tools`). */
export function isUsableServerName(name: string): boolean {
  // guard: cloud-name
  return name !== "pml" && isServerName(name);
}

/** Returns whether a text is valid as the name of a tool. */
export function isToolName(name: string): boolean {
  return TOOL_NAME.test(name);
}

/**
 * Turns a name that clients allow (`GitHub`, `my server`) into a valid name of a server. Throws
 * NAME_INVALID if it cannot.
 */
export function serverSlug(name: string): string {
  const slug = name.normalize("NFKC").toLowerCase().replace(/[^a-z0-9._-]+/g, "-")
    .replace(/([_.])\1+/g, "$1").slice(0, 64)
    .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, "");
  if (isUsableServerName(slug)) return slug;
  throw new PmlError("NAME_INVALID", `Cannot name a server ${quoted(name)}`, {
    hint: "Use 1 to 64 of a-z, 0-9, '.', '_' and '-', beginning and ending with a letter or digit",
  });
}

/**
 * Returns a valid name for a tool whose own name is not valid. It contains a hash of the whole
 * name, so that no server can choose a name that collides with another tool.
 */
export function toolSlug(name: string): string {
  const slug = name.normalize("NFKC").replace(/[^A-Za-z0-9]+/g, "_").slice(0, 50)
    .replace(/^_|_$/g, "");
  return `${slug || "tool"}_${sha256(name).slice(0, 12)}`;
}

/** Why PML leaves out a tool whose name is not valid (`isToolName`). */
export const NO_TOOL_NAME = "its name has other characters than the names of tools may have";

/** Joins the names of a server and a tool, which must be valid. */
export function toolId(server: string, tool: string): ToolId {
  return `${server}:${tool}` as ToolId;
}

/** Returns the id of a tool with the name that clients see, which the user may have changed. */
export function shownId(
  { server, tool }: { readonly server: { name: string }; readonly tool: { name: string } },
): ToolId {
  return toolId(server.name, tool.name);
}

/** Splits an id at its colon. */
export function splitToolId(id: ToolId): { readonly server: string; readonly tool: string } {
  const colon = id.indexOf(":");
  return { server: id.slice(0, colon), tool: id.slice(colon + 1) };
}

/**
 * Parses an id from outside: `server:tool`, `server__tool` or `mcp__pml__server__tool`. Returns
 * undefined if the text is not such an id.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { parseToolId } from "@casys/pml";
 *
 * assert.equal(parseToolId("git__status"), "git:status");
 * assert.equal(parseToolId("mcp__pml__git__status"), "git:status");
 * assert.equal(parseToolId("status"), undefined);
 * ```
 */
export function parseToolId(text: string): ToolId | undefined {
  const plain = text.replace(/^mcp__pml__/, "");
  const colon = plain.indexOf(":");
  const at = colon >= 0 ? colon : plain.indexOf("__");
  if (at <= 0) return undefined;
  const server = plain.slice(0, at);
  const tool = plain.slice(at + (colon >= 0 ? 1 : 2));
  // A call of a meta-tool must not go to the cloud.
  const isMeta = server === "pml" && !isServerName(tool);
  return isServerName(server) && isToolName(tool) && !isMeta ? toolId(server, tool) : undefined;
}

function plainName(id: ToolId): string {
  const { server, tool } = splitToolId(id);
  return `${server}__${tool}`;
}

/** Returns the name of a tool in `tools/list` for clients that accept all names that MCP allows. */
export function mcpName(id: ToolId): string {
  const plain = plainName(id);
  return MCP_NAME.test(plain) ? plain : wireName(id);
}

/**
 * Returns the name of a tool in `tools/list`. If the name is too long or has characters that some
 * clients refuse, it is changed and ends in a hash of the id. Such a name cannot be parsed, so the
 * caller must store which tool it belongs to.
 */
export function wireName(id: ToolId): string {
  const plain = plainName(id);
  if (WIRE_NAME.test(plain)) return plain;
  const hash = sha256(id).slice(0, 8);
  return `${plain.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, WIRE_NAME_MAX - 9)}_${hash}`;
}

/**
 * The headers by which the newest revision repeats what a request says, for those on its way who
 * read no bodies.
 *
 * @module
 */

import { isObject, type Json, type JsonObject, objectOf, textOf } from "../core/json.ts";
import type { ListItem } from "../core/lists.ts";

const VERSION_KEY = "io.modelcontextprotocol/protocolVersion";
/** Which member of the params names what a request is about. */
const NAMED_BY: Readonly<Record<string, string>> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
};
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const DEPTH_MAX = 16;

/** Gives the headers of a request; none for one of an older revision. */
export function requestHeaders(
  { method, params: said }: JsonObject,
  tool: (name: string) => ListItem | undefined,
): Record<string, string> {
  const params = objectOf(said);
  const version = objectOf(params._meta)[VERSION_KEY];
  if (typeof version !== "string") return {};
  const name = params[NAMED_BY[textOf(method)] ?? ""];
  const headers: Record<string, string> = {
    "mcp-protocol-version": version,
    "mcp-method": textOf(method),
    ...(typeof name === "string" && { "mcp-name": encoded(name) }),
  };
  if (method !== "tools/call") return headers;
  const schema = tool(textOf(name))?.inputSchema;
  addParams(headers, { schema, value: params.arguments, depth: 0 });
  return headers;
}

/** Adds the arguments that a tool wants to see in headers. */
function addParams(
  headers: Record<string, string>,
  { schema, value, depth }: {
    readonly schema: unknown;
    readonly value: Json | undefined;
    readonly depth: number;
  },
): void {
  const { properties } = objectOf(schema);
  if (!isObject(properties) || !isObject(value) || depth > DEPTH_MAX) return;
  for (const [key, one] of Object.entries(properties)) {
    if (!Object.hasOwn(value, key)) continue;
    const said = value[key] as Json; // parsed JSON
    const header = objectOf(one)["x-mcp-header"];
    if (typeof header === "string" && TOKEN.test(header) && isPlain(said)) {
      headers[`mcp-param-${header.toLowerCase()}`] = encoded(String(said));
    }
    addParams(headers, { schema: one, value: said, depth: depth + 1 });
  }
}

function isPlain(value: Json): boolean {
  return typeof value === "string" || typeof value === "boolean" ||
    typeof value === "number" && (!Number.isInteger(value) || Number.isSafeInteger(value));
}

/** Writes a value as a header can hold it. */
function encoded(value: string): string {
  const isSafe = /^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/.test(value) &&
    !/^=\?base64\?.*\?=$/.test(value);
  return isSafe ? value : `=?base64?${new TextEncoder().encode(value).toBase64()}?=`;
}

/**
 * Makes the headers of the newest revision, which repeat parts of a request for proxies that do not
 * read bodies.
 *
 * @module
 */

import { type JsonObject, objectOf, textOf } from "../core/json.ts";
import type { ListItem } from "../core/lists.ts";
import { encoded, markedValues } from "../core/marked_arguments.ts";

const VERSION_KEY = "io.modelcontextprotocol/protocolVersion";
/** The member of the params that names what a request is about. */
const NAMED_BY: Readonly<Record<string, string>> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
  "tasks/get": "taskId",
  "tasks/update": "taskId",
  "tasks/cancel": "taskId",
};

/** Returns the headers of a request. There are none in older revisions. */
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
  const own = method === "tools/call" ? tool(textOf(name)) : undefined;
  for (const [header, value] of own ? markedValues(own, params.arguments) : []) {
    headers[header] = encoded(String(value));
  }
  return headers;
}

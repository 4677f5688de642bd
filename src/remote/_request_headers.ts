/**
 * Makes the headers of the newest revision, which repeat parts of a request for proxies that do not
 * read bodies.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { isObject, type JsonObject, objectOf, quoted, textOf } from "../core/json.ts";
import type { ListItem } from "../core/lists.ts";
import { memoized } from "../core/memo.ts";

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
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const PLAIN = ["string", "integer", "boolean"];
const MARK = "x-mcp-header";

/** An argument that a tool wants in a header, too. */
interface MarkedArgument {
  readonly header: string;
  readonly path: readonly string[];
}

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
  for (const { header, path } of own === undefined ? [] : markedIn(own)) {
    const value = path.reduce<unknown>(
      (from, key) => isObject(from) && Object.hasOwn(from, key) ? from[key] : undefined,
      params.arguments,
    );
    if (isPlain(value)) headers[`mcp-param-${header}`] = encoded(String(value));
  }
  return headers;
}

/**
 * Finds the marked arguments in a tool's schema. Throws if a mark breaks the rules of MCP; such a
 * tool cannot be called.
 */
const markedIn = memoized((tool: ListItem): readonly MarkedArgument[] => {
  const marked: MarkedArgument[] = [];
  const visit = (schema: unknown, path: readonly string[] | undefined): void => {
    if (Array.isArray(schema)) { for (const one of schema) visit(one, undefined); }
    if (!isObject(schema)) return;
    const { [MARK]: mark, properties, ...others } = schema;
    if (mark !== undefined) {
      const header = textOf(mark).toLowerCase();
      const isOne = TOKEN.test(header) && PLAIN.includes(textOf(schema.type)) &&
        !marked.some((known) => known.header === header);
      if (!isOne || path === undefined || path.length === 0) throw wronglyMarked(tool);
      marked.push({ header, path });
    }
    for (const [key, one] of Object.entries(objectOf(properties))) {
      visit(one, path && [...path, key]);
    }
    // Only a member at one fixed path can be marked.
    for (const one of Object.values(others)) visit(one, undefined);
  };
  visit(tool.inputSchema, []);
  return marked;
});

function wronglyMarked({ name }: ListItem): PmlError {
  const why = "its schema marks arguments for headers against the rules of MCP";
  return new PmlError("UPSTREAM_PROTOCOL", `Cannot call ${quoted(String(name))}: ${why}`, {
    hint: "Its server has to be mended",
    detail: { may_have_run: false },
  });
}

function isPlain(value: unknown): boolean {
  return typeof value === "string" || typeof value === "boolean" ||
    typeof value === "number" && (!Number.isInteger(value) || Number.isSafeInteger(value));
}

/** Encodes a value so that a header can hold it. */
function encoded(value: string): string {
  const isSafe = /^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/.test(value) &&
    !/^=\?base64\?.*\?=$/.test(value);
  return isSafe ? value : `=?base64?${new TextEncoder().encode(value).toBase64()}?=`;
}

/**
 * Arguments that a tool marks with `x-mcp-header`. In the stateless revision, requests over HTTP
 * repeat them in headers, for proxies that do not read bodies.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { numberOf } from "../core/exact_number.ts";
import { isObject, objectOf, quoted, textOf } from "../core/json.ts";
import type { ListItem } from "./lists.ts";
import { memoized } from "../core/memo.ts";
import { schemaAt } from "../core/schema_ref.ts";

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const PLAIN = ["string", "integer", "boolean"];
const MARK = "x-mcp-header";
const BASE_64 = /^=\?base64\?(.*)\?=$/;

/** An argument that a tool requires in a header, too. */
interface MarkedArgument {
  readonly header: string;
  readonly path: readonly string[];
}

/** Returns the values that a call repeats in headers, by the names of these. */
export function markedValues(tool: ListItem, args: unknown): ReadonlyMap<string, unknown> {
  const values = markedIn(tool).map(({ header, path }) => {
    const value = path.reduce<unknown>(schemaAt, args);
    return [`mcp-param-${header}`, numberOf(value) ?? value] as const;
  });
  return new Map(values.filter(([, value]) => isPlain(value)));
}

/** Returns the name of a header of a call that differs from its argument; undefined if none does. */
export function differingHeader(
  tool: ListItem,
  { args, headers }: { readonly args: unknown; readonly headers: Pick<Headers, "get"> },
): string | undefined {
  for (const [name, value] of markedValues(tool, args)) {
    const header = decoded(headers.get(name));
    const isSame = header === String(value) ||
      typeof value === "number" && /^-?\d+(\.\d+)?$/.test(header ?? "") && Number(header) === value;
    if (!isSame) return name;
  }
  return undefined;
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
        !marked.some((other) => other.header === header);
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
    hint: "Report the schema to the server's author",
    detail: { may_have_run: false },
  });
}

function isPlain(value: unknown): boolean {
  return typeof value === "string" || typeof value === "boolean" ||
    typeof value === "number" && (!Number.isInteger(value) || Number.isSafeInteger(value));
}

/** Encodes a value for a header. */
export function encoded(value: string): string {
  const isSafe = /^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/.test(value) &&
    !BASE_64.test(value);
  return isSafe ? value : `=?base64?${new TextEncoder().encode(value).toBase64()}?=`;
}

/** Returns the value of a header; undefined if there is none, or if it is not well encoded. */
function decoded(header: string | null): string | undefined {
  const [, base64] = BASE_64.exec(header ?? "") ?? [];
  if (base64 === undefined) return header ?? undefined;
  try {
    const bytes = Uint8Array.fromBase64(base64, { lastChunkHandling: "strict" });
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

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

/** Matches a part of the name of a header. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const MARKABLE_TYPES = ["string", "integer", "boolean"];
const MARK = "x-mcp-header";
/** Matches a value of a header in base64. */
const BASE_64 = /^=\?base64\?(.*)\?=$/;

/** An argument whose value must also be in a header. */
interface MarkedArgument {
  readonly header: string;
  readonly path: readonly string[];
}

/** Returns the argument values that a call must repeat in headers, by the names of the headers. */
export function markedValues(tool: ListItem, args: unknown): ReadonlyMap<string, unknown> {
  const values = findMarked(tool).map(({ header, path }) => {
    const value = path.reduce<unknown>(schemaAt, args);
    return [`mcp-param-${header}`, numberOf(value) ?? value] as const;
  });
  return new Map(values.filter(([, value]) => isHeaderValue(value)));
}

/** Returns the first header of a call that differs from its argument; undefined if all match. */
export function differingHeader(
  tool: ListItem,
  { args, headers }: { readonly args: unknown; readonly headers: Pick<Headers, "get"> },
): string | undefined {
  for (const [name, value] of markedValues(tool, args)) {
    const header = decodeHeader(headers.get(name));
    const isSame = header === String(value) ||
      typeof value === "number" && /^-?\d+(\.\d+)?$/.test(header ?? "") && Number(header) === value;
    if (!isSame) return name;
  }
  return undefined;
}

/**
 * Finds the marked arguments in a tool's schema. Throws if a mark violates the rules of MCP: PML does
 * not call such a tool.
 */
const findMarked = memoized((tool: ListItem): readonly MarkedArgument[] => {
  const marked: MarkedArgument[] = [];
  const visit = (schema: unknown, path: readonly string[] | undefined): void => {
    if (Array.isArray(schema)) { for (const part of schema) visit(part, undefined); }
    if (!isObject(schema)) return;
    const { [MARK]: mark, properties, ...others } = schema;
    if (mark !== undefined) {
      const header = textOf(mark).toLowerCase();
      const isValidMark = TOKEN.test(header) && MARKABLE_TYPES.includes(textOf(schema.type)) &&
        !marked.some((other) => other.header === header);
      if (!isValidMark || path === undefined || path.length === 0) throw wrongMarkError(tool);
      marked.push({ header, path });
    }
    for (const [key, property] of Object.entries(objectOf(properties))) {
      visit(property, path && [...path, key]);
    }
    // Marks are valid only at a fixed path of `properties`, not in other keywords such as `items`.
    for (const part of Object.values(others)) visit(part, undefined);
  };
  visit(tool.inputSchema, []);
  return marked;
});

function wrongMarkError({ name }: ListItem): PmlError {
  const why = "its schema marks arguments for headers against the rules of MCP";
  return new PmlError("UPSTREAM_PROTOCOL", `Cannot call ${quoted(String(name))}: ${why}`, {
    hint: "Report the schema to the server's author",
    detail: { may_have_run: false },
  });
}

/** Returns whether a value can be in a header without a loss. */
function isHeaderValue(value: unknown): boolean {
  return typeof value === "string" || typeof value === "boolean" ||
    typeof value === "number" && (!Number.isInteger(value) || Number.isSafeInteger(value));
}

/** Encodes a value for a header. */
export function encodeHeader(value: string): string {
  const isSafe = /^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/.test(value) &&
    !BASE_64.test(value);
  return isSafe ? value : `=?base64?${new TextEncoder().encode(value).toBase64()}?=`;
}

/** Returns the decoded value of a header; undefined if it is missing or not valid. */
function decodeHeader(header: string | null): string | undefined {
  const [, base64] = BASE_64.exec(header ?? "") ?? [];
  if (base64 === undefined) return header ?? undefined;
  try {
    const bytes = Uint8Array.fromBase64(base64, { lastChunkHandling: "strict" });
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

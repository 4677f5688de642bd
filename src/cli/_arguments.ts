/**
 * Parses the arguments of a call as a user types them: `key=value` by the tool's schema, and
 * `key:=JSON` as JSON.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { parseExact } from "../core/exact_json.ts";
import { isObject, type Json, type JsonObject, quoted } from "../core/json.ts";
import type { ToolId } from "../core/tool_id.ts";
import { usage } from "./_failure.ts";

/** Parses the name of a tool. Throws `USAGE` if the name is not `SERVER:TOOL`. */
export function parseId(name: string, servers: Pick<App["servers"], "idOf">): ToolId {
  const id = servers.idOf(name);
  if (id !== undefined) return id;
  throw usage(
    `Cannot read ${quoted(name)} as a tool: it is not SERVER:TOOL`,
    "Write it like filesystem:read_file; `pml tools` lists them",
  );
}

/** Returns `base` with the typed pairs added. Throws `USAGE` for a repeated or invalid argument. */
export function parseArguments(
  pairs: readonly string[],
  { base, schema }: { readonly base: JsonObject; readonly schema: JsonObject },
): JsonObject {
  const values = new Map(Object.entries(base));
  for (const pair of pairs) {
    const [name, value] = parsePair(pair, schema);
    if (values.has(name)) {
      throw usage(`Cannot take the argument ${quoted(name)}: it is given twice`, "Give it once");
    }
    values.set(name, value);
  }
  return Object.fromEntries(values);
}

/**
 * Returns the JSON text of the arguments if the user typed them as one object, and removes it from
 * `pairs`. Otherwise returns the text "{}".
 */
export function takeObject(pairs: string[]): string {
  return pairs.length === 1 && pairs[0]?.startsWith("{") && pairs.pop() || "{}";
}

/**
 * Parses arguments that are one JSON object. Throws `USAGE` if the text is something else. `from` is
 * how the error names the text.
 */
export function parseObject(text: string, from = quoted(text)): JsonObject {
  const value = parseJson(text);
  if (isObject(value)) return value as JsonObject; // it was parsed from JSON
  throw usage(
    `Cannot read the arguments ${from}: they are not a JSON object`,
    `Write them like '{"path": "README.md"}'`,
  );
}

function parsePair(pair: string, schema: JsonObject): readonly [string, Json] {
  const [, name, colon, text] = /^([^=]*?[^=:])(:?)=(.*)$/s.exec(pair) ?? [];
  if (name === undefined || text === undefined) {
    throw usage(
      `Cannot read the argument ${quoted(pair)}: it is not key=value`,
      "Write key=value, key:=JSON, or all of them as one JSON object",
    );
  }
  const { properties } = schema;
  const property = isObject(properties) ? properties[name] : undefined;
  if (colon === "" && takesText(property, schema)) return [name, text];
  const value = parseJson(text);
  if (value !== undefined) return [name, value];
  throw usage(
    `Cannot read the argument ${quoted(name)}: ${quoted(text)} is ${
      colon === "" ? wrongKind(property) : "not valid JSON"
    }`,
    "`pml tools SERVER:TOOL` shows its type",
  );
}

/** Returns why a text that is not valid JSON does not match a schema without strings. */
function wrongKind(schema: unknown): string {
  const types = isObject(schema) ? [schema.type].flat() : [];
  if (types.includes("number")) return "not a number";
  if (types.includes("integer")) return "not a whole number";
  if (types.includes("boolean")) return "neither true nor false";
  if (types.includes("array")) return "not a list in JSON";
  return types.includes("object") ? "not an object in JSON" : "not valid JSON";
}

/** Returns whether a schema accepts a string. The typed text is then the value, and is not parsed. */
function takesText(schema: unknown, root?: JsonObject): boolean {
  if (!isObject(schema)) return true;
  const { $ref, type, anyOf, oneOf } = schema;
  // Follows no reference in the target of a reference, because references may form a circle.
  if (typeof $ref === "string") return takesText(resolvePointer($ref, root));
  if (type !== undefined) return [type].flat().includes("string");
  const values = "const" in schema ? [schema.const] : schema.enum;
  if (Array.isArray(values)) return values.some((value) => typeof value === "string");
  const choices = anyOf ?? oneOf;
  return !Array.isArray(choices) || choices.some((choice) => takesText(choice, root));
}

function resolvePointer(ref: string, root: unknown): unknown {
  return ref.split("/").slice(1).reduce(
    (value, key) => isObject(value) ? value[key] : undefined,
    root,
  );
}

function parseJson(text: string): Json | undefined {
  try {
    return parseExact(text);
  } catch {
    return undefined; // the caller throws its own error
  }
}

/** Parses `--tail`: how many earlier lines or records to show before the new ones; 0 is allowed. */
export function parseTail(text: string, most: number): number {
  return text === "0" ? 0 : parseCount(text, most);
}

/** Parses a limit. Throws `USAGE` if it is not a number from 1 to `most`. */
export function parseCount(text: string, most: number): number {
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= most) return limit;
  throw usage(
    `Cannot use ${quoted(text)} as a limit: it is not a number from 1 to ${most}`,
    `For example, use ${Math.min(most, 10)}`,
  );
}

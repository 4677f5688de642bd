/**
 * Reads the arguments of a call as they are typed: `key=value` by the tool's schema, `key:=JSON`
 * as it is.
 *
 * @module
 */

import { isObject, type Json, type JsonObject, quoted } from "../core/json.ts";
import { parseToolId, type ToolId } from "../core/tool_id.ts";
import { usage } from "./_failure.ts";

/** Reads the name of a tool, or says how one is written. */
export function parseId(name: string): ToolId {
  const id = parseToolId(name);
  if (id !== undefined) return id;
  throw usage(
    `Cannot read ${quoted(name)} as a tool: it is no SERVER:TOOL`,
    "Write it like filesystem:read_file; `pml tools` lists them",
  );
}

/** Puts the typed pairs over the arguments that came as JSON. */
export function parseArguments(
  pairs: readonly string[],
  from: { readonly base: JsonObject; readonly schema: JsonObject },
): JsonObject {
  const parsed = pairs.map((pair) => parsePair(pair, from.schema));
  const names = [...Object.keys(from.base), ...parsed.map(([name]) => name)];
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) {
    throw usage(`Cannot take the argument ${quoted(twice)}: it is given twice`, "Give it once");
  }
  return { ...from.base, ...Object.fromEntries(parsed) };
}

/** Reads the JSON object of `--args`. */
export function parseObject(text: string): JsonObject {
  const value = parseJson(text);
  if (isObject(value)) return value as JsonObject;
  throw usage(
    `Cannot read the arguments ${quoted(text)}: they are no JSON object`,
    `Write them like --args '{"path": "README.md"}'`,
  );
}

function parsePair(pair: string, schema: JsonObject): readonly [string, Json] {
  const [, name, raw, text] = /^([^=]*?[^=:])(:?)=(.*)$/s.exec(pair) ?? [];
  if (name === undefined || text === undefined) {
    throw usage(
      `Cannot read the argument ${quoted(pair)}: it is no key=value`,
      "Write key=value, key:=JSON for a value as JSON, or all of them with --args JSON",
    );
  }
  return [name, raw === ":" ? asJson(name, text) : valueOf(name, { text, schema })];
}

function asJson(name: string, text: string): Json {
  const value = parseJson(text);
  if (value !== undefined) return value;
  throw usage(
    `Cannot read the argument ${quoted(name)}: ${quoted(text)} is no JSON`,
    `Write ${name}=TEXT for a plain text`,
  );
}

/** A text stays one where the schema lets it; else it is the JSON that the schema wants. */
function valueOf(
  name: string,
  { text, schema }: { readonly text: string; readonly schema: JsonObject },
): Json {
  const { properties } = schema;
  const own = isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : {};
  const types = typesOf(own, { root: schema, depth: 0 });
  const value = parseJson(text);
  const others = types.filter((type) => type !== "string");
  if (value !== undefined && others.some((type) => isOf(value, type))) return value;
  if (types.length === 0 || types.includes("string")) return text;
  throw usage(
    `Cannot read the argument ${quoted(name)}: ${quoted(text)} is not of type ${
      types.join(" or ")
    }`,
    "Arrays and objects are written as JSON; `pml tools SERVER:TOOL` shows the schema",
  );
}

/** Gives the types that a schema names; none where anything goes. */
function typesOf(
  schema: unknown,
  from: { readonly root: JsonObject; readonly depth: number },
): readonly string[] {
  if (!isObject(schema) || from.depth > 8) return [];
  const deeper = { ...from, depth: from.depth + 1 };
  if (typeof schema.$ref === "string") return typesOf(pointed(schema.$ref, from.root), deeper);
  const { type, anyOf, oneOf } = schema;
  if (typeof type === "string") return [type];
  if (Array.isArray(type)) return type.filter((each) => typeof each === "string");
  if ("const" in schema) return [typeOf(schema.const)];
  if (Array.isArray(schema.enum)) return [...new Set(schema.enum.map(typeOf))];
  const choices = Array.isArray(anyOf) ? anyOf : Array.isArray(oneOf) ? oneOf : [];
  const types = choices.map((choice) => typesOf(choice, deeper));
  // One choice without a type takes anything.
  return types.some((each) => each.length === 0) ? [] : [...new Set(types.flat())];
}

function pointed(ref: string, root: JsonObject): unknown {
  if (!ref.startsWith("#/")) return undefined;
  const steps = ref.slice(2).split("/").map((step) =>
    step.replaceAll("~1", "/").replaceAll("~0", "~")
  );
  return steps.reduce<unknown>(
    (at, step) => isObject(at) && Object.hasOwn(at, step) ? at[step] : undefined,
    root,
  );
}

function isOf(value: Json, type: string): boolean {
  return type === typeOf(value) || (type === "integer" && Number.isInteger(value));
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // it is none, which the caller tells in its own words
  }
}

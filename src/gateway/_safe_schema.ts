/**
 * Looks a schema over before it is used: checking a value against it runs in the gateway, where no
 * deadline ends it.
 *
 * @module
 */

import { isObject, visible } from "../core/json.ts";
import type { ToolDefinition } from "../core/tool.ts";

const DEEPEST = 64;
const MOST_SUBSCHEMAS = 2_000;
/** How many values count as one subschema: looking past them costs little, but not nothing. */
const VALUES = 10;
const DIALECT = /^https?:\/\/json-schema\.org\/(draft-0[4-7]|draft\/20(19-09|20-12))\/schema#?$/;
/** After so long a look others get their turn. */
const TURN_MS = 10;
const LONGEST_PATTERN = 500;
/** With so few items, comparing each with each is nothing. */
const MOST_UNIQUE = 1_000;

/** Says why a schema could hold the gateway up; undefined for a good one. */
export function unsafeSchema(schema: object): string | undefined {
  const { $schema: dialect } = schema as { $schema?: unknown };
  if (dialect !== undefined && !(typeof dialect === "string" && DIALECT.test(dialect))) {
    return `it is written in ${visible(String(dialect), 80)}`;
  }
  const walk = { root: schema, left: MOST_SUBSCHEMAS };
  return unsafe(schema, walk, DEEPEST);
}

/** Finds the tools that cannot be used for their schemas, and says why; however many there are. */
export async function unusableTools(
  tools: readonly ToolDefinition[],
): Promise<ReadonlyMap<ToolDefinition, string>> {
  const found = new Map<ToolDefinition, string>();
  let since = performance.now();
  for (const tool of tools) {
    const { inputSchema, outputSchema = {} } = tool;
    const why = first(
      [inputSchema, outputSchema],
      (schema) => isObject(schema) ? unsafeSchema(schema) : "it is no object",
    );
    if (why !== undefined) found.set(tool, `its schema cannot be used: ${why}`);
    if (performance.now() - since < TURN_MS) continue;
    await new Promise((resolve) => setTimeout(resolve));
    since = performance.now();
  }
  return found;
}

/**
 * Gives a safe schema without the patterns that may take too long beside a format, which says the
 * same: the makers of schemas write both for an address of mail, a date or an IP address.
 */
export function checkable<T>(schema: T): T {
  if (Array.isArray(schema)) return schema.map(checkable) as T;
  if (!isObject(schema)) return schema;
  const slow = hasFormat(schema) && unsafePattern(schema.pattern) !== undefined;
  const kept = Object.entries(schema).filter(([key]) => !(slow && key === "pattern"))
    .map(([key, value]) => [key, DATA.includes(key) ? value : checkable(value)]);
  return Object.fromEntries(kept);
}

/** What holds values and no schemas. */
const DATA = ["enum", "const", "default", "examples"];

function hasFormat(schema: Readonly<Record<string, unknown>>): boolean {
  return typeof schema.format === "string";
}

interface Walk {
  readonly root: object;
  /** How many subschemas may still be looked at, each as often as it is referred to. */
  left: number;
}

function unsafe(schema: unknown, walk: Walk, depth: number): string | undefined {
  if (Array.isArray(schema)) return first(schema, (each) => unsafe(each, walk, depth - 1));
  const isPlain = !isObject(schema);
  walk.left -= isPlain ? 1 / VALUES : 1;
  if (walk.left < 0) return "it has too many subschemas";
  if (isPlain) return undefined;
  if (depth <= 0) return "it is nested too deep";
  return first(Object.entries(schema), ([key, value]) => {
    if (key === "$ref") return unsafeReference(value, walk, depth);
    if (key === "$dynamicRef" || key === "$recursiveRef") return `it has a ${key}`;
    if (key === "pattern") return hasFormat(schema) ? undefined : unsafePattern(value);
    if (key === "uniqueItems") return unsafeUnique(schema);
    if (DATA.includes(key)) return undefined;
    const named = key === "patternProperties" && isObject(value) ? Object.keys(value) : [];
    return first(named, unsafePattern) ?? unsafe(value, walk, depth - 1);
  });
}

function unsafeReference(to: unknown, walk: Walk, depth: number): string | undefined {
  if (typeof to !== "string" || !to.startsWith("#")) return "it refers to another document";
  const path = to.slice(1).split("/").slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  let target: unknown = walk.root;
  for (const part of path) {
    target = isObject(target) || Array.isArray(target) ? Reflect.get(target, part) : undefined;
  }
  return unsafe(target, walk, depth - 1);
}

/**
 * Safe is a pattern without unbounded repetition, or with one that is not of a group where the
 * pattern can begin at one place only; any other can take all the time there is.
 */
function unsafePattern(pattern: unknown): string | undefined {
  if (typeof pattern !== "string") return undefined;
  // Looked at first: taking a long one apart takes long, too.
  if (pattern.length > LONGEST_PATTERN) return tooLong(pattern);
  const plain = pattern.replace(/\\./g, "x").replace(/\[[^\]]*\]/g, "x");
  const unbounded = plain.match(/[*+]|\{\d+,\}/g)?.length ?? 0;
  const ofGroup = /\)[*+{]/.test(plain);
  const once = unbounded === 0 || (unbounded === 1 && /^\^[^|]*$/.test(plain));
  return once && !ofGroup ? undefined : tooLong(pattern);
}

function tooLong(pattern: string): string {
  return `the pattern "${visible(pattern, 80)}" may take too long`;
}

function unsafeUnique(schema: Readonly<Record<string, unknown>>): string | undefined {
  const { uniqueItems, maxItems } = schema;
  const bounded = typeof maxItems === "number" && maxItems <= MOST_UNIQUE;
  return uniqueItems !== true || bounded ? undefined : "uniqueItems needs a small maxItems";
}

function first<T>(
  items: readonly T[],
  say: (item: T) => string | undefined,
): string | undefined {
  for (const item of items) {
    const said = say(item);
    if (said !== undefined) return said;
  }
  return undefined;
}

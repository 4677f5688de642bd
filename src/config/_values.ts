/**
 * The schemas of single values of settings. The error message of each names the valid values.
 *
 * @module
 */

import { canonicalJson, isObject, type Json, textOf } from "../core/json.ts";
import { GRAMMAR, parsePattern, RULE_MAX, validRules } from "../core/pattern.ts";
import {
  leaf,
  list,
  type ValuePlace,
  type ValueSchema,
  withKeywords,
} from "../core/value_schema.ts";
import { isAllowedAddress, REGISTRY_BEGINNINGS } from "./registries.ts";

/** A string. */
export const string: ValueSchema<string> = text();
/** A string that is not empty. */
export const nonEmptyText: ValueSchema<string> = text("a string that is not empty", /\S/);
/** A list of strings. */
export const strings: ValueSchema<string[]> = list(string, "strings");
/** True or false. */
export const flag: ValueSchema<boolean> = leaf(
  "true or false",
  (value) => typeof value === "boolean",
  {
    type: "boolean",
  },
);
/** A JSON value. */
export const json: ValueSchema<Json> = leaf(
  "a JSON value",
  (value) => succeeds(() => canonicalJson(withoutInfinite(value))),
);
/** A number from 0 to 1. */
export const share: ValueSchema<number> = fraction("a number from 0 to 1", 1);
/** An amount of money. */
export const price: ValueSchema<number> = fraction("a number that is 0 or more");
const rule: ValueSchema<string> = namedText(
  "rule",
  text(`the rule ${GRAMMAR}`, { test: isRule }),
  RULE_MAX,
);
/** A list of rules. A problem also names the rule for a tool whose own name no rule can have. */
export const rules: ValueSchema<string[]> = list(
  Object.assign(
    (value: unknown, { path, wrong }: ValuePlace): value is string =>
      rule(value, {
        path,
        wrong: (issue) => wrong({ ...issue, wanted: `the rule ${validRules(textOf(value))}` }),
      }),
    { schema: () => rule.schema() },
  ),
  "rules",
);
/** A pattern of tools, without arguments. */
export const tool: ValueSchema<string> = namedText(
  "tool",
  text('the pattern "server:tool", "server:*" or "*"', { test: isToolsPattern }),
  RULE_MAX,
);
/** A list of tools. */
export const tools: ValueSchema<string[]> = list(tool, "names or patterns of tools");
/** The path of a folder. */
export const folder: ValueSchema<string> = text("the path of a folder", /^(?!.*:\/\/)(?=.*\S)/s);
/** The path of a file. */
export const path: ValueSchema<string> = text("the path of a file", /^(?!-----|.*:\/\/)(?=.*\S)/s);
/** The name of a variable. */
export const variable: ValueSchema<string> = text(
  "the name of a variable",
  /^[A-Za-z_][A-Za-z0-9_]*$/,
);
/** An https address. */
export const address: ValueSchema<string> = url("address", ["https://"]);
/** The address of a registry. */
export const registry: ValueSchema<string> = url("registryAddress", REGISTRY_BEGINNINGS);

/** Returns a schema for texts that match a pattern. No text may contain NUL. */
export function text(
  wanted = "a string",
  grammar: { test(value: string): boolean } = /^/,
): ValueSchema<string> {
  const passes = (value: unknown) =>
    typeof value === "string" && !value.includes("\0") && grammar.test(value);
  return leaf(wanted, passes, { type: "string", pattern: grammar });
}

/**
 * Returns a schema for texts that a function checks. `tools/generate/json_schema.ts` uses the name
 * to find the pattern of such texts in the JSON Schema.
 */
export function namedText(
  name: string,
  texts: ValueSchema<string>,
  maxLength?: number,
): ValueSchema<string> {
  return withKeywords(texts, { name, maxLength });
}

/** Returns a schema for whole numbers. */
export function number(minimum: number, maximum: number): ValueSchema<number> {
  const passes = (value: unknown) =>
    Number.isSafeInteger(value) && isWithin(value, minimum, maximum);
  const schema = { type: "integer", minimum, maximum };
  return leaf(`a whole number from ${minimum} to ${maximum}`, passes, schema);
}

/** Returns whether a function does not throw. */
export function succeeds(read: () => unknown): boolean {
  try {
    read();
    return true;
  } catch {
    return false; // the message of the schema names the valid values
  }
}

/** Returns a schema for URLs that begin with one of these texts, or name this machine. */
function url(name: string, beginnings: readonly string[]): ValueSchema<string> {
  const wanted = `a URL that begins with ${
    beginnings.join(" or ")
  }, without a user name or password`;
  return namedText(name, text(wanted, { test: (value) => isAllowedAddress(value, beginnings) }));
}

function fraction(wanted: string, maximum?: number): ValueSchema<number> {
  const passes = (value: unknown) => isWithin(value, 0, maximum ?? Number.MAX_VALUE);
  return leaf(wanted, passes, { type: "number", minimum: 0, maximum });
}

function isWithin(value: unknown, least: number, most: number): boolean {
  return typeof value === "number" && value >= least && value <= most;
}

function isRule(value: string): boolean {
  return succeeds(() => parsePattern(value));
}

/** Returns whether a rule covers tools with all of their arguments, and no other part of MCP. */
function isToolsPattern(value: string): boolean {
  return isRule(value) && !/[(@]/.test(value);
}

/**
 * Returns JSON with 0 for infinite numbers, which `canonicalJson()` refuses. The parser turns
 * `1e400` into Infinity, but servers get the text of the file.
 */
function withoutInfinite(value: unknown): Json {
  if (value === Infinity || value === -Infinity) return 0;
  if (Array.isArray(value)) return value.map(withoutInfinite);
  if (!isObject(value)) return value as Json;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, withoutInfinite(member)]),
  );
}

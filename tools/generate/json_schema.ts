/**
 * Makes JSON Schemas of the tables of settings.
 *
 * @module
 */

import { isObject } from "../../src/core/json.ts";
import { PART_RULE_NAMES, READS_RULE_NAME } from "../../src/core/pattern.ts";
import type { Schema } from "../../src/core/wanted.ts";

/** The patterns of texts that a function of PML parses, by their names in `config/_values.ts`. */
const PATTERNS: Readonly<Record<string, Schema>> = patterns();

/** Returns the JSON Schema of a part, with a title. */
export function jsonSchemaOf(schema: Schema, title: string, description: string): Schema {
  const defs = new Map<string, Schema>();
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title,
    ...plain({ ...schema, description }, defs) as Schema,
    ...defs.size > 0 && { $defs: Object.fromEntries(defs) },
  };
}

/** Returns a value of a schema as JSON. Parts with a name become definitions. */
function plain(value: unknown, defs: Map<string, Schema>): unknown {
  if (Array.isArray(value)) return value.map((one) => plain(one, defs));
  if (!isObject(value)) return value;
  const { name, wanted, description, default: usual, ...rest } = value;
  const about = { description: description ?? sentence(wanted), default: usual };
  const body = bodyOf(rest, typeof name === "string" ? name : undefined, defs);
  // Editors show this message in place of the pattern.
  const wrong = body.pattern === undefined ? {} : { patternErrorMessage: sentence(wanted) };
  if (typeof name !== "string") return defined({ ...about, ...body, ...wrong });
  const { patternErrorMessage: _, ...known } = defs.get(name) ?? body;
  if (JSON.stringify(known) !== JSON.stringify(body)) {
    throw new Error(`two parts have the name ${name}`);
  }
  if (!defs.has(name)) defs.set(name, defined({ ...body, ...wrong }));
  return defined({ ...about, $ref: `#/$defs/${name}` });
}

function bodyOf(
  schema: Schema,
  name: string | undefined,
  defs: Map<string, Schema>,
): Schema {
  const { pattern, propertyNames, ...rest } = schema;
  const entries = Object.entries(rest).map(([keyword, one]) => [
    keyword,
    ["if", "then", "else", "items", "additionalProperties", "oneOf", "anyOf"].includes(keyword)
      ? plain(one, defs)
      : ["properties", "dependentSchemas"].includes(keyword)
      ? propertiesOf(Object(one), defs)
      : one,
  ]);
  return defined({
    ...Object.fromEntries(entries),
    ...pattern === undefined ? {} : patternOf(pattern, name),
    ...isObject(propertyNames) && {
      propertyNames: { ...plain(propertyNames, defs) as Schema, not: { const: "__proto__" } },
    },
  });
}

/** Leaves out the keys that nothing may have: the object refuses unknown keys. */
function propertiesOf(properties: object, defs: Map<string, Schema>): Schema {
  const all = Object.entries(properties).filter(([, { not }]) => not === undefined);
  return Object.fromEntries(all.map(([key, one]) => [key, plain(one, defs)]));
}

function patternOf(grammar: unknown, name = ""): Schema {
  if (grammar instanceof RegExp) {
    return grammar.source === "^" ? {} : { pattern: portable(grammar) };
  }
  const found = PATTERNS[name];
  if (found === undefined) throw new Error(`a text that a function parses has no pattern: ${name}`);
  return found;
}

/** Returns a pattern that needs no flags. */
function portable({ source, ignoreCase, dotAll }: RegExp): string {
  let isInClass = false;
  const piece = /\[\^\]|\\(?:[pP]\{\w+\}|x[\da-f]{2}|.)|\(\?<?[:=!]|[a-z]-[a-z]|[^]/gi;
  return source.replaceAll(piece, (part) => {
    if (part === "[^]") return "[\\s\\S]";
    if (part === "[") isInClass = true;
    if (part === "]") isInClass = false;
    if (part === "." && dotAll && !isInClass) return "[\\s\\S]";
    if (!ignoreCase || !/^[a-z]/i.test(part)) return part;
    const both = part.toLowerCase() + part.toUpperCase();
    return isInClass ? both : `[${both}]`;
  });
}

function sentence(wanted: unknown): string | undefined {
  if (typeof wanted !== "string" || /^an? (object|string|array of \w+)$/.test(wanted)) return;
  return `${wanted.charAt(0).toUpperCase()}${wanted.slice(1)}.`;
}

function defined(schema: Schema): Schema {
  return Object.fromEntries(Object.entries(schema).filter(([, value]) => value !== undefined));
}

function patterns(): Readonly<Record<string, Schema>> {
  const own = String.raw`[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?`;
  const server = (reserved: string) =>
    String.raw`(?!(?:${reserved})(?::|$))(?!execute_)(?![^:(]*(?:__|\.\.))${own}`;
  const meta = "search|schema|call|batch";
  const tool = String.raw`[A-Za-z0-9_./-]+(?:[ &+'][A-Za-z0-9_./-]+)*`;
  const named = String.raw`(?=[^(:]{1,128}(?:\(|$))${tool}`;
  const character = String.raw`(?:[^\\,() \p{Cc}]|\\[\\*,() ])`;
  const condition = String.raw`[\w$.\-]{1,64}=(?:${character}(?: *${character})*)?`;
  const conditions = String.raw`\((?:\{[\s\S]*\}|${condition}(?:, ?${condition}){0,15})\)`;
  const others = `@(?:${
    [...PART_RULE_NAMES, READS_RULE_NAME].map((name) => name.slice(1)).join("|")
  }|method\\([\\w./$-]{1,128}\\))`;
  const here = String.raw`localhost|127\.\d+\.\d+\.\d+|\[::1\]`;
  const url = String.raw`(?:https://[^/?#@\s]+|http://(?:${here})(?::\d+)?)(?:[/?#]|$)`;
  return {
    rule: {
      pattern: `^(?:\\*|${server(meta)}:(?:\\*|${named}(?:${conditions})?|${others}))$`,
    },
    tool: { pattern: `^(?:\\*|${server(meta)}:(?:\\*|${named}))$` },
    toolName: { pattern: `^(?=.{1,128}$)${tool}$` },
    serverName: { pattern: `^${server(`pml|${meta}`)}$` },
    serverTitle: {
      not: { pattern: `^(?:pml|${meta}|__proto__|[^A-Za-z0-9]*)$` },
      minLength: 1,
    },
    address: { pattern: `^${url}` },
    registryAddress: { pattern: `^(?:mcp\\+)?${url}` },
  };
}

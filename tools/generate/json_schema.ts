/**
 * Converts the tables of settings to JSON Schemas.
 *
 * @module
 */

import { isObject } from "../../src/core/json.ts";
import { PART_RULE_NAMES, READS_RULE_NAME } from "../../src/core/pattern.ts";
import type { Schema } from "../../src/core/value_schema.ts";

/** The patterns for texts that a function of PML parses, by their names in `config/_values.ts`. */
const PATTERNS: Readonly<Record<string, Schema>> = patterns();

/** Returns a complete JSON Schema with a title and its definitions. */
export function jsonSchemaOf(schema: Schema, title: string, description: string): Schema {
  const defs = new Map<string, Schema>();
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title,
    ...toJsonSchema({ ...schema, description }, defs) as Schema,
    ...defs.size > 0 && { $defs: Object.fromEntries(defs) },
  };
}

/** Converts a part of a schema. Parts with a name become definitions in `defs`. */
function toJsonSchema(value: unknown, defs: Map<string, Schema>): unknown {
  if (Array.isArray(value)) return value.map((item) => toJsonSchema(item, defs));
  if (!isObject(value)) return value;
  const { name, wanted, description, default: usual, ...rest } = value;
  const annotations = { description: description ?? sentence(wanted), default: usual };
  const body = bodyOf(rest, typeof name === "string" ? name : undefined, defs);
  // Editors show this message instead of the pattern.
  const errorMessage = body.pattern === undefined ? {} : { patternErrorMessage: sentence(wanted) };
  if (typeof name !== "string") {
    return withoutUndefined({ ...annotations, ...body, ...errorMessage });
  }
  const { patternErrorMessage: _, ...known } = defs.get(name) ?? body;
  if (JSON.stringify(known) !== JSON.stringify(body)) {
    throw new Error(`two different parts of the schema have the name ${name}`);
  }
  if (!defs.has(name)) defs.set(name, withoutUndefined({ ...body, ...errorMessage }));
  return withoutUndefined({ ...annotations, $ref: `#/$defs/${name}` });
}

function bodyOf(
  schema: Schema,
  name: string | undefined,
  defs: Map<string, Schema>,
): Schema {
  const { pattern, propertyNames, ...rest } = schema;
  const entries = Object.entries(rest).map(([keyword, member]) => [
    keyword,
    ["if", "then", "else", "items", "additionalProperties", "oneOf", "anyOf"].includes(keyword)
      ? toJsonSchema(member, defs)
      : ["properties", "dependentSchemas"].includes(keyword)
      ? propertiesOf(Object(member), defs)
      : member,
  ]);
  return withoutUndefined({
    ...Object.fromEntries(entries),
    ...pattern === undefined ? {} : patternOf(pattern, name),
    ...isObject(propertyNames) && {
      propertyNames: {
        ...toJsonSchema(propertyNames, defs) as Schema,
        not: { const: "__proto__" },
      },
    },
  });
}

/** Converts properties. Leaves out forbidden keys, because the object refuses unknown keys anyway. */
function propertiesOf(properties: object, defs: Map<string, Schema>): Schema {
  const allowed = Object.entries(properties).filter(([, { not }]) => not === undefined);
  return Object.fromEntries(allowed.map(([key, value]) => [key, toJsonSchema(value, defs)]));
}

function patternOf(grammar: unknown, name = ""): Schema {
  if (grammar instanceof RegExp) {
    return grammar.source === "^" ? {} : { pattern: portable(grammar) };
  }
  const pattern = PATTERNS[name];
  if (pattern === undefined) {
    throw new Error(`PATTERNS has no pattern for the name ${name}`);
  }
  return pattern;
}

/** Returns the source of a regular expression, changed so that it needs no flags. */
function portable({ source, ignoreCase, dotAll }: RegExp): string {
  let isInClass = false;
  const piece = /\[\^\]|\\(?:[pP]\{\w+\}|x[\da-f]{2}|.)|\(\?<?[:=!]|[a-z]-[a-z]|[^]/gi;
  return source.replaceAll(piece, (part) => {
    if (part === "[^]") return "[\\s\\S]";
    if (part === "[") isInClass = true;
    if (part === "]") isInClass = false;
    if (part === "." && dotAll && !isInClass) return "[\\s\\S]";
    if (!ignoreCase || !/^[a-z]/i.test(part)) return part;
    const cases = part.toLowerCase() + part.toUpperCase();
    return isInClass ? cases : `[${cases}]`;
  });
}

function sentence(wanted: unknown): string | undefined {
  if (typeof wanted !== "string" || /^an? (object|string|array of \w+)$/.test(wanted)) return;
  return `${wanted.charAt(0).toUpperCase()}${wanted.slice(1)}.`;
}

function withoutUndefined(schema: Schema): Schema {
  return Object.fromEntries(Object.entries(schema).filter(([, value]) => value !== undefined));
}

function patterns(): Readonly<Record<string, Schema>> {
  const simpleName = String.raw`[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?`;
  const server = (reserved: string) =>
    String.raw`(?!(?:${reserved})(?::|$))(?!execute_)(?![^:(]*(?:__|\.\.))${simpleName}`;
  const meta = "search|schema|call|batch";
  const tool = String.raw`[A-Za-z0-9_./-]+(?:[ &+'][A-Za-z0-9_./-]+)*`;
  const shortTool = String.raw`(?=[^(:]{1,128}(?:\(|$))${tool}`;
  const character = String.raw`(?:[^\\,() \p{Cc}]|\\[\\*,() ])`;
  const condition = String.raw`[\w$.\-]{1,64}=(?:${character}(?: *${character})*)?`;
  const conditions = String.raw`\((?:\{[\s\S]*\}|${condition}(?:, ?${condition}){0,15})\)`;
  const groups = `@(?:${
    [...PART_RULE_NAMES, READS_RULE_NAME].map((name) => name.slice(1)).join("|")
  }|method\\([\\w./$-]{1,128}\\))`;
  const loopback = String.raw`localhost|127\.\d+\.\d+\.\d+|\[::1\]`;
  const url = String.raw`(?:https://[^/?#@\s]+|http://(?:${loopback})(?::\d+)?)(?:[/?#]|$)`;
  return {
    rule: {
      pattern: `^(?:\\*|${server(meta)}:(?:\\*|${shortTool}(?:${conditions})?|${groups}))$`,
    },
    tool: { pattern: `^(?:\\*|${server(meta)}:(?:\\*|${shortTool}))$` },
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

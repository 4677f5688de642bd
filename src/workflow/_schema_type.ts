/**
 * Converts a JSON Schema to a TypeScript type. If TypeScript cannot express a schema, the type is
 * wider than the schema: every value that the schema allows has the type.
 *
 * @module
 */

import { asPlatformValue, numberOf } from "../core/exact_number.ts";
import { isObject, memberOf, objectOf, textsOf, visible } from "../core/json.ts";
import { resolveRef } from "../core/schema_ref.ts";

/** Options of `schemaType`. */
export interface TypeOptions {
  /**
   * Whether types also allow values that authors of schemas rarely intend, such as unlisted
   * properties. The type check allows them, because servers accept them.
   */
  readonly isLenient?: boolean;
  /** Whether a number may be a BigInt, for integers beyond 2^53 in arguments. */
  readonly takesBigInts?: boolean;
  /** Whether descriptions are written as comments. */
  readonly hasComments?: boolean;
}

/** A type, and whether it was shortened because it is too large. */
export interface WrittenType {
  readonly text: string;
  readonly isCut: boolean;
}

const ANY = "any";
const NEVER = "never";
const LONGEST = 8_000;
/** The depths of nesting that are tried until the type is short enough. */
const DEPTHS = [10, 5, 3, 2, 1];
const MOST_SCHEMAS = 2_000;
const MOST_PROPERTIES = 300;
const MOST_LITERALS = 200;
const MOST_CHOICES = 50;
const MOST_ITEMS = 50;
const LONGEST_NAME = 500;
const LONGEST_DOC = 300;
const IDENTIFIER = /^[A-Za-z_$][A-Za-z0-9_$]*$/;
const ONE_WORD = /^[A-Za-z]+$/;
const PRIMITIVES: Readonly<Record<string, string>> = {
  string: "string",
  number: "number",
  integer: "number",
  boolean: "boolean",
  null: "null",
};

/** Returns the type of a schema. The innermost parts of a large type become `any`. */
export function schemaType(schema: unknown, options: TypeOptions = {}): WrittenType {
  for (const depth of DEPTHS) {
    const writer = new TypeWriter(schema, { ...options, depth });
    const text = writer.type(schema);
    if (text.length <= LONGEST) return { text, isCut: writer.isCut };
  }
  return { text: ANY, isCut: true };
}

/** Returns a name as a key of a type. */
export function keyText(name: string): string {
  return IDENTIFIER.test(name) ? name : literalText(name);
}

/** Returns a text as a string literal in which every character is visible. */
export function literalText(text: string): string {
  return visible(JSON.stringify(text), Infinity);
}

/** Returns a comment with an untrusted text, which cannot end the comment. */
export function toComment(text: unknown, max = LONGEST_DOC): string {
  if (typeof text !== "string" || text.trim() === "") return "";
  return `/** ${visible(text.trim().replace(/\s+/g, " "), max).replaceAll("*/", "*\\/")} */ `;
}

/** Writes the types of one schema, with one size limit for all of them. */
class TypeWriter {
  /** Whether the type was shortened. */
  isCut = false;
  readonly #options: TypeOptions & { readonly depth: number };
  /** The schema in which references are resolved. */
  #root: unknown;
  #remaining = MOST_SCHEMAS;

  constructor(root: unknown, options: TypeOptions & { readonly depth: number }) {
    this.#root = root;
    this.#options = options;
  }

  type(schema: unknown, depth = 0): string {
    if (schema === false) return NEVER;
    if (!isObject(schema)) return ANY;
    if (depth > this.#options.depth || this.#remaining-- <= 0) return this.#cutToAny();
    const outer = this.#root;
    // References inside a schema with its own `$id` are resolved in that schema.
    if (depth > 0 && typeof schema.$id === "string") this.#root = schema;
    try {
      const text = this.#constrained(schema, depth);
      return schema.nullable === true ? union([text, "null"]) : text;
    } finally {
      this.#root = outer;
    }
  }

  #constrained(schema: Record<string, unknown>, depth: number): string {
    const { $ref, anyOf, oneOf, allOf } = schema;
    if (typeof $ref === "string") return this.type(resolveRef(this.#root, $ref), depth + 1);
    const parts = [anyOf, oneOf].filter(Array.isArray).map((part) =>
      this.#unionOf(part, depth + 1)
    );
    if (Array.isArray(allOf)) {
      parts.push(...allOf.slice(0, MOST_CHOICES).map((part) => this.type(part, depth + 1)));
    }
    if (Array.isArray(schema.enum)) parts.push(this.#literals(schema.enum));
    else if ("const" in schema) parts.push(this.#literals([schema.const]));
    else parts.push(this.#declaredType(schema, depth));
    return intersection(parts);
  }

  #unionOf(choices: readonly unknown[], depth: number): string {
    if (choices.length > MOST_CHOICES) return this.#cutToAny();
    return union(choices.map((part) => this.type(part, depth)));
  }

  #literals(values: readonly unknown[]): string {
    if (values.length > MOST_LITERALS) return this.#cutToAny();
    return union(values.map((value) => {
      if (typeof value === "string") {
        return value.length > LONGEST_NAME ? "string" : literalText(value);
      }
      return literalOf(asPlatformValue(value));
    }));
  }

  #declaredType(schema: Record<string, unknown>, depth: number): string {
    const { type, properties, items, prefixItems } = schema;
    if (Array.isArray(type)) {
      return union(type.map((part) => this.#typeByName(part, schema, depth)));
    }
    if (type !== undefined) return this.#typeByName(type, schema, depth);
    // A schema without "type" also allows values of all other types, which authors do not intend.
    if (this.#options.isLenient === true) return ANY;
    if (isObject(properties)) return this.#object(schema, depth);
    return items === undefined && prefixItems === undefined ? ANY : this.#array(schema, depth);
  }

  #typeByName(type: unknown, schema: Record<string, unknown>, depth: number): string {
    if (type === "object") return this.#object(schema, depth);
    if (type === "array") return this.#array(schema, depth);
    const plain = typeof type === "string" && memberOf(PRIMITIVES, type) || ANY;
    return plain === "number" && this.#options.takesBigInts === true ? "number | bigint" : plain;
  }

  #object(schema: Record<string, unknown>, depth: number): string {
    const { additionalProperties: more, patternProperties } = schema;
    const properties = objectOf(schema.properties);
    const required = new Set(textsOf(schema.required));
    const names = [...new Set([...Object.keys(properties), ...required])];
    const listedNames = names.slice(0, MOST_PROPERTIES).filter((name) =>
      name.length <= LONGEST_NAME
    );
    const isShort = listedNames.length < names.length;
    if (isShort) this.isCut = true;
    const members = listedNames.map((name) => {
      const property = memberOf(properties, name);
      const doc = this.#options.hasComments === true && isObject(property)
        ? toComment(property.description)
        : "";
      const mark = required.has(name) ? "" : "?";
      return `${doc}${keyText(name)}${mark}: ${this.type(property, depth + 1)}`;
    });
    const isMap = names.length === 0 && isObject(more) && !isObject(patternProperties);
    const isWide = isShort || isObject(more) || more === true || isObject(patternProperties) ||
      more !== false && (this.#options.isLenient === true || names.length === 0);
    if (isMap) members.push(`[key: string]: ${this.type(more, depth + 1)}`);
    else if (isWide) members.push("[key: string]: any");
    return members.length === 0 ? "{}" : `{ ${members.join("; ")} }`;
  }

  #array(schema: Record<string, unknown>, depth: number): string {
    const { items, prefixItems, additionalItems, minItems } = schema;
    const tuple = [prefixItems, items].find(Array.isArray);
    if (tuple === undefined) return arrayOf(this.type(items, depth + 1));
    if (tuple.length > MOST_ITEMS) return this.#cutToAny();
    const minimum = numberOf(minItems) ?? 0;
    const members = tuple.map((part, at) => {
      const type = this.type(part, depth + 1);
      return at < minimum ? type : `${parenthesize(type)}?`;
    });
    const more = Array.isArray(items) ? additionalItems : items;
    if (more !== false) members.push(`...${arrayOf(this.type(more, depth + 1))}`);
    return `[${members.join(", ")}]`;
  }

  #cutToAny(): string {
    this.isCut = true;
    return ANY;
  }
}

/** Returns the literal type of a value that is not a string. */
function literalOf(value: unknown): string {
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "number" && !Number.isFinite(value)) return "number";
  return typeof value === "object" && value !== null ? ANY : String(value);
}

function union(types: readonly string[]): string {
  const all = new Set(types.filter((type) => type !== NEVER));
  if (all.has(ANY)) return ANY;
  return [...all].join(" | ") || NEVER;
}

/** Returns the intersection of types. */
function intersection(types: readonly string[]): string {
  const all = [...new Set(types.filter((type) => type !== ANY))];
  if (all.length <= 1) return all[0] ?? ANY;
  return all.map(parenthesize).join(" & ");
}

function arrayOf(type: string): string {
  return ONE_WORD.test(type) ? `${type}[]` : `Array<${type}>`;
}

function parenthesize(type: string): string {
  return ONE_WORD.test(type) ? type : `(${type})`;
}

/**
 * Writes a tool's schema as one short line in the style of TypeScript.
 *
 * @module
 */

import { numberText } from "../core/exact_number.ts";
import { isObject, listOf, visible } from "../core/json.ts";
import { resolveRef, schemaAt } from "../core/schema_ref.ts";
import type { ToolDefinition } from "../protocol/tool.ts";

const LONGEST = 300;
/** Callers need the name of a tool, so it is shown in full. */
const LONGEST_NAME = 128;
const LONGEST_PROPERTY = 64;
const LONGEST_LITERAL = 32;
const MOST_LITERALS = 8;
const MOST_CHOICES = 4;
const MOST_PARAMETERS = 24;
const DEEPEST = 3;
/** The maximum number of nested schemas that are read. More would not fit in a line. */
const MOST_SCHEMAS = 200;

const IDENTIFIER = /^[A-Za-z_$][A-Za-z0-9_$]{0,63}$/;
/** Optional parameters are written without `| null`. */
const OR_NULL = / \| null$/;
const PRIMITIVES = ["string", "number", "boolean", "null"];

/**
 * Returns the signature of a tool, `read_file(path, head?: number): string`, with at most `longest`
 * characters. A parameter without a type is a string. The type of the result is left out if it does
 * not fit.
 */
export function signatureOf(tool: ToolDefinition, longest = LONGEST): string {
  const input = new SignatureWriter(tool.inputSchema);
  const result = tool.outputSchema === undefined
    ? ""
    : `: ${new SignatureWriter(tool.outputSchema).type(tool.outputSchema)}`;
  const call = `${visible(tool.name, LONGEST_NAME)}(${input.parameters(tool.inputSchema)})`;
  // The beginning of a result's type would be useless, so a long type is left out.
  const text = call.length + result.length > longest ? call : `${call}${result}`;
  return text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
}

/**
 * Returns the name of a tool and its required parameters, `read_file(path, …)`, with at most
 * `longest` characters. Objects have no properties; other parameters are "…".
 */
export function shortSignatureOf(tool: ToolDefinition, longest = LONGEST): string {
  const input = new SignatureWriter(tool.inputSchema, { isShort: true });
  const text = `${visible(tool.name, LONGEST_NAME)}(${input.parameters(tool.inputSchema)})`;
  return text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
}

class SignatureWriter {
  readonly #root: unknown;
  /** Whether only required parameters are written, and no properties of objects. */
  readonly #isShort: boolean;
  #remaining = MOST_SCHEMAS;

  constructor(root: unknown, { isShort = false } = {}) {
    this.#root = root;
    this.#isShort = isShort;
  }

  /** Returns the properties of an object's schema, the required ones first. */
  parameters(schema: unknown, depth = 0): string {
    if (!isObject(schema) || !isObject(schema.properties)) return "";
    const required = new Set<unknown>(listOf(schema.required));
    const names = Object.keys(schema.properties)
      .sort((a, b) => Number(required.has(b)) - Number(required.has(a)));
    const listed = this.#isShort ? names.filter((name) => required.has(name)) : names;
    const parameters = listed.slice(0, MOST_PARAMETERS).map((name) => {
      const isRequired = required.has(name);
      const type = this.type(schemaAt(schema.properties, name), depth);
      const shown = isRequired ? type : type.replace(OR_NULL, "");
      // Most parameters are strings, so the type "string" is left out.
      return `${propertyText(name)}${isRequired ? "" : "?"}${
        shown === "string" ? "" : `: ${shown}`
      }`;
    });
    return [...parameters, ...(names.length > parameters.length ? ["…"] : [])].join(", ");
  }

  /** Returns the type of a schema; `unknown` if it cannot be expressed. */
  type(schema: unknown, depth = 0): string {
    if (!isObject(schema) || depth > DEEPEST || this.#remaining-- <= 0) return "unknown";
    if (typeof schema.$ref === "string") {
      return this.type(resolveRef(this.#root, schema.$ref), depth + 1);
    }
    if (Array.isArray(schema.enum)) return literalUnion(schema.enum);
    if ("const" in schema) return literalText(schema.const);
    const choices = [schema.anyOf, schema.oneOf].find(Array.isArray);
    if (choices) return this.#union(choices, depth + 1);
    if (Array.isArray(schema.allOf)) return this.type(schema.allOf[0], depth + 1);
    if (Array.isArray(schema.type)) {
      return this.#union(schema.type.map((type) => ({ ...schema, type })), depth + 1);
    }
    return this.#typeByName(schema, depth);
  }

  #typeByName(schema: Record<string, unknown>, depth: number): string {
    const { type } = schema;
    if (type === "array") {
      const item = this.type(schema.items, depth + 1);
      return item.includes(" ") && !item.startsWith("{") ? `(${item})[]` : `${item}[]`;
    }
    if (type === "object" || isObject(schema.properties)) {
      const isNested = depth < DEEPEST && !this.#isShort;
      const inside = isNested ? this.parameters(schema, depth + 1) : "";
      return inside === "" ? "object" : `{ ${inside} }`;
    }
    if (type === "integer") return "number";
    return PRIMITIVES.find((plain) => plain === type) ?? "unknown";
  }

  #union(choices: readonly unknown[], depth: number): string {
    const types = new Set(choices.slice(0, MOST_CHOICES).map((choice) => this.type(choice, depth)));
    return [...types, ...(choices.length > MOST_CHOICES ? ["…"] : [])].join(" | ") || "unknown";
  }
}

function propertyText(name: string): string {
  return IDENTIFIER.test(name) ? name : JSON.stringify(visible(name, LONGEST_PROPERTY));
}

function literalUnion(values: readonly unknown[]): string {
  const texts = values.slice(0, MOST_LITERALS).map(literalText);
  return [...texts, ...(values.length > texts.length ? ["…"] : [])].join(" | ") || "never";
}

function literalText(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(visible(value, LONGEST_LITERAL));
  const number = numberText(value);
  if (number !== undefined) return visible(number, LONGEST_LITERAL);
  return typeof value === "object" && value !== null ? "object" : String(value);
}

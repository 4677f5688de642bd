/**
 * The texts of a tool's definition that reach a model, as a question shows them before the first
 * use of the tool.
 *
 * @module
 */

import { type Json, objectOf } from "../core/json.ts";
import type { ToolDefinition } from "../core/tool.ts";
import { unusualIn } from "./_unusual.ts";

/** Begins each line that a server wrote, so that none looks like a line of PML. */
const PREFIX = "| ";
/** Members whose values are shown as JSON, whatever they are: a model reads them all. */
const VALUES: ReadonlySet<string> = new Set(["enum", "const", "default", "examples", "example"]);
/** Members of schemas and annotations that say nothing if their value is a number or a switch. */
const SILENT: ReadonlySet<string> = new Set([
  ...["additionalProperties", "unevaluatedProperties", "items", "uniqueItems", "nullable"],
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  ...["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"],
  ...["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint", "deprecated"],
  ...["readOnly", "writeOnly"],
]);
/** Begins a remark of PML on the lines before it. */
const MARK = "^ unusual: ";
const TYPES = /^(?:string|number|integer|boolean|object|array|null)$/;
const DIALECT = /^https?:\/\/json-schema\.org\/[\w/.-]{1,60}#?$/;
/** Members that hold schemas by names which the server chose. */
const NAMED: ReadonlySet<string> = new Set(["properties", "$defs", "definitions"]);

/** Returns the lines of a question with all texts of a definition, and marks for the unusual. */
export function definitionLines(definition: ToolDefinition): readonly string[] {
  const { name: _, title, description, inputSchema, ...rest } = definition;
  const lines: string[] = [];
  const add = (label: string, text: string) => lines.push(...textLines(label, text));
  if (title !== undefined) collect(title, "title", add);
  if (description !== undefined) collect(description, "description", add);
  collect(inputSchema, "parameters", add);
  for (const [key, value] of Object.entries(rest)) {
    if (value !== undefined && !isPlain(key, value)) collect(value, key, add);
  }
  return lines;
}

/** Returns whether a line is a remark of PML on the text of a server. */
export function isMark(line: string): boolean {
  return line.startsWith(MARK);
}

type Add = (label: string, text: string) => void;

function collect(value: Json, label: string, add: Add): void {
  if (typeof value === "string") return add(label, value);
  if (typeof value !== "object" || value === null) return add(label, JSON.stringify(value));
  if (Array.isArray(value)) {
    return value.forEach((one, at) => collect(one, `${label} ${at + 1}`, add));
  }
  const members = objectOf(value);
  for (const [key, part = null] of Object.entries(members)) {
    if (VALUES.has(key)) add(`${label} ${key}`, JSON.stringify(part));
    else if (NAMED.has(key)) {
      collectNamed(part, `${label}${key === "properties" ? "" : ` ${key}`}`, add);
    } else if (!isPlain(key, part) && !isOfProperties(key, part, members.properties)) {
      collect(part, `${label} ${shownKey(key)}`, add);
    }
  }
}

/** Collects members whose names the server chose. A name is a text, too. */
function collectNamed(named: Json, label: string, add: Add): void {
  for (const [name, schema] of Object.entries(objectOf(named))) {
    let isShown = false;
    collect(schema ?? null, `${label} ${JSON.stringify(name)}`, (...line) => {
      isShown = true;
      add(...line);
    });
    if (!isShown) add(`${label} ${JSON.stringify(name)}`, "");
  }
}

/** Returns whether a member has no text that a model could take for instructions. */
function isPlain(key: string, value: Json): boolean {
  if (key === "type") return [value].flat().every((one) => TYPES.test(String(one)));
  if (key === "$schema") return typeof value === "string" && DIALECT.test(value);
  if (key === "format") return typeof value === "string" && /^[a-z-]{1,24}$/.test(value);
  return SILENT.has(key) && (typeof value === "number" || typeof value === "boolean");
}

/** Returns whether a member is a list of properties whose names are shown already. */
function isOfProperties(key: string, value: Json, properties: Json | undefined): boolean {
  return key === "required" && Array.isArray(value) &&
    value.every((name) => typeof name === "string" && Object.hasOwn(objectOf(properties), name));
}

function shownKey(key: string): string {
  return /^[$\w-]{1,40}$/.test(key) ? key : JSON.stringify(key);
}

function textLines(label: string, text: string): readonly string[] {
  const [first = "", ...more] = text.split(/\r\n|\r|\n/);
  const marks = unusualIn(`${label} ${text}`);
  return [
    `${PREFIX}${label}${first === "" && more.length === 0 ? "" : `: ${first}`}`,
    ...more.map((line) => `${PREFIX}  ${line}`),
    ...(marks.length === 0 ? [] : [`${MARK}${marks.join(", ")}`]),
  ];
}

/**
 * The texts of a tool's definition that reach a model, as a question shows them before the first
 * use of the tool.
 *
 * @module
 */

import { isExactNumber, isJsonNumber } from "../core/exact_number.ts";
import { isObject, type Json, type JsonObject, objectOf } from "../core/json.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { findKind } from "../servers/kinds.ts";
import { unusualIn } from "./_unusual_text.ts";

/** The prefix of lines with text of a server, so that they do not look like lines of PML. */
const PREFIX = "| ";
/** Members whose values are shown as JSON, because a model reads all of them. */
const VALUES: ReadonlySet<string> = new Set(["enum", "const", "default", "examples", "example"]);
/** Members of schemas and annotations that need no line if they are numbers or booleans. */
const SILENT: ReadonlySet<string> = new Set([
  ...["additionalProperties", "unevaluatedProperties", "items", "uniqueItems", "nullable"],
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  ...["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"],
  ...["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint", "deprecated"],
  ...["readOnly", "writeOnly"],
]);
/** The beginning of PML's remark on the lines before it. */
const MARK = "^ unusual: ";
const TYPES = /^(?:string|number|integer|boolean|object|array|null)$/;
const DIALECT =
  /^https?:\/\/json-schema\.org\/(?:draft-0[3-7]\/|draft\/(?:2019-09|2020-12)\/)?schema#?$/;
/** The formats of JSON Schema and OpenAPI. Any other format is a text of the server. */
const FORMATS: ReadonlySet<string> = new Set([
  ...["date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname"],
  ...["ipv4", "ipv6", "uri", "uri-reference", "iri", "iri-reference", "uuid", "uri-template"],
  ...["json-pointer", "relative-json-pointer", "regex", "url", "path", "byte", "binary"],
  ...["int32", "int64", "uint32", "uint64", "int", "uint", "float", "double", "decimal"],
]);
/** Members that contain schemas under names that the server chose. */
const NAMED: ReadonlySet<string> = new Set(["properties", "$defs", "definitions"]);
/** Names of members in the protocol and JSON Schema. Any other name is a text of the server. */
const KNOWN: ReadonlySet<string> = new Set([
  ...[...SILENT, ...NAMED, "type", "required", "prefixItems", "contains", "propertyNames"],
  ...["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "patternProperties"],
  ...["dependentSchemas", "dependentRequired", "dependencies"],
  ...["outputSchema", "annotations", "execution", "icons", "_meta"],
]);
/** The deepest level whose members each have a line. Deeper levels are shown as JSON. */
const DEPTH_MAX = 64;
/**
 * The maximum length of the lines of a definition, in characters. Each line repeats the path to its
 * text, so the lines of a small definition could need gigabytes.
 */
const LINES_MAX = 1_000_000;

/** Returns the question's lines with all texts of a definition, and remarks on unusual texts. */
export function definitionLines(definition: ToolDefinition): readonly string[] {
  return linesOf(definition) ?? textLines("definition", JSON.stringify(definition));
}

/** Returns one or more lines for each text; undefined if they have too many characters. */
function linesOf(definition: ToolDefinition): readonly string[] | undefined {
  const { name: _, title, description, inputSchema, ...rest } = definition;
  const texts: (readonly [label: string, text: string])[] = [];
  let size = 0;
  const add: Add = (label, text) => {
    size += label.length + text.length;
    if (size <= LINES_MAX) texts.push([label, text]);
  };
  if (title !== undefined) collect(title, { label: "title", depth: 0 }, add);
  if (description !== undefined) collect(description, { label: "description", depth: 0 }, add);
  collect(inputSchema, { label: "parameters", depth: 0 }, add);
  collectMembers(rest as JsonObject, { label: "", depth: 0 }, add);
  return size > LINES_MAX ? undefined : texts.flatMap((text) => textLines(...text));
}

/** Returns whether a line is a remark of PML on the text of a server. */
export function isMark(line: string): boolean {
  return line.startsWith(MARK);
}

/**
 * Returns whether a question need not show the texts of a definition. Built-in servers describe
 * themselves in PML's own words; the user saw a capability when it was saved, and any other text if
 * an earlier question showed it.
 */
export function isKnownToUser(
  server: { readonly kind: string; readonly origin: { readonly isShipped: boolean } },
  hash: string,
  approvals: { hasRead(definition: string): boolean },
): boolean {
  return server.origin.isShipped || findKind(server.kind)?.isSaved === true ||
    approvals.hasRead(hash);
}

type Add = (label: string, text: string) => void;

/** The names around a value, and how many objects and lists are around it. */
interface TextDepth {
  readonly label: string;
  readonly depth: number;
}

function collect(value: Json, { label, depth }: TextDepth, add: Add): void {
  if (typeof value === "string") return add(label, value);
  if (typeof value !== "object" || value === null || isExactNumber(value) || depth > DEPTH_MAX) {
    return add(label, JSON.stringify(value));
  }
  if (!Array.isArray(value)) return collectMembers(objectOf(value), { label, depth }, add);
  value.forEach((item, index) =>
    collect(item, { label: `${label} ${index + 1}`, depth: depth + 1 }, add)
  );
}

/** Collects the members of an object. A name of the server is a text, too. */
function collectMembers(members: JsonObject, { label, depth }: TextDepth, add: Add): void {
  const below = (around: string, name: string) => ({
    label: around === "" ? name : `${around} ${name}`,
    depth: depth + 1,
  });
  for (const [key, part = null] of Object.entries(members)) {
    const place = below(label, shownKey(key));
    if (VALUES.has(key)) add(place.label, JSON.stringify(part));
    else if (NAMED.has(key) && isObject(part)) {
      const around = key === "properties" ? label : place.label;
      for (const [name, schema = null] of Object.entries(objectOf(part))) {
        collectNamed(schema, below(around, JSON.stringify(name)), add);
      }
    } else if (hasNoText(key, part) || listsShownNames(key, part, members.properties)) continue;
    else if (KNOWN.has(key)) collect(part, place, add);
    else collectNamed(part, place, add);
  }
}

/** Collects a member whose name comes from the server. The name is shown even without a text. */
function collectNamed(value: Json, place: TextDepth, add: Add): void {
  let isShown = false;
  collect(value, place, (...line) => {
    isShown = true;
    add(...line);
  });
  if (!isShown) add(place.label, "");
}

/** Returns whether a member has no text that a model could take for instructions. */
function hasNoText(key: string, value: Json): boolean {
  if (key === "type") {
    return [value].flat().every((type) => typeof type === "string" && TYPES.test(type));
  }
  if (key === "$schema") return typeof value === "string" && DIALECT.test(value);
  if (key === "format") return typeof value === "string" && FORMATS.has(value);
  return SILENT.has(key) && (isJsonNumber(value) || typeof value === "boolean");
}

/** Returns whether a member is a list of properties whose names are shown already. */
function listsShownNames(key: string, value: Json, properties: Json | undefined): boolean {
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

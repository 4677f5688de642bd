/**
 * Checks values against JSON Schemas with `@cfworker/json-schema`, which interprets schemas and
 * needs no `eval`. A pattern of a schema can take forever: use this only for PML's own schemas, or
 * in a child that can be killed.
 *
 * @module
 */

import { dereference, type OutputUnit, type Schema, validate } from "@cfworker/json-schema";
import { visible } from "./json.ts";

type SchemaDraft = NonNullable<Parameters<typeof validate>[2]>;

/** The maximum number of problems that a message names. */
const PROBLEMS_MAX = 5;
const DRAFTS: readonly (readonly [address: RegExp, draft: SchemaDraft])[] = [
  [/^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/, "2020-12"],
  [/^https?:\/\/json-schema\.org\/draft\/2019-09\/schema#?$/, "2019-09"],
  [/^https?:\/\/json-schema\.org\/draft-0[67]\/schema#?$/, "7"],
  [/^https?:\/\/json-schema\.org\/draft-04\/schema#?$/, "4"],
  [/^https?:\/\/json-schema\.org\/schema#?$/, "2020-12"],
];
/** Keywords whose errors are only about inner values. The more precise errors follow them. */
const OUTER_KEYWORDS = new Set([
  ..."properties patternProperties additionalProperties items prefixItems allOf $ref".split(" "),
  ..."$dynamicRef $recursiveRef additionalItems dependentSchemas if then else".split(" "),
  ..."propertyNames dependencies unevaluatedProperties unevaluatedItems".split(" "),
]);
/** Messages of the library, and the clearer text that replaces each. */
const OWN_MESSAGES: readonly (readonly [libraryMessage: RegExp, text: string])[] = [
  [/^Instance does not have required property "(.*)"$/s, "Missing argument: $1"],
  [
    /^Property "(.*)" does not match (?:additional|unevaluated) properties schema$/s,
    '"$1" is unknown',
  ],
  [/^Instance type "(.*)" is invalid\. Expected (.*)$/s, "the value is of type $1, not $2"],
  [/^False boolean schema$/, "no value is allowed"],
  [/^(?:Instance|String)\b/, "the value"],
];

/** A JSON Schema of draft-04, 06, 07, 2019-09 or 2020-12. */
export class JsonSchema {
  readonly #schema: Schema;
  readonly #draft: SchemaDraft;
  readonly #lookup: Record<string, Schema | boolean>;

  /** Throws an `Error` with the reason if the schema cannot be used. */
  constructor(schema: Readonly<Record<string, unknown>>) {
    const { $schema = "https://json-schema.org/schema" } = schema;
    const draft = DRAFTS.find(([address]) => address.test(String($schema)))?.[1];
    if (draft === undefined) throw new Error(`$schema ${JSON.stringify($schema)} is not supported`);
    this.#draft = draft;
    // The library writes into the schema.
    this.#schema = structuredClone(schema);
    this.#lookup = dereference(this.#schema);
    for (const part of Object.values(this.#lookup)) this.#assertUsable(part);
  }

  /** Returns why a value does not match; undefined if it does. Throws as the constructor does. */
  findProblem(value: unknown): string | undefined {
    if (value === undefined) return "there is no value";
    const { valid, errors } = validate(value, this.#schema, this.#draft, this.#lookup, false);
    if (valid) return undefined;
    const preciseErrors = errors.filter((error, index) => {
      const [before, after] = [errors[index - 1], errors[index + 1]];
      return !isExplained(error, after) && !(isClosed(before) && error.keyword === "false");
    });
    const texts = [
      ...new Set(preciseErrors.map((error) => textOf(error) + this.#patternDescription(error))),
    ];
    const more = texts.length > PROBLEMS_MAX
      ? [`and ${texts.length - PROBLEMS_MAX} more problems`]
      : [];
    return visible([...texts.slice(0, PROBLEMS_MAX), ...more].join("; "), 500);
  }

  /**
   * Returns the schema's description of a text with a pattern, because few users read patterns.
   */
  #patternDescription({ keyword, keywordLocation }: OutputUnit): string {
    if (keyword !== "pattern") return "";
    const [, ...path] = keywordLocation.split("/");
    let schema: unknown = this.#schema;
    for (const part of path.slice(0, -1)) {
      const name = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
      schema = Object(schema)[name];
    }
    const { description } = Object(schema);
    return typeof description === "string" ? ` (${description})` : "";
  }

  #assertUsable(schema: Schema | boolean): void {
    if (typeof schema !== "object" || schema === null) return;
    const { $ref, pattern, patternProperties } = schema;
    const target = schema.__absolute_ref__ ?? $ref;
    if (typeof target === "string" && !(target in this.#lookup)) {
      throw new Error(`$ref ${JSON.stringify($ref)} leads to no schema`);
    }
    for (const source of [pattern, ...Object.keys(patternProperties ?? {})]) {
      if (source !== undefined) new RegExp(source, "u");
    }
  }
}

/** Returns whether the next error explains this one more precisely. */
function isExplained(
  { keyword, error }: OutputUnit,
  next: OutputUnit | undefined,
): boolean {
  if (next === undefined) return false;
  // A property that a schema does not allow is named by the outer error only.
  if (isClosed({ keyword })) return next.keyword !== "false";
  return OUTER_KEYWORDS.has(keyword) && !error.startsWith("Property name");
}

/** Returns whether an error is about properties that no other keyword describes. */
function isClosed(error: Pick<OutputUnit, "keyword"> | undefined): boolean {
  return /^(?:additional|unevaluated)Properties$/.test(error?.keyword ?? "");
}

function textOf({ instanceLocation, error }: OutputUnit): string {
  const place = decodeURI(instanceLocation).slice(2).split("/")
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .join(".");
  let text = error.replace(/\.$/, "");
  for (const [pattern, ownText] of OWN_MESSAGES) text = text.replace(pattern, ownText);
  const message = text.startsWith("the value is of type") ? text.replaceAll('"', "") : text;
  return place === "" ? message : `${place}: ${message}`;
}

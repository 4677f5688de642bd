/**
 * The module that checks values against schemas from servers and registries. It runs in a child
 * without grants.
 *
 * @module
 */

import { JsonSchema } from "../../core/json_schema.ts";
import { withNumbers } from "./exact_values.ts";

export { JsonSchema };

/** A value to check, and its schema. */
export interface SchemaCheck {
  /** The number that PML gave the schema. */
  readonly id: number;
  /** The schema, if the child does not have it yet. */
  readonly schema?: Readonly<Record<string, unknown>>;
  /** Whether the child drops its cached schemas first. */
  readonly isReset?: boolean;
  readonly value?: unknown;
}

/** The result of a check: empty, or why the value does not match, or why the schema is unusable. */
export interface SchemaAnswer {
  readonly wrong?: string;
  readonly unusable?: string;
}

const schemas = new Map<number, JsonSchema>();

/** Checks a value. */
export function check(request: SchemaCheck): SchemaAnswer {
  // The schema library does not accept BigInts.
  const { id, schema, isReset, ...rest } = withNumbers(request) as SchemaCheck;
  try {
    if (isReset) schemas.clear();
    if (schema !== undefined) schemas.set(id, new JsonSchema(schema));
    const wrong = "value" in rest ? schemas.get(id)?.findProblem(rest.value) : undefined;
    return wrong === undefined ? {} : { wrong };
  } catch (error) {
    return { unusable: error instanceof Error ? error.message : String(error) };
  }
}

/** Returns whether a text matches a pattern by the rules of JSON Schema. */
export function matches(
  { text, pattern }: { readonly text: string; readonly pattern: string },
): boolean {
  return new RegExp(pattern, "u").test(text);
}

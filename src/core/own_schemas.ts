/**
 * Checks values in this process: against PML's own schemas, and plain ones.
 *
 * @module
 */

import { withRoundedNumbers } from "./exact_number.ts";
import type { JsonObject } from "./json.ts";
import type { JsonSchema } from "./json_schema.ts";
import type { Maybe } from "./maybe.ts";

type SchemaModule = typeof import("./json_schema.ts");

/** Checks values, and keeps the schemas that it has read. */
export class OwnSchemas {
  readonly #schemas = new WeakMap<JsonObject, JsonSchema>();
  #library: SchemaModule | undefined;

  /** Returns why a value does not match a schema; undefined if it does. */
  wrong(schema: JsonObject, value: unknown): Maybe<string | undefined> {
    if (this.#library !== undefined) return this.#wrong(this.#library, schema, value);
    // A start does not need the library.
    return import("./json_schema.ts").then((library) =>
      this.#wrong(this.#library = library, schema, value)
    );
  }

  #wrong({ JsonSchema }: SchemaModule, schema: JsonObject, value: unknown): string | undefined {
    const validator = this.#schemas.get(schema) ?? new JsonSchema(schema);
    this.#schemas.set(schema, validator);
    // The library supports only platform numbers.
    return validator.wrong(withRoundedNumbers(value));
  }
}

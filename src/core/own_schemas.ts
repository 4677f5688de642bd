/**
 * Checks values in this process, against PML's own schemas and against plain schemas of others
 * (`plain_schema.ts`).
 *
 * @module
 */

import { withRoundedNumbers } from "./exact_number.ts";
import type { JsonObject } from "./json.ts";
import type { JsonSchema } from "./json_schema.ts";
import type { Maybe } from "./maybe.ts";

type SchemaModule = typeof import("./json_schema.ts");

/** Checks values, and caches the compiled schemas. */
export class OwnSchemas {
  readonly #schemas = new WeakMap<JsonObject, JsonSchema>();
  #library: SchemaModule | undefined;

  /** Returns why a value does not match a schema; undefined if it does. */
  findProblem(schema: JsonObject, value: unknown): Maybe<string | undefined> {
    if (this.#library !== undefined) return this.#validate(this.#library, schema, value);
    // Loaded on demand, because a start of PML does not need the library.
    return import("./json_schema.ts").then((library) =>
      this.#validate(this.#library = library, schema, value)
    );
  }

  #validate({ JsonSchema }: SchemaModule, schema: JsonObject, value: unknown): string | undefined {
    const validator = this.#schemas.get(schema) ?? new JsonSchema(schema);
    this.#schemas.set(schema, validator);
    // The library supports only platform numbers.
    return validator.findProblem(withRoundedNumbers(value));
  }
}

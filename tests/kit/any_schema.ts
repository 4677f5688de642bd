/**
 * A schema that accepts every value unchanged: the SDK requires one for requests that it passes on.
 *
 * @module
 */

import type { JsonObject } from "../../src/core/json.ts";

/** Accepts every value. */
export const ANY = {
  "~standard": {
    version: 1 as const,
    vendor: "pml",
    validate: (value: unknown): { readonly value: JsonObject } => ({ value: value as JsonObject }),
  },
};

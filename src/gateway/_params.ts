/**
 * Reads the params of requests.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";

/** Returns a string of the params. Throws `BAD_REQUEST` if it is missing or of another type. */
export function requiredText(params: JsonObject, key: string): string {
  const value = params[key];
  if (typeof value === "string") return value;
  throw invalidParams(`${key} must be a string`);
}

/** Returns an optional string of the params. Throws `BAD_REQUEST` if it is of another type. */
export function optionalText(params: JsonObject, key: string): string | undefined {
  return params[key] === undefined ? undefined : requiredText(params, key);
}

/** Returns the error of a request with invalid params. */
export function invalidParams(why: string): PmlError {
  return new PmlError("BAD_REQUEST", `Cannot read the request: ${why}`);
}

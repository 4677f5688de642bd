/**
 * Reads the params of requests.
 *
 * @module
 */

import { isMetaTool } from "./meta_tools.ts";
import { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";

/** Returns a string of the params. Throws `BAD_REQUEST` if it is missing or of another type. */
export function text(params: JsonObject, key: string): string {
  const value = params[key];
  if (typeof value === "string") return value;
  throw invalid(`${key} must be a string`);
}

/** Returns an optional string of the params. Throws `BAD_REQUEST` if it is of another type. */
export function optionalText(params: JsonObject, key: string): string | undefined {
  return params[key] === undefined ? undefined : text(params, key);
}

/** Returns the error of a request with invalid params. */
export function invalid(why: string): PmlError {
  return new PmlError("BAD_REQUEST", `Cannot read the request: ${why}`);
}

/** Names what the answer to a request is counted as; nothing for what is no list and no call. */
export function countedAs(
  method: string,
  { params, exposure }: { readonly params: JsonObject; readonly exposure: string },
): string | undefined {
  if (method === "tools/list") return `${method} ${exposure}`;
  if (method !== "tools/call") return undefined;
  const { name } = params;
  return typeof name === "string" && isMetaTool(name) ? name : method;
}

/**
 * Converts values of SQLite to JSON and back.
 *
 * @module
 */

import type { SqlParameters, SqlValue } from "../../src/sandbox/host.ts";

/** A value in JSON. Bytes are encoded as base64. */
export type Value = null | boolean | number | string | { readonly base64: string };
/** The values of a statement, in order or by name. */
export type Parameters = readonly Value[] | Readonly<Record<string, Value>>;

/** Returns a value of SQLite as JSON. */
export function toJsonValue(value: SqlValue): Value {
  if (value instanceof Uint8Array) return { base64: value.toBase64() };
  const isPlain = typeof value !== "bigint" && !(typeof value === "number" && !isFinite(value));
  return isPlain ? value : String(value);
}

/** Returns the values to bind. */
export function bindings(parameters: Parameters = []): SqlParameters {
  const toSqlValue = (value: Value): SqlValue =>
    typeof value === "boolean" ? Number(value) : Object(value) === value
      // the only object that the schema allows
      ? Uint8Array.fromBase64((value as { base64: string }).base64)
      : value as SqlValue;
  if (Array.isArray(parameters)) return parameters.map(toSqlValue);
  const entries = Object.entries(parameters).map(([name, value]) => [name, toSqlValue(value)]);
  return Object.fromEntries(entries);
}

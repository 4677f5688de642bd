/**
 * Finds values of code that are not plain JSON, because JSON would silently change them.
 *
 * @module
 */

import { parseWithBigInts } from "./exact_values.ts";

const stringify = JSON.stringify;

/** A value as plain JSON, or why it is not plain JSON. */
export type PlainJson =
  | { readonly value: unknown; readonly why?: undefined }
  | { readonly why: string };

/** Returns a copy of a value as plain JSON. */
export function plainText(value: unknown): PlainJson {
  let why: string | undefined;
  function check(this: unknown, key: string, item: unknown): unknown {
    why ??= whyNot(key, (this as Record<string, unknown>)[key]);
    return why === undefined ? item : null;
  }
  try {
    const text = stringify(value, check);
    if (why !== undefined) return { why };
    return { value: text === undefined ? null : parseWithBigInts(text) };
  } catch (error) {
    const message = error instanceof Error ? error.message.split("\n", 1)[0] : "it cannot be read";
    return { why: /circular/i.test(String(message)) ? "it refers to itself" : String(message) };
  }
}

function whyNot(key: string, value: unknown): string | undefined {
  const kind = kindOf(value);
  if (kind === undefined) return undefined;
  const where = key === "" ? "it is" : `"${key.slice(0, 100)}" is`;
  return `${where} ${kind[0]}${kind[1] === "" ? "" : `; ${kind[1]}`}`;
}

function kindOf(value: unknown): readonly [what: string, instead: string] | undefined {
  if (typeof value === "function") return ["a function", "call it"];
  if (typeof value === "symbol") return ["a symbol", ""];
  if (typeof value === "number" && !Number.isFinite(value)) {
    return [String(value), "use null, or a text"];
  }
  if (value instanceof Map) return ["a Map", "use Object.fromEntries(map)"];
  if (value instanceof Set) return ["a Set", "use [...set]"];
  if (value instanceof Promise) return ["a Promise", "await it"];
  if (value instanceof Error) return ["an Error", "use its message"];
  return undefined;
}

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

/** Numbers that JavaScript rounded, with their digits in the code. */
export type RoundedNumbers = ReadonlyMap<number, string>;

/** Returns the integers in code that JavaScript rounds to a number with other digits. */
export function roundedNumbersIn(code: string): RoundedNumbers {
  const digits = [...code.matchAll(/(?<![\w.$])[1-9]\d{15,20}(?![\w.])/g)].map(([text]) => text);
  return new Map(
    digits.filter((text) => String(Number(text)) !== text).map((text) => [Number(text), text]),
  );
}

/** Returns a copy of a value as plain JSON. Refuses numbers that the code shows with other digits. */
export function plainText(value: unknown, rounded: RoundedNumbers = new Map()): PlainJson {
  let why: string | undefined;
  function check(this: unknown, key: string, item: unknown): unknown {
    why ??= whyNot(key, (this as Record<string, unknown>)[key], rounded);
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

function whyNot(key: string, value: unknown, rounded: RoundedNumbers): string | undefined {
  const digits = typeof value === "number" ? rounded.get(value) : undefined;
  if (digits !== undefined) {
    return `it contains ${value}, because JavaScript rounds ${digits}; write ${digits}n, or a text`;
  }
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

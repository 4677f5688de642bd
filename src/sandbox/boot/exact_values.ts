/**
 * Integers beyond 2^53 are BigInts in modules and code, and digits in JSON.
 *
 * @module
 */

// The types of TypeScript do not contain `rawJSON` yet.
const { rawJSON } = JSON as unknown as { readonly rawJSON: (text: string) => unknown };
const parse = JSON.parse;

/** Matches every text that contains an integer beyond 2^53, and some other texts. */
const MANY_DIGITS = /\d{16}/;
const INTEGER = /^-?\d+$/;

/** Parses JSON. An integer beyond 2^53 becomes a BigInt. */
export function parseWithBigInts(text: string): ReturnType<typeof JSON.parse> {
  if (!MANY_DIGITS.test(text)) return parse(text);
  return parse(text, (_, value: unknown, context?: { readonly source?: string }) => {
    const { source = "" } = context ?? {};
    const isLarge = typeof value === "number" && !Number.isSafeInteger(value);
    return isLarge && INTEGER.test(source) ? BigInt(source) : value;
  });
}

/** Makes `JSON.stringify` write BigInts as digits. */
export function writeBigInts(): void {
  Object.defineProperty(BigInt.prototype, "toJSON", {
    value(this: bigint): unknown {
      return rawJSON(this.toString());
    },
    writable: true,
    configurable: true,
  });
}

/** Returns JSON in which BigInts are the nearest numbers, for libraries that check values. */
export function withNumbers(value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  if (!hasBigInt(value)) return value;
  if (Array.isArray(value)) return value.map(withNumbers);
  const entries = Object.entries(Object(value)).map(([name, one]) => [name, withNumbers(one)]);
  return Object.fromEntries(entries);
}

/**
 * Returns `value`, which a library derived from `withNumbers(original)`, with the BigInts of
 * `original` in place of numbers that the library did not change.
 */
export function withBigInts(value: unknown, original: unknown): unknown {
  if (typeof original === "bigint") return value === Number(original) ? original : value;
  if (typeof value !== "object" || value === null || !hasBigInt(original)) return value;
  for (const [name, one] of Object.entries(Object(original))) {
    if (!Object.hasOwn(value, name)) continue;
    const before: unknown = Reflect.get(value, name);
    const after = withBigInts(before, one);
    if (after === before) continue;
    const all = { value: after, enumerable: true, writable: true, configurable: true };
    Object.defineProperty(value, name, all);
  }
  return value;
}

function hasBigInt(value: unknown): boolean {
  if (typeof value === "bigint") return true;
  return typeof value === "object" && value !== null && Object.values(value).some(hasBigInt);
}

/**
 * Numbers that keep their text. `JSON.parse` rounds integers beyond 2^53, reads `1e400` as
 * `Infinity` and drops the fraction of `1.0`. An exact number is a raw JSON value (`JSON.rawJSON`),
 * which `JSON.stringify` writes unchanged. A client cannot forge an exact number: a parsed object
 * with a member `rawJSON` is an ordinary object.
 *
 * @module
 */

/** A number as its JSON text. */
export interface ExactNumber {
  /** The JSON text, such as `1.0`. */
  readonly rawJSON: string;
}

/** A number of parsed JSON. */
export type JsonNumber = number | ExactNumber;

// TypeScript does not declare these two functions yet.
const { rawJSON, isRawJSON } = JSON as unknown as {
  readonly rawJSON: (text: string) => ExactNumber;
  readonly isRawJSON: (value: unknown) => boolean;
};

const NUMBER = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
/** The maximum length of an exponent. `decimalText` leaves longer ones as they are. */
const EXPONENT_MAX = 12;
/** The maximum number of zeros that `decimalText` writes in place of an exponent. */
const ZEROS_MAX = 400;
const MEMBER = { enumerable: true, configurable: true, writable: true };

/** Returns whether a value is a number that keeps its text. */
export function isExactNumber(value: unknown): value is ExactNumber {
  return typeof value === "object" && value !== null && "rawJSON" in value && isRawJSON(value);
}

/** Returns whether a text is a JSON number. */
export function isNumberText(text: string): boolean {
  return NUMBER.test(text);
}

/**
 * Creates an exact number from its JSON text. Throws `SyntaxError` if the text is not a JSON
 * number.
 */
export function exactNumber(text: string): ExactNumber {
  if (!isNumberText(text)) throw new SyntaxError("the text is not a JSON number");
  return rawJSON(text);
}

/** Returns whether `JSON.parse` followed by `JSON.stringify` changes the text of a number. */
export function isChangedByParsing(text: string): boolean {
  return String(Number(text)) !== text; // `1e400` and `-0` change, too
}

/** Returns whether a value of parsed JSON is a number. */
export function isJsonNumber(value: unknown): value is JsonNumber {
  return typeof value === "number" || isExactNumber(value);
}

/** Returns the nearest platform number for a number of parsed JSON; undefined for other values. */
export function numberOf(value: JsonNumber): number;
export function numberOf(value: unknown): number | undefined;
export function numberOf(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  return isExactNumber(value) ? Number(value.rawJSON) : undefined;
}

/** Returns the JSON text of a number of parsed JSON; undefined for other values. */
export function numberText(value: unknown): string | undefined {
  if (isExactNumber(value)) return value.rawJSON;
  return typeof value === "number" ? JSON.stringify(value) : undefined;
}

/**
 * Returns the same text for all texts of one number, such as `100`, `1e2` and `100.0`. The text has
 * no exponent if `ZEROS_MAX` zeros are enough for that.
 */
export function decimalText(text: string): string {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = NUMBER.exec(text) ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  const significant = digits.replace(/0+$/, "");
  if (significant === "") return "0";
  if (exponent.length > EXPONENT_MAX) return text;
  // The number is 0.SIGNIFICANT × 10^point.
  const leading = (whole + fraction).length - digits.length;
  const point = whole.length - leading + Number(exponent);
  if (point > significant.length + ZEROS_MAX || point < -ZEROS_MAX) {
    return `${sign}0.${significant}e${point}`;
  }
  if (point <= 0) return `${sign}0.${"0".repeat(-point)}${significant}`;
  if (point >= significant.length) return sign + significant.padEnd(point, "0");
  return `${sign}${significant.slice(0, point)}.${significant.slice(point)}`;
}

/**
 * Returns JSON in which each number is the nearest platform number. Returns the same object if it
 * has no exact numbers.
 */
export function withRoundedNumbers<T>(json: T): T {
  return hasExactNumber(json)
    ? replaceExactNumbers(json, ({ rawJSON }) => Number(rawJSON)) as T
    : json;
}

/**
 * Returns JSON in which equal numbers have the same text, such as `1` for `1.0`. Returns the same
 * object if it has no exact numbers.
 */
export function withEqualNumbers<T>(json: T): T {
  return hasExactNumber(json)
    ? replaceExactNumbers(json, ({ rawJSON }) => equalNumber(rawJSON)) as T
    : json;
}

/** Returns a number with the same text for all texts of one number. */
function equalNumber(text: string): number | ExactNumber {
  const number = Number(text);
  const decimal = decimalText(text);
  const isSame = Number.isFinite(number) && decimalText(String(number)) === decimal;
  return isSame ? number : exactNumber(decimal);
}

/**
 * Returns JSON as JavaScript values: integers beyond 2^53 become BigInts, other numbers the nearest
 * platform numbers.
 */
export function asPlatformValue(json: unknown): unknown {
  if (!hasExactNumber(json)) return json;
  return replaceExactNumbers(
    json,
    ({ rawJSON }) =>
      /^-?\d+$/.test(rawJSON) && rawJSON !== "-0" ? BigInt(rawJSON) : Number(rawJSON),
  );
}

/** Returns JavaScript values as JSON: BigInts become exact numbers. */
export function withExactIntegers<T>(value: T): T {
  if (typeof value === "bigint") return exactNumber(value.toString()) as T;
  if (typeof value !== "object" || value === null || isExactNumber(value)) return value;
  const members = Object.entries(value).map(([name, member]) => [name, withExactIntegers(member)]);
  if (members.every(([name, one]) => Object.is(Reflect.get(value, name), one))) return value;
  if (Array.isArray(value)) return members.map(([, one]) => one) as T;
  return Object.fromEntries(members) as T;
}

/** Returns whether JSON contains an exact number. */
export function hasExactNumber(json: unknown): boolean {
  if (typeof json !== "object" || json === null) return false;
  if (isExactNumber(json)) return true;
  const remaining: object[] = [json];
  for (let object = remaining.pop(); object !== undefined; object = remaining.pop()) {
    for (const name in object) {
      if (!Object.hasOwn(object, name)) continue;
      const value: unknown = Reflect.get(object, name);
      if (typeof value !== "object" || value === null) continue;
      if (isExactNumber(value)) return true;
      remaining.push(value);
    }
  }
  return false;
}

/** Returns a copy of JSON with its exact numbers replaced. Does not recurse: JSON may be deep. */
function replaceExactNumbers(json: unknown, map: (number: ExactNumber) => unknown): unknown {
  const whole = [json];
  const copies: object[] = [whole];
  for (const copy of copies) {
    for (const name of Object.keys(copy)) {
      const value: unknown = Reflect.get(copy, name);
      if (typeof value !== "object" || value === null) continue;
      const isNumber = isExactNumber(value);
      const replaced = isNumber ? map(value) : Array.isArray(value) ? [...value] : { ...value };
      if (!isNumber) copies.push(replaced as object);
      // Assigning to `__proto__` would set the prototype.
      Object.defineProperty(copy, name, { ...MEMBER, value: replaced });
    }
  }
  return whole[0];
}

/**
 * Removes secrets from texts: registered values in all their encodings, and keys of known kinds.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { PmlError } from "../core/errors.ts";
import { exactNumber, isChangedByParsing } from "../core/exact_number.ts";
import { isObject, withoutUndefined } from "../core/json.ts";
import { REDACTED, withoutKnownKeys } from "../core/key_kinds.ts";

/** The minimum length of a value. Shorter values occur too often in ordinary text. */
const SHORTEST_VALUE = 6;
/** The minimum length of a line of a value. A shorter line is not removed alone. */
const SHORTEST_LINE = 16;
/** The minimum length in bytes of a value that is found within longer base64. */
const SHORTEST_SHIFTED = 8;
/** The maximum length of a pattern. V8 refuses much longer ones. */
const LONGEST_PATTERN = 50_000;

/** Removes registered values and known kinds of keys from texts. */
export class Redactor {
  readonly #values = new Set<string>();
  #patterns: readonly RegExp[] | undefined;

  /**
   * Registers a secret, which is removed from every text from now on. Returns false if the secret
   * is too short to be removed.
   */
  register(value: string): boolean {
    if (value.length < SHORTEST_VALUE) return false;
    if (this.#values.has(value)) return true;
    this.#values.add(value);
    this.#patterns = undefined;
    return true;
  }

  /** Removes a secret that is no longer valid. */
  forget(value: string): void {
    this.#values.delete(value);
    this.#patterns = undefined;
  }

  /** Returns a text without the secrets in it. */
  redact(text: string): string {
    const patterns = this.#patterns ??= patternsOf(this.#values);
    return withoutKnownKeys(
      patterns.reduce((rest, pattern) => rest.replace(pattern, REDACTED), text),
    );
  }

  /** Returns an error without the secrets in its texts, which may quote a server's answer. */
  cleanError(error: unknown): unknown {
    if (!(error instanceof PmlError)) return error;
    const { code, message, hint, detail } = error;
    const details = this.clean(withoutUndefined({ hint, detail }));
    return new PmlError(code, this.redact(message), { ...details, cause: error });
  }

  /** Returns JSON without the secrets in its texts and in the names of its members. */
  clean<T>(value: T): T {
    const plain = JSON.stringify(value) ?? "";
    // JSON contains texts without escapes unchanged, so if the whole contains no secret, no part
    // does.
    if (!plain.includes("\\") && this.redact(plain) === plain) return value;
    return JSON.parse(plain, (_, part, context?: { readonly source: string }) => {
      if (typeof part === "number" && isChangedByParsing(context?.source ?? String(part))) {
        return exactNumber(context?.source ?? "");
      }
      if (typeof part === "string") return this.redact(part);
      if (!isObject(part)) return part;
      return Object.fromEntries(
        Object.entries(part).map(([name, item]) => [this.redact(name), item]),
      );
    });
  }
}

/** Returns the patterns of values, in the order in which they are removed. */
function patternsOf(values: Iterable<string>): readonly RegExp[] {
  const all = [...values].flatMap((value) => [value, ...linesOf(value)])
    .flatMap(piecesOf).flatMap(formsOf);
  // The longest forms come first: if one secret begins with another, all of it is removed.
  const forms = [...new Set(all)].sort((a, b) => b.length - a.length);
  const groups: string[] = [];
  for (const form of forms.map(escapedPattern)) {
    const last = groups.pop() ?? form;
    if (last.length + form.length > LONGEST_PATTERN) groups.push(last, form);
    else groups.push(last === form ? form : `${last}|${form}`);
  }
  return groups.map((group) => new RegExp(group, "g"));
}

/**
 * Returns a value, or its pieces if it is long or has many characters that can be escaped: the
 * search for a long pattern with many alternatives would be slow in a text that nearly matches.
 */
function piecesOf(value: string): readonly string[] {
  const pieces = value.match(/(?:[^\w-]?[\w-]{0,30}){1,32}/gu) ?? [];
  return pieces.filter(({ length }) => length >= SHORTEST_VALUE);
}

function linesOf(value: string): readonly string[] {
  return value.split("\n").map((line) => line.trim()).filter((line) =>
    line.length >= SHORTEST_LINE
  );
}

function formsOf(value: string): readonly string[] {
  const bytes = Buffer.from(value, "utf8");
  const hex = bytes.toString("hex");
  return [value, ...base64Forms(bytes), hex, hex.toUpperCase()];
}

/**
 * Returns a pattern for a text in which all characters except letters and digits may be escaped, as
 * in URLs, JSON and HTML. Programs escape different characters, and some escape twice.
 */
function escapedPattern(text: string): string {
  return text.replace(/\\+|[^\w\\-]/gu, (part, at: number) => {
    const isSlashes = part.startsWith("\\");
    // The pattern of the backslashes before a character also covers its escapes, so that two
    // repetitions of backslashes never follow each other.
    const before = isSlashes || text[at - 1] === "\\" ? "" : "\\\\{0,7}";
    const jsonEscape = JSON.stringify(part).slice(1, -1);
    const alternatives = [
      isSlashes ? `\\\\{${part.length},${8 * part.length}}` : before + RegExp.escape(part),
      [...Buffer.from(part)].map((byte) => `%(?:25){0,2}${hexPattern(byte, 2)}`).join(""),
      ...isSlashes ? [] : [
        part.split("").map((unit) => `\\\\{1,8}u${hexPattern(unit.charCodeAt(0), 4)}`).join(
          "",
        ),
      ],
      ...part < " " ? [`\\\\{1,8}${jsonEscape.slice(1)}`] : [],
      ...part === " " ? ["\\+"] : [],
      ...`&<>"'`.includes(part) ? ["&[#\\w]{2,6};"] : [],
    ];
    return `(?:${alternatives.join("|")})`;
  });
}

/** Returns a pattern of a number in hexadecimal, in either case. */
function hexPattern(value: number, digits: number): string {
  return value.toString(16).padStart(digits, "0")
    .replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
}

// Returns the base64 forms of a value. Inside a longer text (`user:secret` of basic authentication)
// the value can begin at three offsets; the characters that depend on its neighbours are left out.
function base64Forms(value: Buffer): readonly string[] {
  const alone = value.toString("base64").replace(/=+$/, "");
  const inside = value.length < SHORTEST_SHIFTED ? [] : [0, 1, 2].map((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), value]).toString("base64");
    return text.replace(/.?=+$/, "").slice(shift === 0 ? 0 : shift + 1);
  });
  return [alone, ...inside].flatMap((form) => [
    form,
    form.replaceAll("+", "-").replaceAll("/", "_"),
  ]);
}

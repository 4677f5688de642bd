/**
 * Takes secrets out of texts: registered values in every form that they travel in, and what looks
 * like a key of a known kind.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { PmlError } from "../core/errors.ts";
import { defined, isObject } from "../core/json.ts";
import { REDACTED, withoutKnownKeys } from "../core/key_kinds.ts";

/** Shorter values are too common in ordinary text to be taken out. */
const SHORTEST_VALUE = 6;
const SHORTEST_LINE = 16;
const SHORTEST_SHIFTED = 8;

/** Takes registered values and known kinds of keys out of texts. */
export class Redactor {
  readonly #values = new Set<string>();
  readonly #forms = new Set<string>();
  #registered: RegExp | undefined;

  /** Has a secret taken out of every text from now on; tells whether it is long enough for that. */
  register(value: string): boolean {
    if (value.length < SHORTEST_VALUE) return false;
    if (this.#values.has(value)) return true;
    this.#values.add(value);
    for (const form of [value, ...linesOf(value)].flatMap(formsOf)) this.#forms.add(form);
    // The longest first: where one secret begins with another, the whole of it goes.
    const forms = [...this.#forms].sort((a, b) => b.length - a.length);
    this.#registered = new RegExp(forms.map(escapedPattern).join("|"), "g");
    return true;
  }

  /** Gives a text back without the secrets in it. */
  redact(text: string): string {
    return withoutKnownKeys(
      this.#registered ? text.replace(this.#registered, REDACTED) : text,
    );
  }

  /** Gives an error back without the secrets in its texts: it may repeat what a server said. */
  cleaned(error: unknown): unknown {
    if (!(error instanceof PmlError)) return error;
    const { code, message, hint, detail } = error;
    const told = defined({ hint, detail: detail && this.clean(detail) });
    return new PmlError(code, this.redact(message), { ...told, cause: error });
  }

  /** Gives plain JSON back without the secrets in its texts, and in the names of its members. */
  clean<T>(value: T): T {
    const plain = JSON.stringify(value) ?? "";
    // Each text without escapes stands in it as it is: where nothing of the whole is secret, nothing
    // of its parts is.
    if (!plain.includes("\\") && this.redact(plain) === plain) return value;
    return JSON.parse(plain, (_, part) => {
      if (typeof part === "string") return this.redact(part);
      if (!isObject(part)) return part;
      return Object.fromEntries(
        Object.entries(part).map(([name, item]) => [this.redact(name), item]),
      );
    });
  }
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
 * Gives a pattern of a text in which what is no letter and no digit may be escaped, as addresses,
 * JSON and HTML do it: each writer has its own idea of what has to be, and some do it twice.
 */
function escapedPattern(text: string): string {
  return text.replace(/\\+|[^\w\\-]/gu, (part, at: number) => {
    const isSlashes = part.startsWith("\\");
    // What stands behind backslashes shares them: the repetitions of a pattern never meet.
    const before = isSlashes || text[at - 1] === "\\" ? "" : "\\\\{0,7}";
    const named = JSON.stringify(part).slice(1, -1);
    const ways = [
      isSlashes ? `\\\\{${part.length},${8 * part.length}}` : before + RegExp.escape(part),
      [...Buffer.from(part)].map((byte) => `%(?:25){0,2}${hexPattern(byte, 2)}`).join(""),
      ...isSlashes ? [] : [
        [...part.split("")].map((unit) => `\\\\{1,8}u${hexPattern(unit.charCodeAt(0), 4)}`).join(
          "",
        ),
      ],
      ...part < " " ? [`\\\\{1,8}${named.slice(1)}`] : [],
      ...part === " " ? ["\\+"] : [],
      ...`&<>"'`.includes(part) ? ["&[#\\w]{2,6};"] : [],
    ];
    return `(?:${ways.join("|")})`;
  });
}

/** Gives a pattern of a number in hex, in either case of letters. */
function hexPattern(value: number, digits: number): string {
  return value.toString(16).padStart(digits, "0")
    .replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
}

// Inside a longer text (`user:secret` of basic authentication) the base64 of a value begins at any
// of three places; the characters at its ends that depend on the neighbours are left off.
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

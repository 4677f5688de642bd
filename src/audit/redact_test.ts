import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { PmlError } from "../core/errors.ts";
import { Redactor } from "./redact.ts";

const REDACTED = "[redacted]";

const SECRET = "p4ss/w0rd+with space?";

function redactorOf(...values: readonly string[]): Redactor {
  const redactor = new Redactor();
  for (const value of values) redactor.register(value);
  return redactor;
}

function encodings(value: string): Record<string, string> {
  return {
    raw: value,
    base64: Buffer.from(value).toString("base64"),
    base64url: Buffer.from(value).toString("base64url"),
    hex: Buffer.from(value).toString("hex"),
    HEX: Buffer.from(value).toString("hex").toUpperCase(),
    url: encodeURIComponent(value),
    "lower-case url": encodeURIComponent(value).replace(/%../g, (hex) => hex.toLowerCase()),
    form: new URLSearchParams({ "": value }).toString().slice(1),
    json: JSON.stringify(value),
  };
}

Deno.test("Redactor removes a registered value in the usual encodings", () => {
  const redactor = redactorOf(SECRET, 'quo"te\\back');
  for (const value of [SECRET, 'quo"te\\back']) {
    for (const [name, form] of Object.entries(encodings(value))) {
      const out = redactor.redact(`before ${form} after`);
      assert.match(out, /^before "?\[redacted\]=*"? after$/, name);
    }
  }
});

/** The ways in which programs escape a text. Each leaves other characters unchanged. */
const ESCAPED: Readonly<Record<string, (text: string) => string>> = {
  "every character of an address": (text) => escapedAs(text, /[!'()*~]/g),
  "a path, as Python has it": (text) => encodeURIComponent(text).replaceAll("%2F", "/"),
  "an address as it was typed": (text) => new URL(`http://x/?${text}`).search.slice(1),
  "an address in an address": (text) => encodeURIComponent(encodeURIComponent(text)),
  "the base64 in an address": (text) =>
    encodeURIComponent(Buffer.from(text).toString("base64").replace(/=+$/, "")),
  "slashes, as PHP has them": (text) => JSON.stringify(text).replaceAll("/", "\\/"),
  "tags, as Go has them": (text) =>
    JSON.stringify(text).replace(/[<>&]/g, (one) => `\\u00${one.charCodeAt(0).toString(16)}`),
  "letters, as Python has them": (text) =>
    JSON.stringify(text).replace(/[^ -~]/g, (one) => `\\u00${one.charCodeAt(0).toString(16)}`),
  "JSON in JSON": (text) => JSON.stringify(JSON.stringify(text)).slice(2, -2),
  "JSON in JSON in JSON": (text) => JSON.stringify(JSON.stringify(JSON.stringify(text))),
  "HTML": (text) =>
    text.replace(/[&<>"]/g, (one) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[one] ?? "&#34;"),
};

function escapedAs(text: string, which: RegExp): string {
  const percent = (one: string) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(text).replace(which, percent);
}

Deno.test("Redactor removes a value with any escapes, even escaped twice (GW16)", () => {
  const values = ["ab/cd+ef=gh~ij!k l(m)n'o*p<q>&r", 'xé/y+z\\\\w"v', "two\nlines/of one"];
  for (const value of values) {
    const redactor = redactorOf(value);
    for (const [name, escaped] of Object.entries(ESCAPED)) {
      // A URL contains no line ends and treats a backslash as a slash.
      if (name.includes("typed") && /[\n\\]/.test(value)) continue;
      const out = redactor.redact(`before ${escaped(value)} after`);
      assert.match(out, /^before ["\\]*\[redacted\]["\\]* after$/, `${name}: ${escaped(value)}`);
    }
  }
});

Deno.test("Redactor reads a text in linear time with any registered secrets", () => {
  const redactor = redactorOf('\\\\\\"a\\b"', "%%%%%%", "&&&&&&&", "        ");
  for (const part of ["\\", "%25", "&", "%", " ", '\\"', "&amp;"]) {
    const since = performance.now();
    redactor.redact(part.repeat(500_000));
    assert.ok(performance.now() - since < 5_000, `${part} took too long`);
  }
});

Deno.test("Redactor removes a value from the base64 of a longer text", () => {
  const redactor = redactorOf(SECRET);
  for (const before of ["", "u", "us", "use", "user:"]) {
    for (const after of ["", "a", "ab", "abc"]) {
      const out = redactor.redact(Buffer.from(`${before}${SECRET}${after}`).toString("base64"));
      assert.ok(out.includes(REDACTED), `${before}|${after}: ${out}`);
    }
  }
});

Deno.test("register() refuses a value that is too short, and redact() keeps ordinary text", () => {
  const redactor = new Redactor();
  assert.equal(redactor.register("short"), false);
  assert.equal(redactor.register("longer"), true);
  const text = "A short text about a bearer, a basic token, https://host/path?key=1 and sk-short";
  assert.equal(redactor.redact(text), text);
});

Deno.test("Redactor removes the whole of a value that begins with another", () => {
  const redactor = redactorOf("secret-1", "secret-1-and-more");
  assert.equal(redactor.redact("x secret-1-and-more y"), `x ${REDACTED} y`);
});

Deno.test("Redactor removes the usual kinds of keys", () => {
  const body = "A1b2C3d4E5f6G7h8";
  const names = [
    `sk-${body}${body}`,
    `sk-ant-api03-${body}`,
    `ghp_${body}${body}`,
    `github_pat_${body}_${body}`,
    `glpat-${body}${body}`,
    `xoxb-${body}-${body}`,
    `AKIA${body.toUpperCase()}`,
    `AIza${body}${body}${body}`,
    `eyJhbGciOiJI.${body}.${body}`,
    `tvly-${body}`,
    `-----BEGIN RSA PRIVATE KEY-----\n${body}\n-----END RSA PRIVATE KEY-----`,
    `-----BEGIN PRIVATE KEY-----\\n${body}`,
  ];
  const redactor = new Redactor();
  for (const key of names) assert.equal(redactor.redact(`a ${key}`), `a ${REDACTED}`);
});

Deno.test("Redactor keeps the name of a header, a URL's host and a parameter, not the secret", () => {
  const redactor = new Redactor();
  const cases = [
    ["Authorization: Bearer abcdefgh123", `Authorization: Bearer ${REDACTED}`],
    ['"authorization":"basic dXNlcjpwYXNz"', `"authorization":"basic ${REDACTED}"`],
    ["postgres://me:hunter2@db/x", `postgres://me:${REDACTED}@db/x`],
    ["https://h/p?api_key=abcdef&q=1", `https://h/p?api_key=${REDACTED}&q=1`],
  ] as const;
  for (const [text, wanted] of cases) assert.equal(redactor.redact(text), wanted);
});

Deno.test("redact() reads a hostile text a bounded number of times", () => {
  const redactor = redactorOf(`${"a".repeat(40)}b`);
  const pieces = ["eyJ", "eyJa.", "Bearer ", "sk-", "://", ":// a:", "-----BEGIN ", "a", "?key="];
  for (const piece of [...pieces, "-----BEGIN PRIVATE KEY-----", "Authorization: Basic "]) {
    const small = timed(redactor, piece.repeat(20_000));
    // The text is eight times as long, so a quadratic pattern would take 64 times as long.
    const most = small * 24 + 100;
    let large = Infinity;
    // Other processes may use the machine too, so the shortest time is the most exact.
    for (let at = 0; at < 5 && large >= most; at++) {
      large = Math.min(large, timed(redactor, piece.repeat(160_000)));
    }
    assert.ok(large < most, `${piece}: ${small} ms, ${large} ms`);
  }
});

function timed(redactor: Redactor, text: string): number {
  const since = performance.now();
  redactor.redact(text);
  return performance.now() - since;
}

Deno.test("redact() removes all of a value of any length, in the usual encodings", () => {
  const value = Array.from({ length: 2_000 }, (_, at) => `k${at}+/%"`).join("");
  const redactor = new Redactor();
  assert.ok(redactor.register(value));
  const forms = [
    value,
    JSON.stringify(value),
    encodeURIComponent(value),
    btoa(value),
    Buffer.from(value).toString("hex"),
  ];
  for (const form of forms) {
    const left = redactor.redact(`before ${form} after`).replaceAll(REDACTED, "");
    assert.match(left, /^before /);
    assert.ok(
      left.length < 800,
      `${left.length} of ${form.length} are left: ${left.slice(0, 200)}`,
    );
    assert.doesNotMatch(left, /k\d{2}/);
  }
});

Deno.test("redact() is fast for a text that nearly matches a value of one repeated character", () => {
  for (const sign of [".", "!", '"']) {
    const redactor = redactorOf(sign.repeat(8_190));
    redactor.redact("");
    for (const length of [31, 905]) {
      const text = `${sign.repeat(length)}x`.repeat(Math.ceil(200_000 / length));
      const begun = performance.now();
      redactor.redact(JSON.stringify(text));
      const ms = performance.now() - begun;
      assert.ok(ms < 1_000, `${ms} ms for ${sign}`);
    }
  }
});

Deno.test("Redactor.cleanError() removes a value from all texts of an error, including its hint", () => {
  const redactor = new Redactor();
  redactor.register("sesame-of-the-cave");
  const said = "open sesame-of-the-cave";
  const error = new PmlError("PATH_PROTECTED", said, { hint: said, detail: { said } });
  const { message, hint, detail } = redactor.cleanError(error) as PmlError;
  assert.doesNotMatch(JSON.stringify([message, hint, detail]), /sesame/);
  assert.match(hint ?? "", /^open /);
});

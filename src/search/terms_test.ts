import assert from "node:assert/strict";
import { stem, termsOf } from "./terms.ts";

Deno.test("termsOf() splits names at case, underscores and dashes", () => {
  assert.deepEqual(termsOf("readTextFile"), ["read", "text", "fil"]);
  assert.deepEqual(termsOf("parse_HTMLPage-v2"), ["pars", "html", "pag", "v2"]);
});

Deno.test("termsOf() leaves out the most common words, and normalizes full-width letters", () => {
  assert.deepEqual(termsOf("How do I read the ＦＩＬＥ?"), ["read", "fil"]);
});

Deno.test("termsOf() returns pairs of neighbouring characters for scripts without spaces", () => {
  assert.deepEqual(termsOf("使用必应search"), ["使用", "用必", "必应", "search"]);
  assert.deepEqual(termsOf("八"), ["八"]);
  assert.deepEqual(termsOf("Größe Привет"), ["größe", "привет"]);
});

Deno.test("stem() maps the forms of a word to one stem", () => {
  for (
    const forms of [
      ["file", "files"],
      ["create", "creates", "created", "creating"],
      ["query", "queries"],
      ["search", "searches", "searching", "searched"],
      ["stop", "stopped", "stopping"],
      ["box", "boxes"],
      ["add", "adds", "added", "adding"],
      ["copy", "copies", "copied", "copying"],
    ]
  ) assert.equal(new Set(forms.map(stem)).size, 1, forms.join());
});

Deno.test("stem() keeps short words and words that only look inflected", () => {
  for (const word of ["sql", "status", "ring", "need", "class"]) {
    assert.equal(stem(word), word);
  }
});

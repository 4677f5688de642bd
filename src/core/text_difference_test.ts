import assert from "node:assert/strict";
import fc from "fast-check";
import { textDifference } from "./text_difference.ts";

function sides(before: string, after: string): readonly [string, string] {
  const parts = textDifference(before, after);
  const sideWithout = (other: string) =>
    parts.filter(({ kind }) => kind !== other).map(({ text }) => text).join("");
  return [sideWithout("new"), sideWithout("gone")];
}

Deno.test("textDifference() finds a few changed words of a long text", () => {
  const before = `Sends one letter to a person.\n${"All is as it was. ".repeat(300)}\nThe end.`;
  const after = before.replace("to a person", "to all people").replace("The end", "The last");
  assert.deepEqual(textDifference(before, after).filter(({ kind }) => kind !== "same"), [
    { kind: "gone", text: "a person" },
    { kind: "new", text: "all people" },
    { kind: "gone", text: "end" },
    { kind: "new", text: "last" },
  ]);
});

Deno.test("textDifference() loses no character of either text, and invents none", () => {
  const words = fc.array(fc.constantFrom("a", "b", " ", "\n", ".", "ß", "\ud83d", "😀", "word"));
  fc.assert(fc.property(words, words, fc.string(), (one, other, more) => {
    const [before, after] = [one.join("") + more, other.join("") + more];
    assert.deepEqual(sides(before, after), [before, after]);
  }));
});

Deno.test("textDifference() compares only the ends of texts with too many words", () => {
  const long = (word: string) => `${word} b c `.repeat(2_000);
  const [before, after] = [`one. ${long("x")}two.`, `other. ${long("y")}three.`];
  assert.deepEqual(sides(before, after), [before, after]);
  const kinds = textDifference(before, after).map(({ kind }) => kind);
  assert.deepEqual(kinds, ["gone", "new", "same"]);
});

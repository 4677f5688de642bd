import assert from "node:assert/strict";
import fc from "fast-check";
import { foldCase, GlobSet } from "./glob.ts";

/** Returns the globs of a set that match a text, with no limit on the steps. */
function covering(globs: readonly string[], text: string, within = false): readonly string[] {
  const found = new GlobSet(globs).findMatches(text, { steps: { remaining: Infinity }, within });
  return [...found ?? []];
}

/** Matches a glob in the simplest way: tries every possibility. */
function reference(glob: string, text: string, start = true): boolean {
  if (glob === "") return text === "";
  const rest = (eaten: number) => text.slice(eaten);
  if (start && glob.startsWith("**/") && reference(glob.slice(3), text)) return true;
  const stars = glob.startsWith("**") ? 2 : glob.startsWith("*") ? 1 : 0;
  if (stars > 0) {
    if (reference(glob.slice(stars), text, false)) return true;
    if (text === "" || (stars === 1 && text[0] === "/")) return false;
    return reference(glob, rest(1), false);
  }
  const from = glob.startsWith("\\") ? 1 : 0;
  return text !== "" && text[0] === glob[from] &&
    reference(glob.slice(from + 1), rest(1), glob[from] === "/");
}

Deno.test("GlobSet matches as its two stars say, and nothing else is special", () => {
  const table: [string, string, boolean][] = [
    ["", "", true],
    ["", "a", false],
    ["a", "a", true],
    ["a", "ab", false],
    ["b", "ab", false],
    ["*", "", true],
    ["*", "abc", true],
    ["*", "a/b", false],
    ["src/*", "src/a.ts", true],
    ["src/*", "src/a/b.ts", false],
    ["src/**", "src/a/b.ts", true],
    ["src/**", "src", false],
    ["src/**", "srcs/a", false],
    ["src/**/x", "src/x", true],
    ["src/**/x", "src/a/b/x", true],
    ["src/**/x", "src/ax", false],
    ["**/x", "x", true],
    ["**/x", "a/x", true],
    ["**/x", "ax", false],
    ["a**/x", "ax", false],
    ["***", "a/b", true],
    ["git **", "git add a/b", true],
    ["a.c", "abc", false],
    ["[a]", "a", false],
    ["{a,b}", "a", false],
    ["a?", "ab", false],
    ["!a", "b", false],
    ["a|b", "a", false],
    ["^a$", "a", false],
    ["\\*", "*", true],
    ["\\*", "a", false],
    ["\\\\", "\\", true],
    ["a\\,b", "a,b", true],
    ["*\u{1f600}", "a\u{1f600}", true],
    ["*", "\n", true],
  ];
  for (const [glob, text, wanted] of table) {
    assert.equal(covering([glob], text).length > 0, wanted, `${glob} of ${JSON.stringify(text)}`);
    assert.equal(reference(glob, text), wanted, `reference: ${glob} of ${JSON.stringify(text)}`);
  }
});

Deno.test("GlobSet agrees with the reference on any glob and text (PM5)", () => {
  const part = fc.constantFrom("a", "b", "/", "*", "**", "**/", "\\*", ".");
  const glob = fc.array(part, { maxLength: 7 }).map((parts) => parts.join(""));
  const letter = fc.constantFrom("a", "b", "/", "*", ".");
  const text = fc.array(letter, { maxLength: 8 }).map((letters) => letters.join(""));
  fc.assert(
    fc.property(glob, text, (glob, text) => {
      assert.equal(covering([glob], text).length > 0, reference(glob, text));
    }),
    { numRuns: 20_000 },
  );
});

Deno.test("GlobSet finds each of many globs, at any place in the set (PM5)", () => {
  const part = fc.constantFrom("a", "b", "/", "*", "**", "**/", ".", "ab");
  const glob = fc.array(part, { maxLength: 9 }).map((parts) => parts.join(""));
  const letter = fc.constantFrom("a", "b", "/", ".");
  const text = fc.array(letter, { maxLength: 8 }).map((letters) => letters.join(""));
  fc.assert(
    fc.property(fc.array(glob, { maxLength: 40 }), text, (globs, text) => {
      const all = [...new Set(globs)];
      const plain = all.filter((one) => reference(one, text));
      assert.deepEqual(covering(globs, text).toSorted(), plain.toSorted());
      const within = all.filter((one) => reference(one, text) || reference(one, `${text}/`));
      assert.deepEqual(covering(globs, text, true).toSorted(), within.toSorted());
    }),
    { numRuns: 3_000 },
  );
});

Deno.test("GlobSet takes hostile globs and texts in bounded steps (PM14)", () => {
  const text = `${"a".repeat(4_095)}c`;
  const hostile = ["*a".repeat(30), "**a".repeat(30), "**/*a".repeat(20), "a*".repeat(30)];
  const set = new GlobSet(hostile.map((glob) => `${glob}b`));
  const size = hostile.join("").length;
  const steps = { remaining: 4_096 * size };
  assert.equal(set.findMatches(text, { steps })?.size, 0);
  // Backtracking would take practically forever. With one repeated character, all places are
  // active.
  assert.ok(steps.remaining > 0, `${steps.remaining}`);
  assert.equal(set.findMatches(text, { steps: { remaining: 4_096 } }), undefined);
});

Deno.test("GlobSet can fold as file systems do", () => {
  const glob = "Secrets/\u00e9*";
  const set = new GlobSet([glob]);
  const found = (text: string) =>
    set.foldedBy(foldCase).findMatches(text, { steps: { remaining: 1_000 } });
  assert.deepEqual(covering([glob], "secrets/e\u0301a"), []);
  assert.deepEqual([...found(foldCase("SECRETS/e\u0301a")) ?? []], [glob]);
  assert.deepEqual([...found(foldCase("public/e\u0301a")) ?? []], []);
});

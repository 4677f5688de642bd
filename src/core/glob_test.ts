import assert from "node:assert/strict";
import fc from "fast-check";
import { fold, Glob } from "./glob.ts";

/** The meaning of a glob, said as plainly as it can be: tries every way. */
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

Deno.test("Glob matches as its two stars say, and nothing else is special", () => {
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
    assert.equal(new Glob(glob).matches(text), wanted, `${glob} of ${JSON.stringify(text)}`);
    assert.equal(reference(glob, text), wanted, `reference: ${glob} of ${JSON.stringify(text)}`);
  }
});

Deno.test("Glob agrees with the reference on any glob and text (PM5)", () => {
  const part = fc.constantFrom("a", "b", "/", "*", "**", "**/", "\\*", ".");
  const glob = fc.array(part, { maxLength: 7 }).map((parts) => parts.join(""));
  const letter = fc.constantFrom("a", "b", "/", "*", ".");
  const text = fc.array(letter, { maxLength: 8 }).map((letters) => letters.join(""));
  fc.assert(
    fc.property(glob, text, (glob, text) => {
      assert.equal(new Glob(glob).matches(text), reference(glob, text));
    }),
    { numRuns: 20_000 },
  );
});

Deno.test("Glob takes a hostile glob and text in bounded time (PM14)", () => {
  const text = `${"a".repeat(4_095)}c`;
  const hostile = ["*a".repeat(30), "**a".repeat(30), "**/*a".repeat(20), "a*".repeat(30)];
  const since = performance.now();
  for (const glob of hostile) assert.equal(new Glob(`${glob}b`).matches(text), false);
  // Going back takes longer than the sun has; this leaves room for a busy machine.
  assert.ok(performance.now() - since < 5_000);
});

Deno.test("Glob can fold as file systems do", () => {
  const glob = new Glob("Secrets/\u00e9*");
  assert.ok(!glob.matches("secrets/e\u0301a"));
  assert.ok(glob.matchesFolded(fold("SECRETS/e\u0301a")));
  assert.ok(!glob.matchesFolded(fold("public/e\u0301a")));
});

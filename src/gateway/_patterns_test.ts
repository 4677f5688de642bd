import assert from "node:assert/strict";
import fc from "fast-check";
import { readPattern } from "./_patterns.ts";

const engine = await import("re2js");

const characters = [..."ab-é_1 😀", "\\-", "\\u00e9", "\\n", "\\x41", "\\/", "\\u{1F600}"];
const inside = [...characters, "\\ud83d\\ude00", "\\cA", "\\0", "a-z", "0-9", "\\d", "\\D", "\\s"];
const classes = fc.tuple(
  fc.constantFrom("[", "[^"),
  fc.array(fc.constantFrom(...inside, "\\W", "\\p{Lu}", "\\b", "[", "(", "^", "&&"), {
    maxLength: 4,
  }),
).map(([open, items]) => `${open}${items.join("")}]`);
const single = fc.constantFrom(
  ...[
    ...characters.filter((one) => one !== "\\-"),
    "\\.",
    "\\$",
    "\\d",
    "\\D",
    "\\w",
    "\\W",
    "\\s",
  ],
  ...["\\S", ".", "\\p{L}", "\\P{Lu}", "\\p{Script=Latin}", "\\b", "\\B", "^", "$"],
);
const { pattern } = fc.letrec<{ pattern: string; part: string }>((tie) => ({
  part: fc.tuple(
    fc.oneof(
      { maxDepth: 3 },
      single,
      classes,
      fc.tuple(fc.constantFrom("(", "(?:", "(?<n>"), tie("pattern")).map(([open, one]) =>
        `${open}${one})`
      ),
    ),
    fc.constantFrom("", "", "", "*", "+", "?", "{2}", "{1,3}", "{0,}", "{2,}?", "*?"),
  ).map((both) => both.join("")),
  pattern: fc.array(fc.array(tie("part"), { maxLength: 4 }).map((parts) => parts.join("")), {
    minLength: 1,
    maxLength: 2,
  }).map((choices) => choices.join("|")),
}));
const text = fc.array(fc.constantFrom(..."abA1_- é😀\n\u2028\u00a0.$[(\u0001\0\b&"), {
  maxLength: 8,
})
  .map((parts) => parts.join(""));

Deno.test("a pattern matches on either engine what it matches on the platform's", () => {
  const seen = { linear: 0, plain: 0 };
  fc.assert(
    fc.property(pattern, fc.array(text, { minLength: 6, maxLength: 6 }), (source, texts) => {
      let platform: RegExp;
      try {
        platform = new RegExp(source, "u");
      } catch {
        return assert.equal(readPattern(source), undefined);
      }
      const read = readPattern(source);
      // A few are too large once their repetitions are written out.
      if (read === undefined) return assert.match(source, /[{].*[{]/s);
      seen[read.isLinear ? "linear" : "plain"]++;
      for (const one of texts) assert.equal(read.test(one, engine), platform.test(one), one);
    }),
    { numRuns: 4_000, seed: 7 },
  );
  assert.ok(seen.linear > 500 && seen.plain > 100, JSON.stringify(seen));
});

Deno.test("readPattern() keeps the platform's engine for patterns that it runs in linear time", () => {
  const plain = ["^[a-z0-9_-]+$", "^\\d{4}-\\d{2}-\\d{2}$", "abc", "^[^/]*$", "^x{1,64}$"];
  const linear = ["x+y", "(a|a)", "^\\s+[a-z]+x$", "^(a+)+$", "a?a?a?", "^a{0,9}a{0,9}$"];
  const none = ["(?=a)", "(?<!a)b", "(a)\\1", "(", "[\\w-.]", "(?i:a)", "a{1001}", "(a{40}){40}"];
  for (const one of plain) assert.equal(readPattern(one)?.isLinear, false, one);
  for (const one of linear) assert.equal(readPattern(one)?.isLinear, true, one);
  for (const one of [...none, "x".repeat(1_001), "(\\p{L}{500}|b)"]) {
    assert.equal(readPattern(one), undefined, one);
  }
});

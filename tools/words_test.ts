import assert from "node:assert/strict";
import { increasesOf } from "./words.ts";
import { matchesIn } from "./words/phrases.ts";

Deno.test("matchesIn() finds phrases in comments, texts, titles, pages and names", () => {
  const kinds = (path: string, text: string) => matchesIn(path, text).map(({ kind }) => kind);
  assert.deepEqual(kinds("a.ts", "/** Returns what is there. */"), ["comments"]);
  assert.deepEqual(kinds("a.ts", "work(); // nobody waits"), ["comments"]);
  assert.deepEqual(kinds("a.ts", 'const error = "the person said no to it";'), ["text"]);
  assert.deepEqual(kinds("a.ts", "const said = 1;"), ["names"]);
  assert.deepEqual(kinds("a_test.ts", 'Deno.test("a call that nobody judged", () => {});'), [
    "tests",
  ]);
  assert.deepEqual(kinds("a_test.ts", "// What is there.\nlet told = 1;"), ["comments", "names"]);
  assert.deepEqual(kinds("a.md", "The server gives a list.\n\n```\nIt gives.\n```\n"), ["docs"]);
});

Deno.test("matchesIn() accepts plain sentences, and questions", () => {
  assert.deepEqual(matchesIn("a.ts", "/** Returns the definition of a tool. */"), []);
  assert.deepEqual(matchesIn("a.ts", "// Who is there?"), []);
  assert.deepEqual(matchesIn("a.ts", 'const text = "told";'), []);
  assert.deepEqual(matchesIn("a_test.ts", 'const error = "the person said no to it";'), []);
});

Deno.test("grown() reports only files that have more matches than before", () => {
  const before = { "a.ts": { comments: 2 } };
  assert.deepEqual(increasesOf({ "a.ts": { comments: 2 } }, before), []);
  assert.deepEqual(increasesOf({ "a.ts": { comments: 1 } }, before), []);
  assert.deepEqual(increasesOf({ "a.ts": { comments: 3 }, "b.md": { docs: 1 } }, before), [
    "a.ts: 3 comments, 2 allowed",
    "b.md: 1 docs, 0 allowed",
  ]);
});

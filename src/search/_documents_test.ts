import assert from "node:assert/strict";
import { toolId } from "../core/tool_id.ts";
import { Documents } from "./_documents.ts";
import type { CatalogEntry } from "./catalog.ts";

function entry(name: string, description: string): CatalogEntry {
  const tool = { name, description, inputSchema: {} };
  return { id: toolId("s", name), tool, server: { name: "s", origin: "builtin" } };
}

Deno.test("Documents counts words by field, with the words of the name first", () => {
  const documents = new Documents();
  const [one] = documents.readAll([entry("read_page", "Read, read and print")]);
  assert.ok(one !== undefined);
  const counts = (word: string) => {
    const at = documents.find(one, documents.idOf(word) ?? -1);
    return {
      at: at - one.from,
      name: documents.countAt(at, 0),
      description: documents.countAt(at, 2),
    };
  };
  assert.equal(one.nameEnd - one.from, 2);
  assert.deepEqual(counts("read"), { at: 0, name: 1, description: 2 });
  assert.equal(counts("print").name, 0);
  assert.deepEqual(one.lengths.slice(0, 3), [2, 1, 3]);
  assert.equal(documents.find(one, -1), -1);
});

Deno.test("forgetUnused() clears the cache once most of it belongs to removed tools", () => {
  const documents = new Documents();
  const words = Array.from({ length: 2_000 }, (_, n) => `w${n}x`).join(" ");
  let kept = entry("a", words);
  for (let n = 0; n < 600; n++) {
    documents.forgetUnused(2_000);
    documents.readAll([kept = entry(`t${n}`, words.replaceAll("x", `y${n}`))]);
  }
  // Each tool has new words. A description has some hundred of them.
  assert.ok(documents.size < 130_000, String(documents.size));
  const [again] = documents.readAll([kept]);
  assert.equal(documents.readAll([kept])[0], again);
});

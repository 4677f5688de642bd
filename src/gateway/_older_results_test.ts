import assert from "node:assert/strict";
import { forOlderClient } from "./_older_results.ts";

Deno.test("forOlderClient() turns structured content that is not an object into text", () => {
  const block = { type: "text", text: "said" };
  const object = { content: [block], structuredContent: { a: 1 } };
  assert.deepEqual(forOlderClient(object), object);
  assert.deepEqual(forOlderClient({ content: [block] }), { content: [block] });
  assert.deepEqual(forOlderClient({ content: [block], structuredContent: [1] }), {
    content: [block],
  });
  assert.deepEqual(forOlderClient({ content: [], structuredContent: [1] }), {
    content: [{ type: "text", text: "[1]" }],
  });
});

Deno.test("forOlderClient() converts kinds of content that a revision lacks", () => {
  const audio = { type: "audio", data: "AAAA", mimeType: "audio/wav" };
  const link = { type: "resource_link", uri: "test://a", name: "a" };
  const blob = { uri: "audio:result", mimeType: "audio/wav", blob: "AAAA" };
  const olderAudio = { type: "resource", resource: blob };
  const olderLink = { type: "text", text: "a: test://a" };
  const table = [
    ["2024-11-05", [olderAudio, olderLink]],
    ["2025-03-26", [audio, olderLink]],
    ["2025-06-18", [audio, link]],
    ["2025-11-25", [audio, link]],
  ] as const;
  for (const [revision, content] of table) {
    assert.deepEqual(forOlderClient({ content: [audio, link] }, revision), { content }, revision);
    const messages = [{ role: "user", content: audio }];
    assert.deepEqual(forOlderClient({ messages }, revision), {
      messages: [{ role: "user", content: content[0] }],
    });
  }
});

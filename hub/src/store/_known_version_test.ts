import assert from "node:assert/strict";
import { publishedAgain } from "./_known_version.ts";

Deno.test("publishedAgain() accepts a manifest that an earlier hub stored with rounded numbers", () => {
  const text = '{"fqdn":"acme:files","tools":[{"maximum":9223372036854775807,"minimum":1.0}]}';
  const stored = JSON.stringify(JSON.parse(text));
  const again = publishedAgain(stored, { text, state: "public" });
  assert.deepEqual(again, { state: "public", isNew: false });
  const other = publishedAgain(stored, { text: text.replace("1.0", "2"), state: "public" });
  assert.deepEqual(other, { why: "exists" });
});

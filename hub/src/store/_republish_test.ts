import assert from "node:assert/strict";
import { republishResult } from "./_republish.ts";

Deno.test("republishResult() accepts a manifest that an earlier hub stored with rounded numbers", () => {
  const text = '{"fqdn":"acme:files","tools":[{"maximum":9223372036854775807,"minimum":1.0}]}';
  const stored = JSON.stringify(JSON.parse(text));
  const again = republishResult(stored, { text, state: "public" });
  assert.deepEqual(again, { state: "public", isNew: false });
  const other = republishResult(stored, { text: text.replace("1.0", "2"), state: "public" });
  assert.deepEqual(other, { why: "exists" });
});

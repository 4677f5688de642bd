import assert from "node:assert/strict";
import { maybeSecret, withoutSecrets } from "./secret_words.ts";

Deno.test("withoutSecrets() shows references to variables, and hides literal parts", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["Bearer ${DOCS_TOKEN}", "Bearer ${DOCS_TOKEN}"],
    ["token ${A}", "token ${A}"],
    ["${USER}:${PASS}", "${USER}:${PASS}"],
    ["Bearer ${DOCS_TOKEN:-}", "Bearer ${DOCS_TOKEN:-}"],
    ["Bearer ${DOCS_TOKEN:-hunter2-correct}", "Bearer ${DOCS_TOKEN:-[redacted]}"],
    ["Bearer hunter2${A}", "[redacted]${A}"],
    ["${A}hunter2", "${A}[redacted]"],
    ["${A} hunter2 ${B}", "${A}[redacted]${B}"],
    ["Bearer hunter2", "[redacted]"],
    ["Bearer ", "Bearer "],
    ["Bearer ${not closed", "[redacted]"],
    ["Bearer $DOCS_TOKEN", "[redacted]"],
    ["", ""],
    ["12", "12"],
  ];
  for (const [value, shown] of cases) {
    assert.equal(withoutSecrets("Authorization", value), shown, value);
  }
  assert.equal(maybeSecret("Authorization", "Bearer ${DOCS_TOKEN}"), true);
});

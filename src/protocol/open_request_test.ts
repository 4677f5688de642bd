import assert from "node:assert/strict";
import type { JsonObject } from "../core/json.ts";
import { textLengthOf } from "../core/tokens.ts";
import type { Hello } from "./connection.ts";
import { ResultTexts } from "./open_request.ts";

const SERVER = { name: "pml", version: "1" };

function makeTexts(): ResultTexts {
  return new ResultTexts(() => ({ serverInfo: SERVER, capabilities: {} }) as Hello);
}

Deno.test("ResultTexts writes the items of a list once, for both eras and for the metrics", () => {
  const texts = makeTexts();
  let count = 0;
  const item = { toJSON: () => (count++, { name: "t" }) } as unknown as JsonObject;
  const page = { tools: [item], nextCursor: "1-t" };
  assert.equal(textLengthOf(page), '[{"name":"t"}]'.length);
  const abouts: readonly JsonObject[] = [{}, {}, { ttlMs: 5, cacheScope: "private" }];
  for (const about of abouts) {
    for (const revisionKind of ["handshake", "stateless"] as const) {
      const written = texts.resultText({ ...page, ...about }, {
        method: "tools/list",
        revisionKind,
      });
      const own = { resultType: "complete", ttlMs: 0, cacheScope: "private" };
      const meta = { "io.modelcontextprotocol/serverInfo": SERVER };
      assert.deepEqual(JSON.parse(written), {
        ...{ tools: [{ name: "t" }], nextCursor: "1-t" },
        ...revisionKind === "stateless" && { ...own, _meta: meta },
        ...about,
      });
    }
  }
  assert.equal(count, 1);
});

Deno.test("ResultTexts writes each list as valid JSON, with any contents", () => {
  const texts = makeTexts();
  const lists = [
    ["tools/list", "tools"],
    ["prompts/list", "prompts"],
    ["resources/list", "resources"],
    ["resources/templates/list", "resourceTemplates"],
  ] as const;
  for (const [method, name] of lists) {
    for (const result of [{ [name]: [] }, { [name]: [{ name: "a" }], more: 1 }, {}]) {
      assert.deepEqual(
        JSON.parse(texts.resultText(result, { method, revisionKind: "handshake" })),
        result,
      );
    }
  }
});

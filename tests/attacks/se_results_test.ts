/**
 * Results and errors that no honest module returns: each becomes plain JSON or a clear refusal, and
 * the gateway keeps its memory and speed.
 *
 * @module
 */

import assert from "node:assert/strict";
import { rssOf } from "../kit/procwatch.ts";
import { assertRefused, attack } from "./evilmod/house.ts";

/** The code and text of a refusal, or the members of the result. */
type Wanted = readonly [code: string, like: RegExp] | { readonly text: string | RegExp };

const INVALID = (like: RegExp): Wanted => ["OUTPUT_INVALID", like];

const ODD: Readonly<Record<string, Wanted>> = {
  undefined: { text: "" },
  function: INVALID(/it is a function/),
  symbol: INVALID(/it is a symbol/),
  bigint: { text: "1" },
  nan: { text: '{"a":null,"b":null,"c":0}' },
  cycle: INVALID(/circular/),
  deep: INVALID(/nested deeper|call stack/),
  deeper: INVALID(/nested deeper/),
  getter: INVALID(/got/),
  getter_value: { text: '{"a":1}' },
  to_json: { text: '{"safe":true}' },
  to_json_throws: INVALID(/no/),
  proto: INVALID(/"__proto__"/),
  proto_deep: INVALID(/"__proto__"/),
  constructor: INVALID(/"constructor"/),
  prototype: INVALID(/"prototype"/),
  proto_content: INVALID(/"__proto__"/),
  proxy: INVALID(/"__proto__"/),
  thenable: { text: "then" },
  map: { text: "{}" },
  date: { text: "1970-01-01T00:00:00.000Z" },
  bytes: { text: '{"0":0,"1":0,"2":0}' },
  surrogate: { text: /^a.b\u2028c\0d$/ },
  error: { text: "{}" },
  content_not_list: { text: '{"content":"x"}' },
  content_bad_block: { text: '{"content":[{"type":7}]}' },
  content_unknown_block: INVALID(/not a valid MCP result/),
  content_text_missing: INVALID(/not a valid MCP result/),
  is_error_bad: INVALID(/not a valid MCP result/),
  meta_bad: INVALID(/not a valid MCP result/),
  // A module cannot ask the user: members that resemble a question of PML are removed from its
  // result.
  asks: { text: "" },
  large: ["RESULT_TOO_LARGE", /4194\d{4}/],
  blocks: ["RESULT_TOO_LARGE", /over 500000 JSON values in \d+ characters/],
  huge: ["SANDBOX_CRASHED", /memory/],
};

const THROWN: Readonly<Record<string, RegExp>> = {
  range: /^too far$/,
  text: /^just text$/,
  null: /^null$/,
  undefined: /^undefined$/,
  forged: /^forged$/,
  forged_approval: /^forged$/,
  getter: /cannot be read/,
  long: /^x{1,16000}$/,
  lines: /^a\n/,
  bomb: /Symbol/,
  cause: /^outer$/,
};

Deno.test("odd results become plain JSON or a clear refusal", async (t) => {
  const requests: string[] = [];
  const answer = (method: string) => void requests.push(method);
  const modules = { evil: "odd.ts", good: "good.ts" };
  await attack(
    { modules, era: "2026-07-28", stdio: { era: "2026-07-28", answer } },
    async ({ call }) => {
      for (const [kind, wanted] of Object.entries(ODD)) {
        await t.step(kind, async () => {
          const summary = await call("evil:odd", { kind });
          if ("text" in wanted) {
            assert.ok(!summary.isError, summary.text);
            if (typeof wanted.text === "string") assert.equal(summary.text, wanted.text);
            else assert.match(summary.text, wanted.text);
          } else assertRefused(summary, { code: wanted[0], like: wanted[1] });
        });
      }
      for (const [kind, like] of Object.entries(THROWN)) {
        await t.step(`throws ${kind}`, async () => {
          const summary = await call("evil:thrown", { kind });
          assert.ok(summary.isError);
          assert.equal(summary.code, undefined);
          assert.match(summary.text, like);
        });
      }
      assert.deepEqual(requests, []);
      assert.equal((await call("evil:polluted")).text, "undefined");
    },
  );
});

Deno.test("a result of a million items delays the gateway little, and its memory stays small", async () => {
  await attack(
    // The test measures its memory.
    { ownProcess: true, modules: { evil: "odd.ts", good: "good.ts" } },
    async ({ call, pml }) => {
      await call("good:ping");
      const before = await rssOf(pml.pid);
      const items = call("evil:odd", { kind: "items" });
      const blocks = call("evil:odd", { kind: "blocks" });
      const since = performance.now();
      assert.equal((await call("good:ping")).text, "pong");
      assert.ok(performance.now() - since < 6_000);
      assertRefused(await blocks, { code: "RESULT_TOO_LARGE" });
      assertRefused(await items, { code: "RESULT_TOO_LARGE" });
      assert.ok(await rssOf(pml.pid) - before < 256 * 1024 * 1024);
    },
  );
});

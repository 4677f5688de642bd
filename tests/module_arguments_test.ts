/**
 * Arguments and results of modules are checked against the schemas of their tools, without blocking
 * PML.
 *
 * @module
 */

import assert from "node:assert/strict";
import { call } from "./attacks/evil_servers.ts";
import { endWell, textOf } from "./attacks/oracles.ts";
import { makeScene } from "./attacks/stage.ts";

const MODULE = `
  const schema = (properties, more = {}) => ({ type: "object", properties, ...more });
  export const __meta__ = {
    name: "strict",
    tools: {
      count: {
        inputSchema: schema({ n: { type: "integer" } }, { required: ["n"] }),
        outputSchema: schema({ m: { type: "integer" } }, { required: ["m"] }),
      },
      slow: { inputSchema: schema({ s: { type: "string", pattern: "^(a+)+$" } }) },
      lost: { inputSchema: schema({ s: { $ref: "#/nowhere" } }) },
    },
  };
  const results = { 1: { m: 1 }, 2: { m: "x" }, 3: "text" };
  export const count = ({ n }) => results[n];
  export const slow = ({ s }) => s;
  export const lost = () => "it ran";`;

function scene() {
  return makeScene({
    files: { "strict.js": MODULE },
    pml: {
      version: 1,
      permissions: { allow: ["strict:*", "filesystem:*"] },
      private_mcps: { strict: { type: "deno", path: "./strict.js" } },
    },
  });
}

Deno.test("arguments of a module that do not match are refused with the signature of the tool", async () => {
  await using at = await scene();
  const { ws, pml } = at;
  assert.deepEqual((await call(pml, "strict:count", { n: 1 })).result?.structuredContent, { m: 1 });
  const wrong = textOf(await call(pml, "strict:count", { n: "1" }));
  assert.match(wrong, /BAD_ARGUMENTS: .*n: .*string, not integer/);
  assert.match(wrong, /count\(n: number\): \{ m: number \}/);
  assert.match(textOf(await call(pml, "strict:count", {})), /Missing argument: n/);
  const lost = textOf(await call(pml, "strict:lost", { s: 1 }));
  assert.match(lost, /\$ref "#\/nowhere" leads to no schema/);
  await endWell(ws, pml);
});

Deno.test("a result of a module that does not match its outputSchema is refused", async () => {
  await using at = await scene();
  const { ws, pml } = at;
  for (const n of [2, 3]) {
    const text = textOf(await call(pml, "strict:count", { n }));
    assert.match(text, /^OUTPUT_INVALID: .*does not match outputSchema/, `${n}`);
  }
  await endWell(ws, pml);
});

Deno.test("a pattern that takes forever ends its check, and other checks go on", async () => {
  await using at = await scene();
  const { ws, pml } = at;
  assert.equal(textOf(await call(pml, "strict:slow", { s: "aa" })), "aa");
  const [slow, other] = await Promise.all([
    call(pml, "strict:slow", { s: `${"a".repeat(60)}!` }),
    call(pml, "strict:count", { n: 1 }),
  ]);
  assert.match(textOf(slow), /Cannot check a value/);
  assert.deepEqual(other.result?.structuredContent, { m: 1 });
  await endWell(ws, pml);
});

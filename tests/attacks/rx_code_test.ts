/**
 * Code that would use all time, memory and attention: its run ends, and other calls continue
 * meanwhile.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { Message } from "../kit/json_rpc.ts";
import { rssOf } from "../kit/procwatch.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import {
  ledgerOf,
  ledgerScene,
  runCode,
  textsOf,
  valueOf,
  withoutTypeCheck,
} from "./code_tools.ts";
import { moduleText } from "./evilmod/house.ts";
import { assertServes, endWell, journalOf, ofKind } from "./oracles.ts";

const MB = 1024 * 1024;

async function bombs(): Promise<string> {
  return (await moduleText("bombs.ts")).replaceAll(/^export /gm, "");
}

/** Runs code, and reads a file repeatedly meanwhile. */
async function beside(pml: RawStdio, code: string, more = {}): Promise<Message> {
  let isOver = false;
  const running = runCode(pml, code, more).finally(() => isOver = true);
  running.catch(() => {}); // awaited below
  while (!isOver) {
    await assertServes(pml);
    // Fifty reads a second show a delay as well as a full load of two cores.
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return await running;
}

Deno.test("code that never ends is ended in time, and other calls do not wait (RX7)", async (t) => {
  await using scene = await ledgerScene();
  const { ws, pml } = scene;
  const text = await bombs();
  for (const how of ["loop", "regex", "atomics", "pending", "microtasks", "getter", "stdin"]) {
    const isEnded = await t.step(how, async () => {
      const since = performance.now();
      const code = `${text}\nreturn await hang({ how: "${how}" })`;
      const answer = await beside(pml, code, { timeout_ms: 400 });
      assert.match(textsOf(answer)[0] ?? "", /^TIMED_OUT: .* 400 ms[^]*timeout_ms/);
      const ms = performance.now() - since;
      assert.ok(ms > 380 && ms < 10_000, `it took ${ms} ms`);
    });
    if (!isEnded) return; // each of the others would take its minute
  }
  await endWell(ws, pml);
});

Deno.test("code that uses too much memory loses its child, and PML is not affected (RX7)", async (t) => {
  await using scene = await ledgerScene({
    // The test measures its memory.
    ownProcess: true,
    limits: { rss_mb: 400, heap_mb: 128 },
  });
  const { ws, pml } = scene;
  const text = await bombs();
  await valueOf(pml, "return 1");
  for (const how of ["heap", "buffers", "strings", "wasm", "shared"]) {
    await t.step(how, async () => {
      const before = await rssOf(pml.pid);
      const answer = await beside(pml, `${text}\nreturn await eat({ how: "${how}" })`);
      assert.match(textsOf(answer)[0] ?? "", /^SANDBOX_CRASHED: .*memory/);
      const grown = await rssOf(pml.pid) - before;
      assert.ok(grown < 80 * MB, `PML grew by ${grown}`);
    });
  }
  await endWell(ws, pml);
});

Deno.test("code may make a limited number of calls, in any way (RX7)", async () => {
  const limits = { code_calls: 20, frames: 2_000, frame_bytes: 8 * MB };
  await using scene = await ledgerScene({ limits });
  const { ws, pml } = scene;
  const count = `
    const told = await Promise.allSettled(
      Array.from({ length: 50 }, (_, at) => mcp.led.note({ text: String(at) })));
    return told.map(({ reason }) => reason?.code ?? "ran");`;
  const codes: readonly string[] = JSON.parse(await valueOf(pml, withoutTypeCheck(count)));
  assert.equal(codes.filter((one) => one === "ran").length, 20);
  assert.equal(codes.filter((one) => one === "OVERLOADED").length, 30);
  assert.equal((await ledgerOf(ws)).length, 20);
  const floods = [
    "for (;;) try { await mcp.led.echo() } catch {}",
    "for (;;) { mcp.led.echo(); await 1 }",
    "for (;;) { for (let i = 0; i < 50; i++) mcp.led.echo(); await new Promise((r) => setTimeout(r)) }",
    "for (;;) { mcp.led.echo({ a: 'x'.repeat(1_000_000) }); await new Promise((r) => setTimeout(r)) }",
  ];
  for (const code of floods) {
    const answer = await beside(pml, withoutTypeCheck(code), { timeout_ms: 1_500 });
    assert.match(textsOf(answer)[0] ?? "", /^(SANDBOX_CRASHED|TIMED_OUT)/, code);
  }
  await endWell(ws, pml);
  const starts = ofKind(await journalOf(ws), "start").filter(({ via }) => via === "code");
  assert.ok(starts.length <= 5 * 20, `${starts.length} calls`);
});

Deno.test("the results, messages and output of code are limited (RX7)", async () => {
  const limits = { result_bytes: 1 * MB, frame_bytes: 4 * MB, frames: 2_000 };
  await using scene = await ledgerScene({ limits });
  const { ws, pml } = scene;
  const cases: readonly (readonly [code: string, told: RegExp])[] = [
    ["return 'x'.repeat(2_000_000)", /^RESULT_TOO_LARGE/],
    ["return Array.from({ length: 600_000 }, () => ({}))", /^(RESULT_TOO_LARGE|OUTPUT_INVALID)/],
    [
      "return await mcp.led.echo({ a: 'x'.repeat(6_000_000) })",
      /^SANDBOX_CRASHED.*(bytes|too long)/,
    ],
    ["return (await mcp.led.big({ size: 900_000 })).length", /^900000$/],
    ["return (await mcp.led.big({ size: 2_000_000 })).length", /RESULT_TOO_LARGE/],
    ["for (;;) { progress(1); await 1 }", /^(SANDBOX_CRASHED|TIMED_OUT)/],
    ["for (;;) { console.log('x'); await 1 }", /^(SANDBOX_CRASHED|TIMED_OUT)/],
    ["throw new Error('x'.repeat(3_000_000))", /^(Error: x+ |RESULT_TOO_LARGE)/],
  ];
  for (const [code, told] of cases) {
    // Lines of the console are cut and not counted, so only the time limit ends code that writes
    // them.
    const timeout_ms = code.includes("console") ? 1_000 : 20_000;
    const text = await valueOf(pml, withoutTypeCheck(code), { timeout_ms });
    assert.match(text.slice(0, 20_000), told, `${code}: ${text.slice(0, 200)}`);
    assert.ok(text.length < 20_000, `${text.length} characters`);
  }
  await endWell(ws, pml);
});

Deno.test("code does not occupy a slot that its own tool calls need (RX7)", async () => {
  await using scene = await ledgerScene({ limits: { children: 1, idle_children: 1 } });
  const { ws, pml } = scene;
  const code = `
    const text = await mcp.filesystem.read_file({ path: "good.txt" });
    return [text, await mcp.led.echo({ a: 1 })];`;
  const all = await Promise.all([1, 2, 3].map(() => valueOf(pml, code)));
  for (const one of all) assert.equal(one, '["good\\n",{"given":{"a":1}}]');
  await endWell(ws, pml);
});

/**
 * One client whose calls need more permission sets than there may be sandbox children.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { Message } from "../kit/json_rpc.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { until } from "../kit/wait.ts";
import { attack } from "./evilmod/house.ts";
import { textOf } from "./oracles.ts";

/** Returns a module with a tool for each of so many folders; each tool may read its folder only. */
function manySets(name: string, count: number): string {
  const sets = Array.from({ length: count }, (_, at) => `t${at}`);
  const tools = sets.map((set) => `${set}: { permissions: { read: ["${set}"] } }`);
  const functions = sets.map((set) => `export const ${set} = work;`);
  return `
    export const __meta__ = { name: "${name}", tools: { ${tools.join(", ")} } };
    function work({ said, ms = 30 }, { log }) {
      if (said !== undefined) log("warn", said);
      return new Promise((done) => setTimeout(done, ms, "done"));
    }
    ${functions.join("\n")}`;
}

function folders(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`t${at}/empty`, ""]));
}

/** Returns how many sandbox children a gateway has. */
async function childrenOf({ watch }: RawStdio): Promise<number> {
  const all = await watch.living();
  return all.filter(({ command }) => command.includes("--unstable-worker-options")).length;
}

/** Returns the most children that a gateway had at a time until a promise settled. */
async function mostChildren(pml: RawStdio, over: Promise<unknown>): Promise<number> {
  let [most, isOver] = [0, false];
  const ended = over.finally(() => isOver = true);
  await until(async () => {
    most = Math.max(most, await childrenOf(pml));
    return isOver;
  }, 60_000);
  await ended;
  return most;
}

function batch(pml: RawStdio, tools: readonly string[], args = {}): Promise<Message> {
  const calls = tools.map((tool) => ({ tool, arguments: args }));
  return pml.callTool("batch", { calls }, { ms: 60_000 });
}

Deno.test("a batch over many permission sets uses few children at a time, and runs completely (GW5)", async () => {
  const limits = { children: 3 };
  const modules = { many: manySets("many", 14), more: manySets("more", 4) };
  await attack({ modules, limits, era: "2026-07-28", files: folders(14) }, async ({ pml }) => {
    const sets = [...Array(14).keys()].map((at) => `many:t${at}`);
    const more = [...Array(4).keys()].map((at) => `more:t${at}`);
    const running = batch(pml, [...sets, ...more, ...sets]);
    const most = await mostChildren(pml, running);
    const text = textOf(await running);
    assert.equal(text.match(/done/g)?.length, 32, text);
    assert.ok(most <= limits.children, `${most} children at once`);
    assert.ok(most > 1);
  });
});

Deno.test("fifty permission sets in one batch use eight children by default (GW5)", async () => {
  await attack({ modules: { many: manySets("many", 50) }, files: folders(50) }, async ({ pml }) => {
    const running = batch(pml, [...Array(50).keys()].map((at) => `many:t${at}`), { ms: 100 });
    const most = await mostChildren(pml, running);
    const text = textOf(await running);
    assert.equal(text.match(/done/g)?.length, 50, text);
    assert.ok(most > 4 && most <= 8, `${most} children at once`);
  });
});

Deno.test("a call may wait for a child longer than its deadline, and a cancelled one leaves the queue (GW5)", async () => {
  const limits = { children: 1, call_ms: 6_000 };
  const modules = { many: manySets("many", 5) };
  await attack({ modules, limits, files: folders(5) }, async ({ pml, call }) => {
    assert.equal((await call("many:t0")).text, "done");
    const first = call("many:t0", { ms: 3_000, said: "t0 runs" });
    await until(() => pml.stderr.includes("t0 runs"));
    const given = { tool: "many:t1", arguments: { said: "t1 runs" } };
    const params = { name: "call", arguments: given };
    await pml.sendJson({ jsonrpc: "2.0", id: "given up", method: "tools/call", params });
    const rest = [2, 3, 4].map((at) => call(`many:t${at}`, { ms: 1_500, said: `t${at} runs` }));
    await pml.notify("notifications/cancelled", { requestId: "given up", reason: "enough" });
    for (const { text } of await Promise.all([first, ...rest])) assert.equal(text, "done");
    assert.ok(!pml.stderr.includes("t1 runs"));
    // Calls that arrive together may reach the queue in any order.
    const [running, ...later] = [...pml.stderr.matchAll(/t(\d) runs/g)].map(([, at]) => at);
    assert.deepEqual([running, ...later.sort()], ["0", "2", "3", "4"]);
  });
});

Deno.test("calls that keep their child busy do not block others (GW5)", async () => {
  const modules = { many: manySets("many", 3) };
  const limits = { children: 2 };
  await attack({ modules, limits, files: folders(3) }, async ({ pml, call }) => {
    let [isServed, calls] = [false, 0];
    const ended: Promise<unknown>[] = [];
    // Two calls of each run at any time; the next begins before the other ends.
    const hot = async (tool: string): Promise<void> => {
      while (!isServed) {
        const running = call(tool, { ms: 300, said: "hot runs" });
        ended.push(running);
        await Promise.race([running, new Promise((done) => setTimeout(done, 150))]);
        calls++;
      }
    };
    const heat = Promise.all([hot("many:t0"), hot("many:t1")]);
    await until(() => pml.stderr.split("hot runs").length > 4);
    const cold = await call("many:t2");
    isServed = true;
    await Promise.all([heat, ...ended]);
    assert.equal(cold.text, "done");
    assert.ok(calls < 200, `it waited for ${calls} calls`);
  });
});

Deno.test("the next child is ready before an idle one times out (GW5)", async () => {
  const modules = { many: manySets("many", 6) };
  await attack({ modules, limits: { children: 2 }, files: folders(6) }, async ({ pml, call }) => {
    for (let at = 0; at < 6; at++) {
      assert.equal((await call(`many:t${at}`, {}, 5_000)).text, "done");
      const children = await childrenOf(pml);
      assert.ok(children <= 2, `${children} children`);
    }
  });
});

/**
 * Modules that end their own thread or process, or try to end others: only their own child dies,
 * and the next call has another.
 *
 * @module
 */

import assert from "node:assert/strict";
import { processes } from "../kit/procwatch.ts";
import { attack, type House } from "./evilmod/house.ts";

/** Codes that a death may have; no code is an ordinary error of the module. */
const DEATHS: Readonly<Record<string, readonly (string | undefined)[]>> = {
  exit: ["SANDBOX_CRASHED"],
  exit_code: ["SANDBOX_CRASHED"],
  process_exit: ["SANDBOX_CRASHED"],
  really_exit: ["SANDBOX_CRASHED"],
  abort: ["SANDBOX_CRASHED", undefined],
  close: ["SANDBOX_CRASHED"],
  close_at_once: ["SANDBOX_CRASHED"],
  kill_self: ["SANDBOX_DENIED"],
  kill_parent: ["SANDBOX_DENIED"],
  node_kill_self: ["SANDBOX_CRASHED", "SANDBOX_DENIED"],
  node_kill_parent: ["SANDBOX_DENIED"],
  node_kill_group: ["SANDBOX_DENIED"],
  node_kill_all: ["SANDBOX_DENIED"],
  unhandled: ["SANDBOX_CRASHED"],
  throw_later: ["SANDBOX_CRASHED"],
  report: ["SANDBOX_CRASHED"],
  stack: [undefined],
  bad_top_level: ["SANDBOX_CRASHED"],
  // Last, because only the deadline ends these two.
  node_stop_self: ["TIMED_OUT", "SANDBOX_CRASHED", "SANDBOX_DENIED"],
};

Deno.test("a module can end nothing but its own child, and the next call has another", async (t) => {
  const modules = { evil: "life.ts", good: "good.ts" };
  await attack({ modules, limits: { call_ms: 1500 } }, async (house) => {
    const neighbour = (await house.call("good:pid")).text;
    for (const [how, codes] of Object.entries(DEATHS)) {
      await t.step(how, async () => {
        const before = await pidOf(house);
        const summary = await house.call("evil:die", { how });
        assert.ok(summary.isError);
        assert.ok(codes.includes(summary.code), `${summary.code}: ${summary.text}`);
        const after = await pidOf(house);
        if (summary.code === "SANDBOX_CRASHED") assert.notEqual(after, before);
        assert.equal((await house.call("good:pid")).text, neighbour, "the other module's child");
      });
    }
  });
});

Deno.test("a module that ignores signals ends with the gateway", async () => {
  const modules = { evil: "life.ts" };
  // As a separate process, PML is the parent of the child.
  await attack({ ownProcess: true, modules }, async ({ call, pml }) => {
    const pid = Number((await call("evil:pid", { deaf: true })).text);
    assert.ok(pid > 0);
    const [child] = (await processes()).filter((one) => one.pid === pid);
    assert.equal(child?.parent, pml.pid);
  });
});

Deno.test("a module that dies while it loads affects only its own calls", async () => {
  const last = 'export const __meta__ = { name: "m", tools: { ping: {} } };\n' +
    'export const ping = () => "pong";\n';
  const modules = {
    exits: `Deno.exit(0);\n${last}`,
    closes: `self.close();\n${last}`,
    throws: `throw new Error("at the top");\n${last}`,
    kills: `process.kill(process.pid, "SIGKILL");\n${last}`,
    good: "good.ts",
  };
  await attack({ modules, limits: { call_ms: 2_000 } }, async ({ call }) => {
    for (const name of ["exits", "closes", "throws", "kills"]) {
      const summary = await call(`${name}:ping`);
      assert.ok(["SANDBOX_CRASHED", "SANDBOX_DENIED"].includes(summary.code ?? ""), summary.text);
      assert.equal((await call("good:ping")).text, "pong");
    }
  });
});

Deno.test("a module that never finishes loading is ended at the start timeout", async () => {
  const last = 'export const __meta__ = { name: "m", tools: { ping: {} } };\n' +
    'export const ping = () => "pong";\n';
  const modules = {
    waits: `await new Promise(() => {});\n${last}`,
    loops: `for (;;);\n${last}`,
    good: "good.ts",
  };
  await attack({ modules, limits: { start_ms: 1_000 } }, async ({ call }) => {
    const hanging = [call("waits:ping", {}, 5_000), call("loops:ping", {}, 5_000)];
    assert.equal((await call("good:ping")).text, "pong");
    for (const summary of await Promise.all(hanging)) assert.equal(summary.code, "SANDBOX_CRASHED");
  });
});

async function pidOf({ call }: House): Promise<string> {
  const summary = await call("evil:pid");
  assert.match(summary.text, /^\d+$/);
  return summary.text;
}

/**
 * The cost of many modules over a long time: children, file descriptors, memory and folders of the
 * gateway, bytes that one child writes, and modules that always crash.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { openFiles, rssOf, treeOf } from "../kit/procwatch.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { waitUntil } from "../kit/wait.ts";
import { assertRefused, attack } from "./evilmod/house.ts";
import { endWell } from "./oracles.ts";
import { makeScene } from "./stage.ts";

const MB = 1024 * 1024;

const SMALL = (name: string) =>
  `export const __meta__ = { name: "${name}", tools: { pid: {} } };
export const pid = () => String(Deno.pid);\n`;

/** A module that may write, and tries to use all memory or disk, or to crash. */
const WRITER = `
export const __meta__ = {
  name: "writer", permissions: { read: ["."], write: ["."] },
  tools: { eat: {}, fill: {}, append: {}, temp: {}, ping: {} },
};
export const ping = () => "pong";
export function eat() {
  const kept = [];
  for (;;) kept.push(new Uint8Array(16 * 1024 * 1024).fill(1));
}
export function fill({ path, mb }) {
  const bytes = new Uint8Array(256 * 1024).fill(120);
  using file = Deno.openSync(path, { write: true, create: true });
  for (let at = 0; at < mb * 4; at++) file.writeSync(bytes);
  return "filled";
}
export async function append({ path, mb }) {
  const text = "x".repeat(256 * 1024);
  for (let at = 0; at < mb * 4; at++) await Deno.writeTextFile(path, text, { append: true });
  return "filled";
}
export async function temp() {
  const path = await Deno.makeTempFile();
  await Deno.writeTextFile(path, "left behind");
  return path;
}
`;

const CRASH = `
export const __meta__ = { name: "crash", tools: { go: {} } };
export const go = () => { setTimeout(() => { throw new Error("crashed"); }); return new Promise(() => {}); };
`;

Deno.test("a module that may write is limited in memory and in written bytes (RX2, RX9)", async () => {
  const limits = { rss_mb: 400, write_bytes: 2 * MB, call_ms: 20_000 };
  await attack(
    // The test measures its memory.
    { ownProcess: true, modules: { writer: WRITER, small: SMALL("small") }, limits },
    async (house) => {
      const { call, ws, pml } = house;
      await call("small:pid");
      const before = await rssOf(pml.pid);
      const eaten = assertRefused(await call("writer:eat"), {
        code: "SANDBOX_CRASHED",
        like: /memory/,
      });
      assert.equal(eaten.detail?.reason as unknown, "memory");
      assert.ok(await rssOf(pml.pid) - before < 50 * MB);
      for (const tool of ["fill", "append"]) {
        const args = { path: `${tool}.txt`, mb: 6 };
        assertRefused(await call(`writer:${tool}`, args), {
          code: "SANDBOX_DENIED",
          like: /write_bytes/,
        });
        assert.ok((await stat(ws.file(args.path))).size <= 2 * MB, tool);
        // Written bytes count as long as the child lives.
        assertRefused(await call(`writer:${tool}`, { ...args, path: "more.txt", mb: 3 }), {
          code: "SANDBOX_DENIED",
        });
      }
      const temp = await call("writer:temp");
      const own = join(ws.home, "sandbox");
      assert.ok(temp.code !== undefined || temp.text.startsWith(own), temp.text);
      assert.match((await call("small:pid")).text, /^\d+$/);
    },
  );
});

Deno.test("a module that always crashes has to wait, and no other does", async () => {
  const modules = { crash: CRASH, small: SMALL("small") };
  await attack({ modules }, async ({ call }) => {
    await call("small:pid");
    for (let turn = 0; turn < 5; turn++) {
      const { detail } = assertRefused(await call("crash:go"), { code: "SANDBOX_CRASHED" });
      assert.notEqual(detail?.reason as unknown, "backoff", `after ${turn}`);
    }
    const since = performance.now();
    const { detail } = assertRefused(await call("crash:go"), { code: "SANDBOX_CRASHED" });
    assert.equal(detail?.reason as unknown, "backoff");
    assert.ok(Number(detail?.retry_after_ms) > 0);
    assert.ok(performance.now() - since < 400, "a refusal waits for no start");
    assert.match((await call("small:pid")).text, /^\d+$/);
  });
});

Deno.test("fifty children of twenty-five modules leave nothing behind, and only a few live at a time (RX11)", async () => {
  const names = Array.from({ length: 25 }, (_, at) => `m${at}`);
  const modules = Object.fromEntries(names.map((name) => [name, SMALL(name)]));
  const idle = 1;
  await attack(
    // The test counts its children and files.
    { ownProcess: true, modules, limits: { idle_children: idle } },
    async ({ call, pml, ws }) => {
      const seen = new Set<string>();
      let [most, memory] = [0, 0];
      const use = async (name: string) => void seen.add((await call(`${name}:pid`)).text);
      const watched = async () => {
        for (const name of names) {
          await use(name);
          const children = await childrenOf(pml);
          most = Math.max(most, children.length);
          const each = await Promise.all(children.map(({ pid }) => rssOf(pid)));
          memory = Math.max(memory, each.reduce((sum, one) => sum + one, 0));
        }
      };
      const hurried = async () => {
        for (let at = 0; at < names.length; at += 4) {
          await Promise.all(names.slice(at, at + 4).map(use));
        }
      };
      // The first round also describes each module in a separate child.
      await watched();
      await settled(pml);
      const before = await gatewayOf(pml);
      await hurried();
      await settled(pml);
      const after = await gatewayOf(pml);
      const text = JSON.stringify({ before, after, most, memory });
      assert.ok(seen.size >= 45, `${seen.size} children answered`);
      // Next to the idle ones: one that works, one that describes a module, a spare one, one that
      // ends.
      assert.ok(most <= idle + 4, text);
      assert.ok(memory < 600 * MB, text);
      assert.ok(after.files <= before.files * 1.1, text);
      assert.ok(after.rss < before.rss * 1.1, text);
      const folders = await readdir(join(ws.home, "sandbox"));
      assert.ok(folders.length <= idle + 2, folders.join(" "));
    },
  );
});

async function childrenOf(pml: RawStdio) {
  const tree = await treeOf(pml.pid);
  return tree.filter(({ command }) => command.includes("--unstable-worker-options"));
}

/** Waits until only the idle and the spare children live. */
async function settled(pml: RawStdio): Promise<void> {
  let since = Infinity;
  const isSettled = async () => {
    const kept = (await childrenOf(pml)).length === 2;
    since = kept ? Math.min(since, performance.now()) : Infinity;
    return performance.now() - since > 500;
  };
  assert.ok(await waitUntil(isSettled));
}

async function gatewayOf({ pid }: RawStdio) {
  return { files: (await openFiles(pid)).length, rss: await rssOf(pid) };
}

Deno.test("tools with alternating permissions start no child beyond their own and a spare one", async () => {
  // The test counts its children.
  await using scene = await makeScene({ ownProcess: true });
  const { ws, pml } = scene;
  const seen = new Set<number>();
  for (let at = 0; at < 12; at++) {
    await pml.callTool("filesystem__read_file", { path: "good.txt" });
    await pml.callTool("filesystem__write_file", { path: "made.txt", content: `${at}` });
    for (const { pid } of await childrenOf(pml)) seen.add(pid);
  }
  // One that reads, one that writes, and a spare one after the start of each.
  assert.ok(seen.size <= 4, `${seen.size} children`);
  await endWell(ws, pml);
});

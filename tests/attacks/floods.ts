/**
 * A scene with servers whose results have a requested size, and checks that PML serves other
 * clients meanwhile.
 *
 * @module
 */

import assert from "node:assert/strict";
import process from "node:process";
import type { Message } from "../kit/json_rpc.ts";
import { repoFile } from "../kit/pml_command.ts";
import { rssOf } from "../kit/procwatch.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { assertServes, codeOf, textOf } from "./oracles.ts";
import { makeScene, type Scene, type SceneOptions } from "./stage.ts";

/** The most memory that PML may use meanwhile. */
const RSS_MAX = 600_000_000;
/** For how many milliseconds PML may be busy with other work before it answers. */
const WAIT_MAX = 600;
/** Clock ticks in a second, the unit of the kernel's times. */
const TICKS = 100;

/** Defines servers that return results of a requested size. */
export function floodServers(names: readonly string[]): Record<string, unknown> {
  const args = ["run", "-A", "--no-config", "--quiet", repoFile("tests/kit/flood_server.ts")];
  return Object.fromEntries(names.map((name) => [name, { command: process.execPath, args }]));
}

/** Creates a scene with such servers, which are started and known, and with other servers. */
export async function floodScene(
  names: readonly string[],
  { servers = {}, ...options }: SceneOptions & { readonly servers?: Record<string, unknown> } = {},
): Promise<Scene> {
  const mcpServers = { ...floodServers(names), ...servers };
  const allow = ["filesystem:*", ...Object.keys(mcpServers).map((name) => `${name}:*`)];
  const pml = { version: 1, permissions: { allow }, mcpServers };
  // The test measures the memory and the time of PML alone.
  const scene = await makeScene({ pml, ...options, ownProcess: true });
  for (const name of names) assert.equal(textOf(await flood(scene.pml, `${name}:done`)), "done");
  await assertServes(scene.pml);
  return scene;
}

/**
 * Asks a server for a result of about so many bytes; `size` also decides the position of its id.
 */
export function flood(pml: RawStdio, id: string, size = 0): Promise<Message> {
  const [server, tool] = id.split(":");
  return pml.callTool(`${server}__${tool}`, { size }, { ms: 60_000 });
}

/**
 * Runs an action while another call is repeated, and limits the time of these calls and the memory.
 * The time is that of PML itself: on a busy machine, everything waits.
 */
export async function assertResponsive<T>(pml: RawStdio, act: () => Promise<T>): Promise<T> {
  const seen = { worst: 0, longest: 0, rss: 0 };
  const over = new AbortController();
  const look = setInterval(async () => seen.rss = Math.max(seen.rss, await rssOf(pml.pid)), 10);
  const others = (async () => {
    while (!over.signal.aborted) {
      const [since, busy] = [performance.now(), await busyMs(pml.pid)];
      await assertServes(pml);
      seen.worst = Math.max(seen.worst, await busyMs(pml.pid) - busy);
      seen.longest = Math.max(seen.longest, performance.now() - since);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
  try {
    return await act();
  } finally {
    over.abort();
    await others;
    clearInterval(look);
    const text = `PML was busy for ${seen.worst} ms in another call, which took ${seen.longest}`;
    assert.ok(seen.worst < WAIT_MAX && seen.longest < 100 * WAIT_MAX, text);
    assert.ok(seen.rss < RSS_MAX, `PML had ${seen.rss} bytes`);
  }
}

/** Returns for how long the main thread of a process has run. */
export async function busyMs(pid: number): Promise<number> {
  const stat = await Deno.readTextFile(`/proc/${pid}/task/${pid}/stat`);
  const [user, system] = stat.slice(stat.lastIndexOf(")") + 2).split(" ").slice(11, 13);
  return (Number(user) + Number(system)) * 1_000 / TICKS;
}

/** Asserts that a call was refused with a code and a text. */
export function assertRefused(answer: Message, like: RegExp): void {
  assert.equal(codeOf(answer), "RESULT_TOO_LARGE", textOf(answer).slice(0, 300));
  assert.match(textOf(answer), like);
}

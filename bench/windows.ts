/**
 * Measures ten `pml stdio` (one per window of a client) that attach to a running `pml serve`, and ten
 * that work alone. Prints the time to the first answer, and the proportional memory of all processes.
 * The first one makes calls until all shared parts are loaded, so that the memory of each further one
 * is measured alone.
 *
 * Run `deno task bench:windows [--servers N]` on Linux. Every window calls a built-in server and N
 * stdio servers.
 *
 * @module
 */

import { parseArgs } from "node:util";
import { floodServers } from "../tests/attacks/floods.ts";
import { makeAttackWorkspace } from "../tests/attacks/stage.ts";
import { servePml } from "../tests/kit/pml_serve.ts";
import { treeOf } from "../tests/kit/procwatch.ts";
import { RawStdio } from "../tests/kit/raw_stdio.ts";
import type { Workspace } from "../tests/kit/workspace.ts";

const WINDOWS = 10;
const ROUNDS = 2;
const WARM_UP = 20;
/** The maximum time in which the sandbox starts its spare child, in milliseconds. */
const SETTLE_MS = 3_000;
const { values: { servers } } = parseArgs({
  args: Deno.args,
  options: { servers: { type: "string", default: "0" } },
});
const NAMES = Array.from({ length: Number(servers) }, (_, at) => `stdio-${at}`);
const READ = { tool: "filesystem:read_file", arguments: { path: "good.txt" } };

async function megabytes(pids: readonly number[]): Promise<number> {
  let sum = 0;
  for (const root of pids) {
    for (const { pid } of await treeOf(root)) {
      const text = await Deno.readTextFile(`/proc/${pid}/smaps_rollup`).catch(() => "");
      sum += Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0);
    }
  }
  return sum / 1024;
}

async function openWindow(ws: Workspace): Promise<{ readonly pml: RawStdio; readonly ms: number }> {
  const since = performance.now();
  const pml = new RawStdio(ws);
  await pml.open();
  const ms = performance.now() - since;
  await call(pml);
  return { pml, ms };
}

async function call(pml: RawStdio): Promise<void> {
  for (const params of [READ, ...NAMES.map((name) => ({ tool: `${name}:done` }))]) {
    const { result } = await pml.callTool("call", params);
    if (result === undefined || "isError" in result) throw new Error(JSON.stringify(result));
  }
}

async function warmUp(pml: RawStdio): Promise<void> {
  for (let at = 0; at < WARM_UP; at++) await call(pml);
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
}

async function measure(isAttached: boolean): Promise<void> {
  const pml = {
    version: 1,
    permissions: { allow: ["filesystem:read_file", ...NAMES.map((name) => `${name}:*`)] },
    mcpServers: floodServers(NAMES),
  };
  await using ws = await makeAttackWorkspace({ pml });
  const served = isAttached ? await servePml(ws) : undefined;
  const all: Awaited<ReturnType<typeof openWindow>>[] = [];
  const sizes: number[] = [];
  for (let at = 0; at < WINDOWS; at++) {
    const window = await openWindow(ws);
    all.push(window);
    if (at === 0) await warmUp(window.pml);
    const pids = all.map(({ pml }) => pml.pid);
    sizes.push(await megabytes(served === undefined ? pids : [served.pid, ...pids]));
  }
  const [first = 0, last = 0] = [sizes[0], sizes.at(-1)];
  const times = all.map(({ ms }) => ms).sort((a, b) => a - b);
  console.log(
    isAttached ? "attached" : "alone   ",
    `first answer ${times[WINDOWS >> 1]?.toFixed(0)} ms,`,
    `${WINDOWS} windows ${last.toFixed(0)} MB,`,
    `each further one ${((last - first) / (WINDOWS - 1)).toFixed(1)} MB`,
  );
  for (const { pml } of all) await pml[Symbol.asyncDispose]();
  await served?.[Symbol.asyncDispose]();
}

for (let round = 0; round < ROUNDS; round++) {
  await measure(false);
  await measure(true);
}

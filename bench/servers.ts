/**
 * Measures stdio servers: a list of a thousand tools, and calls of a server next to servers that hang
 * or have ended.
 *
 *     deno run -A bench/servers.ts
 *
 * @module
 */

import { evil } from "../tests/attacks/evil_servers.ts";
import { makeScene } from "../tests/attacks/stage.ts";
import type { RawStdio } from "../tests/kit/raw_stdio.ts";

const TOOLS = Array.from({ length: 1_000 }, (_, at) => ({
  name: `tool_${at}`,
  description: `Does the thing with the number ${at} to whatever it is given`,
  inputSchema: {
    type: "object",
    properties: {
      path: { type: "string", description: "Where it is" },
      count: { type: "integer", minimum: 0 },
      kind: { enum: ["one", "two", "three"] },
    },
    required: ["path"],
  },
}));

function median(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[times.length >> 1] ?? 0;
}

async function measureTime(work: () => Promise<unknown>): Promise<number> {
  const since = performance.now();
  await work();
  return performance.now() - since;
}

async function medianTime(count: number, work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let at = 0; at < count; at++) times.push(await measureTime(work));
  return median(times);
}

function echo(pml: RawStdio, server: string): Promise<unknown> {
  return pml.callTool("call", { tool: `${server}:echo`, arguments: {} }, { ms: 60_000 });
}

async function scene(modes: readonly string[]): ReturnType<typeof makeScene> {
  const servers = Object.fromEntries(modes.map((mode) => [mode, evil(mode)]));
  return await makeScene({
    pml: {
      version: 1,
      permissions: { allow: ["lists:*", ...modes.map((mode) => `${mode}:*`)] },
      gateway: { tools_exposure: "full_proxy" },
      mcpServers: { lists: evil("lists", "./tools.json"), ...servers },
    },
    files: { "tools.json": JSON.stringify(TOOLS) },
  });
}

await using healthy = await scene([]);
await healthy.pml.request("tools/list", {});
const healthyList = await medianTime(31, () => healthy.pml.request("tools/list", {}));
await healthy.pml.close();

await using troubled = await scene(["good", "hang-init", "exit"]);
const { pml, ws } = troubled;
const first = await measureTime(() => pml.request("tools/list", {}));
const later = await medianTime(15, () => pml.request("tools/list", {}));
await echo(pml, "good");
const alone = await medianTime(200, () => echo(pml, "good"));
const hanging = [echo(pml, "hang-init"), echo(pml, "hang-init"), echo(pml, "exit")];
const withDead = await medianTime(200, () => echo(pml, "good"));
const starts = (await Deno.readTextFile(ws.file("good.ledger"))).match(/start \d+/g) ?? [];
Deno.kill(Number(starts.at(-1)?.slice("start ".length)), "SIGKILL");
const nextCall = await measureTime(async () => {
  // Calls fail with this error until PML has restarted the server.
  while (JSON.stringify(await echo(pml, "good")).includes("UPSTREAM_DOWN"));
});
await pml.kill("SIGKILL");
await Promise.allSettled(hanging);

console.log(`list of 1,000 tools, known: ${healthyList.toFixed(1)} ms`);
console.log(`next to one that hangs, first: ${first.toFixed(0)} ms, known: ${later.toFixed(1)} ms`);
console.log(`call alone: ${alone.toFixed(2)} ms, next to dead and hung: ${withDead.toFixed(2)} ms`);
console.log(`ratio: ${(withDead / alone).toFixed(2)}`);
console.log(`next call after kill -9: ${nextCall.toFixed(0)} ms`);

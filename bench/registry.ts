/**
 * Measures a server of a registry: its first call, cold and from the cache, relative to a module of
 * the user; a search over a large catalog; and a start with a registry that never answers.
 *
 * @module
 */

import { createServer } from "node:net";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { FakeRegistry, manifestEntry, moduleEntry } from "../tests/kit/fake_registry.ts";
import { median, pathOf, type Row, StdioProcess } from "./measure.ts";

const RUNS = 9;
const SEARCHES = 100;
const WARM_UP = 30;
const ENTRIES = 10_000;

/** About 60 KB, the size of a larger module. */
const FILLER = `/* ${"some text to fill lines ".repeat(2_500)} */`;
const MODULE = `export const __meta__ = {
  name: "clock", version: "1.0.0",
  tools: { tell: { description: "Tell the time", inputSchema: { type: "object" } } },
};
export function tell() { return "late"; }
${FILLER}
`;

interface Scene {
  readonly cwd: string;
  readonly home: string;
}

/** Measures modules of a registry, a large catalog, and a registry that never answers. */
export async function benchRegistry(): Promise<readonly Row[]> {
  await using registry = await FakeRegistry.open([await moduleEntry("clock", MODULE)]);
  const { url } = registry;
  const ownModule: number[] = [];
  const cold: number[] = [];
  const cached: number[] = [];
  const warm: number[] = [];
  const downloads: number[] = [];
  for (let run = 0; run < RUNS; run++) {
    const ownScene = await sceneOf({ clock: { type: "deno", path: "clock.js" } });
    ownModule.push((await timeCalls(ownScene)).first);
    const scene = await sceneOf();
    cold.push((await timeCalls({ ...scene, registries: url })).first);
    const secondStart = await timeCalls({ ...scene, registries: url });
    cached.push(secondStart.first);
    warm.push(secondStart.next);
    downloads.push(await download(url));
    for (const { cwd } of [ownScene, scene]) await Deno.remove(`${cwd}/..`, { recursive: true });
  }
  const withoutDownloadMs = median(cold) - median(downloads);
  const row = { unit: "ms", runs: RUNS, baseline: median(ownModule) };
  return [
    {
      ...row,
      what: "first call of a registry's module, without its download, over a module of the user",
      value: withoutDownloadMs,
      wanted: { of: "difference", most: 50 },
    },
    {
      ...row,
      what: "first call of a registry's module from the cache; baseline: a module of the user",
      value: median(cached),
      wanted: { of: "figure", most: 50 },
    },
    {
      ...row,
      what: "next call of a registry's module",
      value: median(warm),
    },
    ...await benchCatalog(),
    await benchSilentRegistry(),
  ];
}

async function benchCatalog(): Promise<readonly Row[]> {
  const words = ["weather", "invoice", "calendar", "ship", "tide", "map", "mail", "song", "stock"];
  const entries = Array.from({ length: ENTRIES }, (_, at) => {
    const word = words[at % words.length];
    const description = `Looks up the ${word} number ${at} of a region, by name`;
    const tools = [{ name: `get_${word}_${at}`, description, inputSchema: { type: "object" } }];
    const proxy_to = "https://servers.example/mcp";
    return manifestEntry(`server-${at}`, { type: "cloud", proxy_to, description, tools });
  });
  await using registry = await FakeRegistry.open(entries);
  const scene = await sceneOf();
  const options = { ...scene, args: ["stdio"], registries: registry.url };
  const search = (query: string) => ({ name: "search", arguments: { query } });
  {
    await using pml = new StdioProcess(pathOf("mod.ts"), options);
    await pml.initialize();
    await pml.request(1, "tools/call", search("weather"));
    // The first search ends before PML has all pages; PML reads the other pages in the background.
    await until(async () => {
      const result = JSON.stringify(await pml.request(2, "tools/call", search("server-9999")));
      return result.includes("server-9999");
    });
  }
  await using pml = new StdioProcess(pathOf("mod.ts"), options);
  await pml.initialize();
  const since = performance.now();
  await pml.request(1, "tools/call", search("the tide in a region"));
  const first = performance.now() - since;
  const nothing = { tool: "plain:echo", arguments: { text: "nothing" } };
  const searches: number[] = [];
  const calls: number[] = [];
  for (let run = -WARM_UP; run < SEARCHES; run++) {
    const id = 1_000 + 2 * run;
    const query = `${words[Math.abs(run) % words.length]} ${run}`;
    const searchMs = await measureTime(() => pml.request(id, "tools/call", search(query)));
    const call = { name: "call", arguments: nothing };
    const callMs = await measureTime(() => pml.request(id + 1, "tools/call", call));
    if (run >= 0) searches.push(searchMs), calls.push(callMs);
  }
  await Deno.remove(`${scene.cwd}/..`, { recursive: true });
  return [
    {
      what: `first search over a catalog of ${ENTRIES} servers, from the cache`,
      value: first,
      unit: "ms",
      wanted: { of: "figure", most: 500 },
      runs: 1,
    },
    {
      what: `search over a catalog of ${ENTRIES} servers, relative to a call that does nothing`,
      value: median(searches),
      baseline: median(calls),
      unit: "ms",
      wanted: { of: "ratio", most: 2 },
      runs: SEARCHES,
    },
  ];
}

async function measureTime(work: () => Promise<unknown>): Promise<number> {
  const since = performance.now();
  await work();
  return performance.now() - since;
}

async function benchSilentRegistry(): Promise<Row> {
  const silentServer = createServer(() => {});
  silentServer.listen(0, "127.0.0.1");
  await once(silentServer, "listening");
  const registries = `http://127.0.0.1:${(silentServer.address() as AddressInfo).port}/mcp`;
  const scene = await sceneOf();
  const start = async (registries?: string) => {
    const since = performance.now();
    const settings = registries === undefined ? {} : { registries };
    await using pml = new StdioProcess(pathOf("mod.ts"), {
      ...scene,
      args: ["stdio"],
      ...settings,
    });
    await pml.initialize();
    return performance.now() - since;
  };
  const [withRegistry, without]: [number[], number[]] = [[], []];
  for (let run = 0; run < RUNS; run++) {
    without.push(await start());
    withRegistry.push(await start(registries));
  }
  silentServer.close();
  await Deno.remove(`${scene.cwd}/..`, { recursive: true });
  const [value, baseline] = [median(withRegistry), median(without)];
  return {
    what: "first answer with a registry that never answers, relative to none",
    value,
    unit: "ms",
    baseline,
    wanted: { of: "ratio", most: 1.1 },
    runs: RUNS,
  };
}

async function sceneOf(private_mcps = {}): Promise<Scene> {
  const root = await Deno.makeTempDir({ prefix: "pml-bench-" });
  const cwd = `${root}/ws`;
  await Deno.mkdir(cwd);
  await Deno.writeTextFile(`${cwd}/small.txt`, "hello\n");
  await Deno.writeTextFile(`${cwd}/clock.js`, MODULE);
  const config = {
    version: 1,
    permissions: { allow: ["clock:*", "filesystem:*", "plain:*"] },
    private_mcps,
    mcpServers: {
      plain: {
        command: Deno.execPath(),
        args: ["run", "-A", pathOf("bench/floor/server.ts")],
      },
    },
  };
  await Deno.writeTextFile(`${cwd}/.pml.json`, JSON.stringify(config));
  return { cwd, home: `${root}/home` };
}

/** Starts PML, makes a call of another tool, and times the first two calls of the module. */
async function timeCalls(
  scene: Scene & { readonly registries?: string },
): Promise<{ readonly first: number; readonly next: number }> {
  await using pml = new StdioProcess(pathOf("mod.ts"), { ...scene, args: ["stdio"] });
  await pml.initialize();
  const call = async (id: number, tool: string, args = {}) => {
    const since = performance.now();
    const params = { name: "call", arguments: { tool, arguments: args } };
    const result = JSON.stringify(await pml.request(id, "tools/call", params));
    if (result.includes("isError")) throw new Error(result);
    return performance.now() - since;
  };
  await call(1, "filesystem:read_file", { path: "small.txt" });
  // Waits until PML has finished its preparations after that call.
  await new Promise((resolve) => setTimeout(resolve, 600));
  return { first: await call(2, "clock:tell"), next: await call(3, "clock:tell") };
}

/** Times the downloads that every client needs: the entry, then the code. */
async function download(url: string): Promise<number> {
  const since = performance.now();
  for (const accept of ["application/json", "application/typescript"]) {
    await (await fetch(`${url}/clock`, { headers: { accept } })).bytes();
  }
  return performance.now() - since;
}

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !await isTrue(); tries++) {
    if (tries > 200) throw new Error("The catalog did not become complete");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

if (import.meta.main) console.table(await benchRegistry());

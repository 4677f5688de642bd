/**
 * Measures a call through `pml stdio` (checks, journal, sandbox and back), relative to a bare server.
 *
 * @module
 */

import { median, pathOf, type Row, StdioProcess } from "./measure.ts";

const RUNS = 300;
const WARM_UP = 30;

/** Measures calls of a tool of the bare server, and then of `filesystem:read_file` through PML. */
export async function benchCalls(): Promise<readonly Row[]> {
  const folder = await Deno.makeTempDir({ prefix: "pml-bench-" });
  await Deno.mkdir(`${folder}/ws/.git`, { recursive: true });
  await Deno.writeTextFile(`${folder}/ws/small.txt`, "hello\n");
  const options = { cwd: `${folder}/ws`, home: `${folder}/home` };
  const bare = await medianCall("bench/bare_server.ts", {
    ...options,
    args: [],
    call: { name: "echo", arguments: {} },
  });
  const pml = await medianCall("mod.ts", {
    ...options,
    args: ["stdio"],
    call: {
      name: "call",
      arguments: { tool: "filesystem:read_file", arguments: { path: "small.txt" } },
    },
  });
  await Deno.remove(folder, { recursive: true });
  return [{
    what: "call of read_file through pml stdio, warm",
    value: pml,
    unit: "ms",
    baseline: bare,
    runs: RUNS,
  }];
}

const ROUNDS = 15;
const AT_ONCE = 100;
const SERVERS = 10;

/** Measures a hundred calls at once: to one module, then to ten, each in its own child. */
export async function benchAtOnce(): Promise<readonly Row[]> {
  const folder = await Deno.makeTempDir({ prefix: "pml-bench-" });
  await Deno.mkdir(`${folder}/ws`);
  const names = Array.from({ length: SERVERS }, (_, at) => `m${at}`);
  await Deno.writeTextFile(`${folder}/ws/small.txt`, "hello\n");
  await Deno.writeTextFile(`${folder}/ws/m.js`, MODULE);
  const module = { type: "deno", path: "m.js" };
  const config = {
    version: 1,
    permissions: { allow: names.map((name) => `${name}:*`) },
    private_mcps: Object.fromEntries(names.map((name) => [name, module])),
  };
  await Deno.writeTextFile(`${folder}/ws/.pml.json`, JSON.stringify(config));
  const options = { args: ["stdio"], cwd: `${folder}/ws`, home: `${folder}/home` };
  const rows: Row[] = [];
  {
    await using pml = new StdioProcess(pathOf("mod.ts"), options);
    await pml.initialize();
    let id = 0;
    const medianRound = async (count: number) => {
      const calls = Array.from({ length: AT_ONCE }, (_, at) => callOf(`m${at % count}`));
      const times: number[] = [];
      for (let run = 0; run <= ROUNDS; run++) {
        const since = performance.now();
        await Promise.all(calls.map((call) => pml.request(++id, "tools/call", call)));
        if (run > 0) times.push(performance.now() - since);
      }
      return median(times);
    };
    const oneModuleMs = await medianRound(1);
    const row = { unit: "ms", runs: ROUNDS };
    rows.push({ what: `${AT_ONCE} calls at once to one module`, value: oneModuleMs, ...row });
    const tenModulesMs = await medianRound(SERVERS);
    rows.push({
      what: `${AT_ONCE} calls at once to ten`,
      value: tenModulesMs,
      baseline: oneModuleMs,
      ...row,
    });
  }
  await Deno.remove(folder, { recursive: true });
  return rows;
}

const MODULE = `export const __meta__ = {
  name: "m",
  permissions: { read: ["."] },
  tools: { read: { inputSchema: { type: "object" } } },
};
export const read = ({ path }) => Deno.readTextFile(path);
`;

function callOf(server: string): unknown {
  return { name: "call", arguments: { tool: `${server}:read`, arguments: { path: "small.txt" } } };
}

async function medianCall(script: string, options: {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly home: string;
  readonly call: unknown;
}): Promise<number> {
  await using server = new StdioProcess(pathOf(script), options);
  await server.initialize();
  const times: number[] = [];
  for (let run = 0; run < WARM_UP + RUNS; run++) {
    const since = performance.now();
    await server.request(run + 1, "tools/call", options.call);
    if (run >= WARM_UP) times.push(performance.now() - since);
  }
  return median(times);
}

/**
 * Measures how soon `pml stdio` answers after its start and how much memory it uses, relative to a
 * bare server of the same SDK, for clients of both eras; and how long a command that only prints
 * something takes, relative to an empty program.
 *
 * @module
 */

import { median, pathOf, type Row, Spawned, type SpawnOptions, type Wanted } from "./measure.ts";

const RUNS = 15;
const _meta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "bench", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

type Era = "2025-11-25" | "2026-07-28";

interface Start {
  readonly ms: number;
  readonly listMs: number;
  readonly rssMb: number;
}

/** Starts both in turn, so that whatever else the machine does meets both alike. */
export async function benchFirstAnswer(): Promise<readonly Row[]> {
  const folder = await Deno.makeTempDir({ prefix: "pml-bench-" });
  await Deno.mkdir(`${folder}/ws/.git`, { recursive: true });
  const options = { cwd: `${folder}/ws`, home: `${folder}/home` };
  const rows = [
    ...await startRows("2025-11-25", options),
    ...await startRows("2026-07-28", options),
    ...await commandRows(folder),
  ];
  await Deno.remove(folder, { recursive: true });
  return rows;
}

async function startRows(
  era: Era,
  options: Omit<SpawnOptions, "args">,
): Promise<readonly Row[]> {
  const bare: Start[] = [];
  const pml: Start[] = [];
  for (let run = 0; run <= RUNS; run++) {
    const one = await start("bench/bare_server.ts", era, { ...options, args: [] });
    const other = await start("mod.ts", era, { ...options, args: ["stdio"] });
    // The first of each fills caches.
    if (run > 0) bare.push(one), pml.push(other);
  }
  const row = (
    what: string,
    { unit = "ms", of, wanted }: {
      readonly unit?: string;
      readonly of: (start: Start) => number;
      readonly wanted: Wanted;
    },
  ): Row => ({
    what: `${what}, ${era}, relative to a bare SDK server`,
    unit,
    ...{ value: median(pml.map(of)), baseline: median(bare.map(of)), wanted, runs: RUNS },
  });
  return [
    row("first answer", { of: ({ ms }) => ms, wanted: { of: "ratio", most: 0.85 } }),
    row("first list, meta-tools", {
      of: ({ listMs }) => listMs,
      wanted: { of: "ratio", most: 1 },
    }),
    row("memory after the first list", {
      unit: "MB",
      of: ({ rssMb }) => rssMb,
      wanted: { of: "figure", most: 68 },
    }),
  ];
}

async function start(script: string, era: Era, options: SpawnOptions): Promise<Start> {
  const since = performance.now();
  await using server = new Spawned(pathOf(script), options);
  const params = era === "2026-07-28" ? { _meta } : {};
  if (era === "2026-07-28") await server.request(0, "server/discover", params);
  else await server.initialize();
  const ms = performance.now() - since;
  const { tools } = await server.request(1, "tools/list", params) as { readonly tools: unknown[] };
  if (tools.length === 0) throw new Error("There are no tools");
  return { ms, listMs: performance.now() - since, rssMb: server.rssMb };
}

async function commandRows(folder: string): Promise<readonly Row[]> {
  const empty = `${folder}/empty.ts`;
  await Deno.writeTextFile(empty, "");
  const pml = [pathOf("mod.ts"), "--config", pathOf("deno.json")];
  const times = await inTurn([
    () => emptyRun(empty),
    () => run(folder, [...pml.slice(1), ...pml.slice(0, 1), "--version"]),
    () => run(folder, [...pml.slice(1), ...pml.slice(0, 1), "--help"]),
  ]);
  const [baseline = NaN, version = NaN, help = NaN] = times.map(median);
  const wanted = { of: "ratio", most: 2 } as const;
  const row = (what: string, value: number): Row => ({
    what: `\`pml ${what}\`, relative to an empty \`deno run\``,
    ...{ value, baseline, unit: "ms", wanted, runs: RUNS },
  });
  return [row("--version", version), row("--help", help)];
}

/** Runs an empty program, which takes as long as Deno takes to start and to end. */
export async function emptyRun(path: string): Promise<void> {
  await run(".", ["--no-config", path]);
}

async function run(home: string, args: readonly string[]): Promise<void> {
  const { success } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", ...args],
    env: { PML_HOME: `${home}/home` },
    stdout: "null",
    stderr: "null",
  }).output();
  if (!success) throw new Error(`deno run ${args.join(" ")} failed`);
}

async function inTurn(
  all: readonly (() => Promise<void>)[],
): Promise<readonly (readonly number[])[]> {
  const times = all.map((): number[] => []);
  for (let count = 0; count <= RUNS; count++) {
    for (const [at, work] of all.entries()) {
      const since = performance.now();
      await work();
      if (count > 0) times[at]?.push(performance.now() - since);
    }
  }
  return times;
}

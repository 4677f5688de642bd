/**
 * Measures how soon `pml stdio` answers after its start and how much memory it uses, relative to a
 * bare SDK server, for clients of both revisions; and the time of commands that only print something,
 * relative to an empty program.
 *
 * @module
 */

import {
  type Budget,
  median,
  pathOf,
  type Row,
  type SpawnOptions,
  StdioProcess,
} from "./measure.ts";

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

/** Measures starts. Starts both servers in turn, so that other load affects both alike. */
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
    const bareStart = await start("bench/bare_server.ts", era, { ...options, args: [] });
    const pmlStart = await start("mod.ts", era, { ...options, args: ["stdio"] });
    // The first start of each fills caches.
    if (run > 0) bare.push(bareStart), pml.push(pmlStart);
  }
  const row = (
    what: string,
    { unit = "ms", figureOf, wanted }: {
      readonly unit?: string;
      readonly figureOf: (start: Start) => number;
      readonly wanted: Budget;
    },
  ): Row => ({
    what: `${what}, ${era}, relative to a bare SDK server`,
    unit,
    ...{
      value: median(pml.map(figureOf)),
      baseline: median(bare.map(figureOf)),
      wanted,
      runs: RUNS,
    },
  });
  return [
    row("first answer", { figureOf: ({ ms }) => ms, wanted: { of: "ratio", most: 0.85 } }),
    row("first list, meta-tools", {
      figureOf: ({ listMs }) => listMs,
      wanted: { of: "ratio", most: 1 },
    }),
    row("memory after the first list", {
      unit: "MB",
      figureOf: ({ rssMb }) => rssMb,
      wanted: { of: "figure", most: 68 },
    }),
  ];
}

async function start(script: string, era: Era, options: SpawnOptions): Promise<Start> {
  const since = performance.now();
  await using server = new StdioProcess(pathOf(script), options);
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
  const times = await measureInTurn([
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

/** Runs an empty program, which takes the time in which Deno starts and ends. */
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

async function measureInTurn(
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

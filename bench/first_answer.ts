/**
 * How soon `pml stdio` answers after its start and how much memory it holds, beside a bare server
 * on the same SDK.
 *
 * @module
 */

import { median, pathOf, type Row, Spawned } from "./measure.ts";

const RUNS = 15;
const START_BUDGET = 1.15;
const MEMORY_BUDGET_MB = 75;

interface Start {
  readonly ms: number;
  readonly listMs: number;
  readonly rssMb: number;
}

/** Starts both in turn, so that whatever else the machine does meets both alike. */
export async function benchFirstAnswer(): Promise<readonly Row[]> {
  const folder = await Deno.makeTempDir({ prefix: "pml-bench-" });
  const home = `${folder}/home`;
  await Deno.mkdir(`${folder}/ws/.git`, { recursive: true });
  const options = { cwd: `${folder}/ws`, home };
  const bare: Start[] = [];
  const pml: Start[] = [];
  for (let run = 0; run <= RUNS; run++) {
    const one = await start("bench/bare_server.ts", { ...options, args: [] });
    const other = await start("mod.ts", { ...options, args: ["stdio"] });
    // The first of each fills caches.
    if (run > 0) bare.push(one), pml.push(other);
  }
  await Deno.remove(folder, { recursive: true });
  return rows(bare, pml);
}

async function start(
  script: string,
  options: { readonly args: readonly string[]; readonly cwd: string; readonly home: string },
): Promise<Start> {
  const since = performance.now();
  await using server = new Spawned(pathOf(script), options);
  await server.initialize();
  const ms = performance.now() - since;
  await server.request(1, "tools/list", {});
  const listMs = performance.now() - since;
  return { ms, listMs, rssMb: rssMb(server.pid) };
}

function rssMb(pid: number): number {
  const status = Deno.readTextFileSync(`/proc/${pid}/status`);
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

function rows(bare: readonly Start[], pml: readonly Start[]): readonly Row[] {
  const ms = (starts: readonly Start[]) => median(starts.map((start) => start.ms));
  const list = (starts: readonly Start[]) => median(starts.map((start) => start.listMs));
  const rss = (starts: readonly Start[]) => median(starts.map((start) => start.rssMb));
  return [
    {
      what: "first answer after start",
      value: ms(pml),
      unit: "ms",
      baseline: ms(bare),
      budget: `≤ ${START_BUDGET} × a bare SDK server`,
      ok: ms(pml) <= START_BUDGET * ms(bare),
      runs: RUNS,
    },
    {
      what: "first list of tools after start",
      value: list(pml),
      unit: "ms",
      baseline: list(bare),
      budget: "none yet",
      ok: true,
      runs: RUNS,
    },
    {
      what: "memory of the gateway, idle",
      value: rss(pml),
      unit: "MB",
      baseline: rss(bare),
      budget: `≤ ${MEMORY_BUDGET_MB} MB`,
      ok: rss(pml) <= MEMORY_BUDGET_MB,
      runs: RUNS,
    },
  ];
}

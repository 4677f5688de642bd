/**
 * `deno task compare`: runs popular npm servers directly and through PML, and reports differences.
 * Installs them, so it needs a registry of npm; not part of the tests. Then runs the probes of
 * protocol features, which need none.
 *
 *     deno task compare [--only NAME] [--probes] [--jobs N] [--minutes N] [--json] [--write]
 *
 * `--only` has the name of a server or of a probe. `--probes` runs the probes alone.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { STOPPING } from "./compare/connection.ts";
import { compareOne, type Listed, type Outcome } from "./compare/one.ts";
import { leaveAll } from "./compare/programs.ts";
import { cellOf, pageOf } from "./compare/table.ts";
import { PROBES } from "./compare/probes.ts";
import { type ProbeRow, runProbes } from "./compare/probe_run.ts";
import { probeSection, withProbeSection } from "./compare/probe_table.ts";
import listed from "./compare/servers.json" with { type: "json" };

const PAGE = new URL("../docs/compatibility.md", import.meta.url);

if (import.meta.main) {
  Deno.addSignalListener("SIGINT", () => leaveAll().then(() => Deno.exit(130)));
  Deno.exit(await compare(Deno.args));
}

/** Compares the chosen servers. Returns 1 if something differs without `confine`. */
async function compare(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string", multiple: true },
      probes: { type: "boolean", default: false },
      jobs: { type: "string", default: "1" },
      minutes: { type: "string", default: "180" },
      json: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
    },
  });
  const chosen = values.probes
    ? []
    : (listed as readonly Listed[]).filter(({ name }) => values.only?.includes(name) ?? true);
  const probes = PROBES.filter(({ name }) => values.only?.includes(name) ?? true);
  if (chosen.length + probes.length === 0) {
    console.error(`No server and no probe has this name: ${values.only?.join(", ")}`);
    return 2;
  }
  if (values.write && values.only !== undefined) {
    console.error("The page has all servers and probes: --write goes without --only");
    return 2;
  }
  const outcomes = await all(chosen, {
    jobs: Number(values.jobs),
    until: performance.now() + Number(values.minutes) * 60_000,
  });
  if (STOPPING.signal.aborted) return 130;
  const only = probes.map(({ name }) => name);
  const rows = only.length === 0 ? [] : await runProbes({ only, onStep: console.error });
  if (values.json) console.log(JSON.stringify([...outcomes, ...rows], undefined, 2));
  if (values.write) await write(chosen.length > 0 ? outcomes : undefined, rows);
  const differing = rows.filter(({ cells }) => cells.some(({ state }) => state === "differs"));
  for (const { name } of differing) console.error(`The probe differs: ${name}`);
  const free = outcomes.flatMap(({ runs }) => runs).filter(({ confined }) => !confined);
  return free.every((run) => cellOf(run) === "same") && differing.length === 0 ? 0 : 1;
}

/** Writes the page. Without outcomes, its part about servers stays. */
async function write(
  outcomes: readonly Outcome[] | undefined,
  rows: readonly ProbeRow[],
): Promise<void> {
  const day = new Date().toISOString().slice(0, 10);
  const servers = outcomes === undefined ? await Deno.readTextFile(PAGE) : pageOf(outcomes, day);
  await Deno.writeTextFile(PAGE, withProbeSection(servers, probeSection(rows, day)));
  await new Deno.Command(Deno.execPath(), { args: ["fmt", "-q", fileURLToPath(PAGE)] }).output();
}

/** Compares servers, some in parallel, and returns the outcomes in their order. */
async function all(chosen: readonly Listed[], { jobs, until }: {
  readonly jobs: number;
  /** When no other server is begun. */
  readonly until: number;
}): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  const waiting = [...chosen.entries()];
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [at, one] = next;
      const late = performance.now() > until && { skip: "The time of this run was over" };
      const outcome = await compareOne(
        { ...one, ...late },
        (text) => console.error(`${at + 1}/${chosen.length} ${one.name}: ${text}`),
      );
      outcomes[at] = outcome;
      const told = outcome.skipped ?? outcome.runs.map(cellOf).join(", ");
      console.error(`${at + 1}/${chosen.length} ${one.name}: ${told.split("\n")[0]}`);
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, jobs) }, work));
  return outcomes;
}

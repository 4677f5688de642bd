/**
 * `deno task compare`: runs popular npm servers directly and through PML, and reports differences.
 * Not part of the tests, because it installs the servers from an npm registry. Then runs the probes of
 * protocol features, which need no registry.
 *
 *     deno task compare [--only NAME] [--probes] [--jobs N] [--minutes N] [--json] [--write]
 *
 * `--only` selects a server or a probe by name. `--probes` runs only the probes.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { STOPPING } from "./compare/connection.ts";
import { compareOne, type ListedServer, type Outcome } from "./compare/one.ts";
import { closeAllFolders } from "./compare/programs.ts";
import { cellOf, pageOf } from "./compare/table.ts";
import { PROBES } from "./compare/probes.ts";
import { type ProbeRow, runProbes } from "./compare/probe_run.ts";
import { probeSection, withProbeSection } from "./compare/probe_table.ts";
import listed from "./compare/servers.json" with { type: "json" };

const PAGE = new URL("../docs/compatibility.md", import.meta.url);

if (import.meta.main) {
  Deno.addSignalListener("SIGINT", () => closeAllFolders().then(() => Deno.exit(130)));
  Deno.exit(await compare(Deno.args));
}

/**
 * Compares the chosen servers, and runs the chosen probes. Returns the exit code: 0; 1 if a result
 * without `confine` or a probe differs; 2 if an option is wrong; 130 if the run was interrupted.
 */
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
    : (listed as readonly ListedServer[]).filter(({ name }) => values.only?.includes(name) ?? true);
  const probes = PROBES.filter(({ name }) => values.only?.includes(name) ?? true);
  if (chosen.length + probes.length === 0) {
    console.error(`There is no server or probe with this name: ${values.only?.join(", ")}`);
    return 2;
  }
  if (values.write && values.only !== undefined) {
    console.error("Cannot use --write with --only: the page contains all servers and probes");
    return 2;
  }
  const outcomes = await compareAll(chosen, {
    jobs: Number(values.jobs),
    until: performance.now() + Number(values.minutes) * 60_000,
  });
  if (STOPPING.signal.aborted) return 130;
  const probeNames = probes.map(({ name }) => name);
  const rows = probeNames.length === 0
    ? []
    : await runProbes({ only: probeNames, onStep: console.error });
  if (values.json) console.log(JSON.stringify([...outcomes, ...rows], undefined, 2));
  if (values.write) await write(chosen.length > 0 ? outcomes : undefined, rows);
  const differing = rows.filter(({ cells }) => cells.some(({ state }) => state === "differs"));
  for (const { name } of differing) console.error(`The probe differs: ${name}`);
  const unconfined = outcomes.flatMap(({ runs }) => runs).filter(({ confined }) => !confined);
  return unconfined.every((run) => cellOf(run) === "same") && differing.length === 0 ? 0 : 1;
}

/** Writes the page. Without `outcomes`, keeps the part of the page about servers. */
async function write(
  outcomes: readonly Outcome[] | undefined,
  rows: readonly ProbeRow[],
): Promise<void> {
  const day = new Date().toISOString().slice(0, 10);
  const servers = outcomes === undefined ? await Deno.readTextFile(PAGE) : pageOf(outcomes, day);
  await Deno.writeTextFile(PAGE, withProbeSection(servers, probeSection(rows, day)));
  await new Deno.Command(Deno.execPath(), { args: ["fmt", "-q", fileURLToPath(PAGE)] }).output();
}

/** Compares servers, `jobs` of them in parallel. Returns the outcomes in the order of the servers. */
async function compareAll(chosen: readonly ListedServer[], { jobs, until }: {
  readonly jobs: number;
  /** The time after which no more servers are started. */
  readonly until: number;
}): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  const waiting = [...chosen.entries()];
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [index, server] = next;
      const skipped = performance.now() > until && { skip: "No time was left in this run" };
      const outcome = await compareOne(
        { ...server, ...skipped },
        (text) => console.error(`${index + 1}/${chosen.length} ${server.name}: ${text}`),
      );
      outcomes[index] = outcome;
      const summary = outcome.skipped ?? outcome.runs.map(cellOf).join(", ");
      console.error(`${index + 1}/${chosen.length} ${server.name}: ${summary.split("\n")[0]}`);
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, jobs) }, work));
  return outcomes;
}

/**
 * Writes the results as the page `docs/compatibility.md`.
 *
 * @module
 */

import { stripVTControlCharacters } from "node:util";
import { DENIED } from "./lists.ts";
import type { Compared, Outcome } from "./one.ts";

const MAX_REASON = 300;

/** Returns the page for these outcomes. */
export function pageOf(outcomes: readonly Outcome[], ran: string): string {
  const [compared, left] = [
    outcomes.filter(({ runs }) => runs.length > 0),
    outcomes.filter(({ runs }) => runs.length === 0),
  ];
  return [
    "# Other people's servers",
    introduction(compared, ran),
    tableOf(compared),
    "## What differed",
    ...sectionOf(compared.flatMap(differencesOf), "Nothing differed without `confine`."),
    "## Confined",
    confinedText(compared),
    ...sectionOf(compared.flatMap(confinedOf), "Every server ran confined as it did otherwise."),
    "## Not compared",
    ...sectionOf(left.map(leftOf), "Every server of the list was compared."),
  ].join("\n\n") + "\n";
}

function introduction(compared: readonly Outcome[], ran: string): string {
  const same = compared.filter(isSame);
  const calls = same.map(({ runs }) => runs[0]?.counts.calls ?? 0).filter((count) => count > 0);
  return INTRODUCTION.replace("RAN", ran).replace("SAME", String(same.length))
    .replace("ALL", String(compared.length)).replace("CALLED", String(calls.length))
    .replace("CALLS", String(calls.reduce((sum, count) => sum + count, 0)));
}

/** Returns one cell of the table: how one way came out. */
export function cellOf({ failed, differences }: Pick<Compared, "failed" | "differences">): string {
  if (failed !== undefined) return "does not run";
  const denied = differences.filter(({ what }) => what.endsWith(DENIED)).length;
  const other = differences.length - denied;
  const said = [
    ...(other > 0 ? [`${other} differ`] : []),
    ...(denied > 0 ? [`${denied} denied`] : []),
  ];
  return said.join(", ") || "same";
}

const INTRODUCTION =
  `Popular servers of npm, run directly by the SDK's own client and through a spawned \`pml stdio\`
(\`full_proxy\`): their lists of tools, prompts, resources and templates are compared byte for byte
after names have lost the server in front, and so are the results of calls. The order of entries does
not count. \`deno task compare --write\` made this page on RAN. Lists of SAME of ALL servers were the
same in both eras, and so were the results of CALLS calls of CALLED of them.

Calls read, compute, or fail as they should: keys in the environment are placeholders, no account was
used, and the error that a server tells then is compared like any result. An error of the protocol
(JSON-RPC) comes through PML as a result with \`isError\`, in the same words. Of results that are others
each time the form is compared.

Where a server speaks the older revisions alone, "2026-07-28" compares what PML shows a client of
that revision with what the server says in its own; \`execution\`, for which 2026-07-28 has no word,
is left out then. Result metadata (\`_meta\`) is not compared.

Three additions of PML count as differences here: \`"type": "object"\` to an input schema without
a type, as MCP wants it (\`server-gitlab\`); \`\\u{200b}\` in the place of an invisible character
(\`lark-mcp\`); and "changed, not approved" on a tool whose definition is another one at each start,
here by a default that is the time (\`@currents/mcp\`).

\`\`\`
deno task compare --only memory   # one server; --json prints all that was found
deno task compare --write         # all of them, and this page
\`\`\``;

const CONFINED =
  `With \`"confine": true\` and no grants: the workspace, no network and no programs. LISTED of ALL
servers start and list what they list otherwise, and SAME answer the calls alike too. "denied" is a
call that says what it was denied; \`pml learn\` finds the grants. A server may still need grants for
calls that were not made here.`;

function confinedText(compared: readonly Outcome[]): string {
  const confined = compared.map(({ runs }) => runs.filter((run) => run.confined));
  const free = (run: Compared, other: Compared | undefined) =>
    run.failed === undefined &&
    run.differences.every(({ what }) =>
      what.startsWith("call ") || other?.differences.some((one) => one.what === what)
    );
  const listed = compared.filter(({ runs }) =>
    runs.filter((run) => run.confined).every((run) =>
      free(run, runs.find((one) => !one.confined && one.era === run.era))
    )
  );
  const same = confined.filter((runs) => runs.every((run) => cellOf(run) === "same"));
  return CONFINED.replace("LISTED", String(listed.length)).replace("ALL", String(compared.length))
    .replace("SAME", String(same.length));
}

function isSame({ runs }: Outcome): boolean {
  return runs.filter(({ confined }) => !confined).every((run) => cellOf(run) === "same");
}

function tableOf(outcomes: readonly Outcome[]): string {
  const head = ["server", "version", "speaks", "tools", "prompts", "resources", "calls"];
  const ways = ["2025-11-25", "2026-07-28", "confined 2025-11-25", "confined 2026-07-28"];
  const rows = outcomes.map(({ package: name, version = "", runs }) => {
    const { tools, prompts, resources, resourceTemplates, calls } = runs[0]?.counts ?? EMPTY;
    const spoken = runs.filter(({ confined, spoken }) => !confined && spoken)
      .map(({ era }) => era).join(", ");
    const counts = [tools, prompts, resources + resourceTemplates, calls].map(String);
    return [`\`${name}\``, version, spoken, ...counts, ...runs.map(cellOf)];
  });
  return aligned([[...head, ...ways], ...rows]);
}

const EMPTY = { tools: 0, prompts: 0, resources: 0, resourceTemplates: 0, calls: 0 };

/** Returns a table as `deno fmt` lays it out. */
function aligned(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, at) =>
    Math.max(...rows.map((row) => (row[at] ?? "").length))
  );
  const line = (row: readonly string[]) =>
    `| ${widths.map((width, at) => (row[at] ?? "").padEnd(width)).join(" | ")} |`;
  const [head = [], ...rest] = rows;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rest.map(line)].join("\n");
}

function sectionOf(lines: readonly string[], none: string): readonly string[] {
  return [lines.length === 0 ? none : lines.join("\n")];
}

function differencesOf({ package: name, runs }: Outcome): readonly string[] {
  return grouped(name, runs.filter(({ confined }) => !confined));
}

function confinedOf({ package: name, runs }: Outcome): readonly string[] {
  const [free, confined] = [false, true].map((of) => runs.filter((run) => run.confined === of));
  const known = new Set((free ?? []).map(told));
  return grouped(name, (confined ?? []).filter((run) => !known.has(told(run))));
}

/** Returns a line for each thing that was found, with the eras in which it was. */
function grouped(name: string, runs: readonly Compared[]): readonly string[] {
  const found = Map.groupBy(runs.filter((run) => cellOf(run) !== "same"), told);
  return [...found].map(([text, of]) => {
    const eras = of.length > 1 ? "both eras" : of.map(({ era }) => era).join(", ");
    return `- \`${name}\` (${eras}): ${text}`;
  });
}

function told({ failed, differences }: Compared): string {
  return failed === undefined
    ? differences.map(({ what }) => `\`${what}\``).join(", ")
    : plain(failed);
}

function leftOf({ package: name, skipped = "" }: Outcome): string {
  return `- \`${name}\`: ${plain(skipped)}`;
}

/** Returns the beginning of an error as one line that cannot be read as markup. */
function plain(text: string): string {
  const line = stripVTControlCharacters(text).replaceAll(/https?:\/\/[^\s)]+/g, "URL")
    .replaceAll(/\S*\/pml-compare-[^/\s]*/g, "TEMP").replaceAll(/\s+/g, " ").replaceAll("`", "'");
  return `\`${line.length > MAX_REASON ? `${line.slice(0, MAX_REASON)}…` : line.trim()}\``;
}

/**
 * Writes the results as the page `docs/compatibility.md`.
 *
 * @module
 */

import { stripVTControlCharacters } from "node:util";
import { DENIED } from "./lists.ts";
import type { ComparedRun, Outcome } from "./one.ts";

const MAX_REASON = 300;

/** Returns the page for outcomes of a date. */
export function pageOf(outcomes: readonly Outcome[], date: string): string {
  const [compared, skipped] = [
    outcomes.filter(({ runs }) => runs.length > 0),
    outcomes.filter(({ runs }) => runs.length === 0),
  ];
  return [
    "# Compatibility with popular servers",
    introduction(compared, date),
    tableOf(compared),
    "## Differences",
    ...sectionOf(compared.flatMap(differencesOf), "Without `confine`, all results are the same."),
    "## Differences of confined servers",
    confinedText(compared),
    ...sectionOf(
      compared.flatMap(confinedOf),
      "With `confine`, all results are the same as without it.",
    ),
    "## Servers that were not compared",
    ...sectionOf(skipped.map(skippedLine), "Every server of the list was compared."),
  ].join("\n\n") + "\n";
}

function introduction(compared: readonly Outcome[], date: string): string {
  const same = compared.filter(isSame);
  const calls = same.map(({ runs }) => runs[0]?.counts.calls ?? 0).filter((count) => count > 0);
  return INTRODUCTION.replace("RAN", date).replace("SAME", String(same.length))
    .replace("ALL", String(compared.length)).replace("CALLED", String(calls.length))
    .replace("CALLS", String(calls.reduce((sum, count) => sum + count, 0)));
}

/** Returns a cell of the table: the result of one run. */
export function cellOf(
  { failed, differences }: Pick<ComparedRun, "failed" | "differences">,
): string {
  if (failed !== undefined) return "does not run";
  const denied = differences.filter(({ what }) => what.endsWith(DENIED)).length;
  const other = differences.length - denied;
  const counts = [
    ...(other > 0 ? [`${other} differ`] : []),
    ...(denied > 0 ? [`${denied} denied`] : []),
  ];
  return counts.join(", ") || "same";
}

const INTRODUCTION =
  `This page shows which popular servers of npm return the same results through PML as without it, also
with \`"confine": true\`. \`deno task compare --write\` generated it on RAN. SAME of ALL
servers have the same lists in both revisions, and the results of CALLS calls of CALLED servers are the
same, too.

\`\`\`
deno task compare --only memory   # one server; --json prints all that was found
deno task compare --write         # all of them, and this page
\`\`\`

The last section compares [features of the protocol](#features-of-the-protocol), one by one.

## How servers are compared

- Each server runs twice: with the client of the SDK, and behind \`pml stdio\` (\`full_proxy\`).
- The lists of tools, prompts, resources and templates, and the results of calls, must be equal byte
  for byte. The name of the server in front of names does not count, and neither does the order of
  entries. If results differ each time, only their form is compared.
- The calls read data, compute, or fail. Keys in the environment are placeholders, and no account was
  used. The error that a server returns for such a key is compared like any result. PML returns an
  error of the protocol (JSON-RPC) as a result with \`isError\` and the same text.
- For a server with older revisions only, the column "2026-07-28" compares the results that a client
  of that revision gets from PML with the results of the server in its own revision. \`execution\` is
  not compared then, because 2026-07-28 does not have it.
- Result metadata (\`_meta\`) is not compared.

These additions of PML count as differences:

| addition | reason | server |
| --- | --- | --- |
| \`"type": "object"\` in an input schema without a type | MCP requires it | \`server-gitlab\` |
| \`\\u{200b}\` in place of an invisible character | the user can see it | \`lark-mcp\` |
| "changed, not approved" on a tool | its definition differs at each start, because a default is the current time | \`@currents/mcp\` |

## Results`;

const CONFINED =
  `These servers ran with \`"confine": true\` and no grants: they can reach the workspace, and no network
and no programs. LISTED of ALL servers start and return the same lists as without \`confine\`, and SAME
of them return the same results of calls, too. "denied" marks a call whose error names the denied access.
\`pml learn\` finds the necessary grants. Calls that were not made here may need more grants.`;

function confinedText(compared: readonly Outcome[]): string {
  const confined = compared.map(({ runs }) => runs.filter((run) => run.confined));
  const hasSameLists = (run: ComparedRun, other: ComparedRun | undefined) =>
    run.failed === undefined &&
    run.differences.every(({ what }) =>
      what.startsWith("call ") || other?.differences.some((difference) => difference.what === what)
    );
  const listed = compared.filter(({ runs }) =>
    runs.filter((run) => run.confined).every((run) =>
      hasSameLists(run, runs.find((candidate) => !candidate.confined && candidate.era === run.era))
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
  const head = ["server", "version", "revisions", "tools", "prompts", "resources", "calls"];
  const ways = ["2025-11-25", "2026-07-28", "confined 2025-11-25", "confined 2026-07-28"];
  const rows = outcomes.map(({ package: name, version = "", runs }) => {
    const { tools, prompts, resources, resourceTemplates, calls } = runs[0]?.counts ?? EMPTY;
    const spoken = runs.filter(({ confined, spoken }) => !confined && spoken)
      .map(({ era }) => era).join(", ");
    const counts = [tools, prompts, resources + resourceTemplates, calls].map(String);
    return [`\`${name}\``, version, spoken, ...counts, ...runs.map(cellOf)];
  });
  return formatTable([[...head, ...ways], ...rows]);
}

const EMPTY = { tools: 0, prompts: 0, resources: 0, resourceTemplates: 0, calls: 0 };

/** Formats a table as `deno fmt` does. */
function formatTable(rows: readonly (readonly string[])[]): string {
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
  return groupedLines(name, runs.filter(({ confined }) => !confined));
}

function confinedOf({ package: name, runs }: Outcome): readonly string[] {
  const { confined = [], free = [] } = Object.groupBy(
    runs,
    (run) => run.confined ? "confined" : "free",
  );
  const unconfinedTexts = new Set(free.map(differenceText));
  return groupedLines(name, confined.filter((run) => !unconfinedTexts.has(differenceText(run))));
}

/** Returns a line for each different text of differences, with its revisions. */
function groupedLines(name: string, runs: readonly ComparedRun[]): readonly string[] {
  const groups = Map.groupBy(runs.filter((run) => cellOf(run) !== "same"), differenceText);
  return [...groups].map(([text, group]) => {
    const eras = group.length > 1 ? "both revisions" : group.map(({ era }) => era).join(", ");
    return `- \`${name}\` (${eras}): ${text}`;
  });
}

function differenceText({ failed, differences }: ComparedRun): string {
  return failed === undefined
    ? differences.map(({ what }) => `\`${what}\``).join(", ")
    : inlineCode(failed);
}

function skippedLine({ package: name, skipped = "" }: Outcome): string {
  return `- \`${name}\`: ${inlineCode(skipped)}`;
}

/** Returns the beginning of an error as inline code, in one line. */
function inlineCode(text: string): string {
  const line = stripVTControlCharacters(text).replaceAll(/https?:\/\/[^\s)]+/g, "URL")
    .replaceAll(/\S*\/pml-compare-[^/\s]*/g, "TEMP").replaceAll(/\s+/g, " ").replaceAll("`", "'");
  return `\`${line.length > MAX_REASON ? `${line.slice(0, MAX_REASON)}…` : line.trim()}\``;
}

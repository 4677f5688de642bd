/**
 * Writes the results of the probes as a section of `docs/compatibility.md`.
 *
 * @module
 */

import { ERAS } from "../../tests/kit/json_rpc.ts";
import { WAYS } from "./probe_peer.ts";
import type { ProbeCell, ProbeRow } from "./probe_run.ts";

/** The title of the section, which is the last of the page. */
const TITLE = "## Features of the protocol";

/** Returns the section for results of a date. */
export function probeSection(rows: readonly ProbeRow[], date: string): string {
  const exceptions = rows.flatMap(({ cells }) => cells.flatMap(({ exception }) => exception ?? []));
  const reasons = [...new Set(exceptions.map(({ reason }) => reason))];
  const cells = rows.flatMap((row) => row.cells).filter(({ way }) => way !== "direct");
  const count = (state: ProbeCell["state"]) => cells.filter((cell) => cell.state === state).length;
  const explained = cells.filter((cell) => cell.state === "explained");
  const betterCount = explained.filter((cell) => cell.exception?.isBetter === true).length;
  return [
    TITLE,
    `The table shows ${rows.length} probes of a server that is written with the SDK and has every ` +
    "feature. Each probe runs directly, and " +
    "through PML with `full_proxy`, `meta_only` and `pml serve` (`full_proxy`), with the same " +
    "revision on both sides. The values that the client or the server got must be equal, apart from " +
    "the name of the server in names, URIs, questions and loggers. Of " +
    `${cells.length} cells, ${count("same")} are the same and ${betterCount} are better; ` +
    `${explained.length - betterCount} differ for a reason below, and ${
      count("differs")
    } for no known ` +
    `reason. \`deno task compare --probes --write\` generated this section on ${date}.`,
    ["```", "deno task compare --only sampling --json   # one probe, with its values", "```"]
      .join("\n"),
    tableOf(rows, reasons),
    "Reasons:",
    reasons.map((reason, at) => `${at + 1}. ${reason}.`).join("\n"),
  ].join("\n\n") + "\n";
}

/** Replaces the section of the probes in a page. */
export function withProbeSection(page: string, section: string): string {
  const [servers = ""] = page.split(`\n${TITLE}`);
  return `${servers.trimEnd()}\n\n${section}`;
}

function tableOf(rows: readonly ProbeRow[], reasons: readonly string[]): string {
  const ways = ERAS.flatMap((era) => WAYS.map((way) => `${era} ${way}`));
  const lines = rows.map((
    { name, cells },
  ) => [name, ...cells.map((cell) => textOf(cell, reasons))]);
  return [["probe", ...ways], ["probe", ...ways].map(() => "---"), ...lines]
    .map((line) => `| ${line.join(" | ")} |`).join("\n");
}

/** Returns the text of a cell. */
export function textOf(
  { state, value, exception }: ProbeCell,
  reasons: readonly string[],
): string {
  switch (state) {
    case "direct":
      return value === undefined || value === "null" || value.startsWith('{"error"')
        ? "–"
        : "works";
    case "same":
      return "same";
    case "explained": {
      const number = exception === undefined ? 0 : reasons.indexOf(exception.reason) + 1;
      return `${exception?.isBetter === true ? "better" : "differs"} (${number})`;
    }
    case "differs":
      return "**differs**";
  }
}

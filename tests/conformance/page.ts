/**
 * Writes the results of the conformance suite as the page `docs/conformance.md`.
 *
 * @module
 */

import { EXPECTED, EXPECTED_OF_CLIENTS } from "./expected.ts";
import { SUITE } from "./suite.ts";

/** How many checks passed. */
export interface Row {
  readonly name: string;
  readonly passed: number;
  readonly all: number;
}

/** Returns the page. */
export function pageOf(
  { cells, scenarios }: { readonly cells: readonly Row[]; readonly scenarios: readonly Row[] },
): string {
  const reasons = EXPECTED.map(({ why, ids }) =>
    [`- ${why}`, ...ids.map((id) => `  - \`${id}\``)].join("\n")
  );
  return [
    "# MCP's conformance suite",
    `\`deno task conformance --write\` made this page with \`${
      SUITE.replace("npm:", "")
    }\`. A part of
it is a test of PML, which also fails when an expected failure passes.`,
    "## PML as the server",
    `The suite speaks to \`pml serve\`. Behind PML is a server with the tools that the suite asks for,
in the newest revision or in an older one, over stdio or over HTTP. These are all scenarios that the
suite requires of a revision, with those of tasks in 2026-07-28.`,
    tableOf("client, server behind PML", cells),
    "What does not pass, and why (clients of 2025-11-25 have nothing of this):",
    reasons.join("\n"),
    "## PML as the client",
    `The suite is the server. Its client is a spawned \`pml stdio\`. The scenarios of sign-in are run
on their own.`,
    tableOf("scenario", scenarios),
    EXPECTED_OF_CLIENTS.map(({ why }) => `- ${why}`).join("\n"),
    "## What the suite does not ask",
    `\`tests/revisions_test.ts\` and \`tests/revisions_http_test.ts\` ask each request of MCP in
2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 and 2026-07-28, over stdio and HTTP. Known limit:`,
    `- Over stdio PML refuses batches (JSON arrays), which 2025-03-26 alone has. Over HTTP it takes them
  in all revisions with sessions.`,
    `\`tests/clients_found_test.ts\` lists and calls tools of \`pml serve\` with the Inspector's command
line and with \`mcporter\`.`,
  ].join("\n\n") + "\n";
}

function tableOf(title: string, rows: readonly Row[]): string {
  return [
    `| ${title} | checks passed |`,
    "| --- | --- |",
    ...rows.map(({ name, passed, all }) => `| ${name} | ${passed} of ${all} |`),
  ].join("\n");
}

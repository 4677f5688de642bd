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
in the newest revision, in an older one or in both, over stdio or over HTTP. These are all scenarios
that the suite requires of a revision, with those of tasks in 2026-07-28.`,
    tableOf("client, server behind PML", cells),
    "What does not pass, and why (clients of 2025-11-25 have nothing of this):",
    reasons.join("\n"),
    EXAMPLE_SERVER,
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

/** The figures come from `--behind` with the server of that repository, which is not part of PML. */
const EXAMPLE_SERVER = `## The conformance server of the TypeScript SDK

The repository \`modelcontextprotocol/typescript-sdk\` has a server for this suite, in both revisions
over HTTP: \`test/conformance/src/everythingServer.ts\`. It ran on Node 24.21 with
\`@modelcontextprotocol/server\` 2.4.0, and so did the suite. \`deno task conformance --behind URL\`
compares such a server with the same server behind \`pml serve\`.

| client | directly | through PML |
| --- | --- | --- |
| 2025-11-25 | 84 passed, 7 remarks | 82 passed, 8 remarks |
| 2026-07-28 | 164 of 196 | 157 of 194 |

No check of 2025-11-25 fails. Two are remarks through PML:

- PML answers with one JSON text if the result is there within 50 ms, and with a stream otherwise. The
  specification allows both, and clients have to take both. A stream costs each quick call two
  events, a copy of the answer for clients that come back, and a longer answer.
  - \`server-sse-streams-functional\`
- A stream of PML stays open when the server closes its own during a call: PML reads the rest itself.
  If PML closed it too, a client that does not come back for the rest would lose the result, which
  it gets now.
  - \`server-sse-disconnect-resume\`

Of 2026-07-28, these pass directly only. The first three reasons are those above: roots, answers
without a state, and addresses that the server did not list.

- \`sep-2322-list-roots-incomplete\`, \`sep-2322-list-roots-complete\`,
  \`sep-2322-multiple-inputs-incomplete\`, \`sep-2322-multiple-inputs-complete\`
- \`sep-2322-ignore-unexpected-params\`
- \`sep-2164-data-uri\`, \`sep-2164-error-code\`, \`sep-2164-no-empty-contents\`
- PML reads a list again when a server reports a change, and notifies clients if it did change. This
  server reports changes of lists that stay the same.
  - \`sep-2575-server-sends-prompts-list-changed-on-subscription\`
  - \`sep-2575-server-sends-tools-list-changed-on-subscription\`

Three pass through PML only, because PML has the extension for tasks and this server has not:
\`sep-2663-tasks-methods-non-declaring\`, \`tasks-extension-advertised\`,
\`sep-2663-tasks-get-invalid-task-id-32602\`.`;

function tableOf(title: string, rows: readonly Row[]): string {
  return [
    `| ${title} | checks passed |`,
    "| --- | --- |",
    ...rows.map(({ name, passed, all }) => `| ${name} | ${passed} of ${all} |`),
  ].join("\n");
}

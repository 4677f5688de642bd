/**
 * Writes the results of the conformance suite as the page `docs/conformance.md`.
 *
 * @module
 */

import { EXPECTED, EXPECTED_OF_CLIENTS } from "./expected.ts";
import { SUITE } from "./suite.ts";

/** The number of checks that passed. */
export interface Row {
  readonly name: string;
  readonly passed: number;
  readonly all: number;
}

/** Returns the page. */
export function pageOf(
  { cells, skills, scenarios }: {
    readonly cells: readonly Row[];
    readonly skills: readonly Row[];
    readonly scenarios: readonly Row[];
  },
): string {
  const reasons = EXPECTED.map(({ why, ids }) =>
    [`- ${why}`, ...ids.map((id) => `  - \`${id}\``)].join("\n")
  );
  return [
    "# MCP's conformance suite",
    `This page lists the results of PML in the conformance suite of MCP, as a server and as a client, and
the reason for each check that does not pass. \`deno task conformance --write\` generated it with
\`${SUITE.replace("npm:", "")}\`. The tests of PML run a part of the suite. They also fail if
an expected failure passes.`,
    "## PML as the server",
    `The suite sends its requests to \`pml serve\`. Behind PML runs a server with the tools that the suite
requires, in the newest revision, in an older one or in both, over stdio or over HTTP. The numbers
count the checks of all scenarios that the suite requires of a revision; for 2026-07-28, they also
count the scenarios of tasks.

Some checks wait only 600 ms for an answer, and can fail on a busy machine: a server of an older
revision gets the capabilities of clients when it starts, so the first call of a client that declares
more of them waits for a new start. Over stdio, such a server also does not state to which call a
question belongs. PML passes the question on with the latest call, which is wrong if the question
belongs to an abandoned call.`,
    tableOf("client, server behind PML", cells),
    `With clients of 2025-11-25 all checks pass. With clients of 2026-07-28 these checks do not pass, for
these reasons:`,
    reasons.join("\n"),
    "## Skills",
    `The scenarios of skills (SEP-2640) are not part of the set of a revision. Behind \`pml serve\` runs the
skills server of the TypeScript SDK over stdio. The client uses 2026-07-28.`,
    tableOf("scenario, server behind PML", skills),
    EXAMPLE_SERVER,
    "## PML as the client",
    `The suite is the server, and PML is its client (\`pml stdio\`). The scenarios of sign-in run
separately.`,
    tableOf("scenario", scenarios),
    "These checks do not pass, for this reason:",
    EXPECTED_OF_CLIENTS.map(({ why }) => `- ${why}`).join("\n"),
    "## Tests outside of the suite",
    `\`tests/revisions_test.ts\` and \`tests/revisions_http_test.ts\` send each request of MCP in
2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 and 2026-07-28, over stdio and HTTP. There is one known
limitation:`,
    `- Over stdio PML refuses batches (JSON arrays), which exist in 2025-03-26 only. Over HTTP it accepts
  them in all revisions with sessions.`,
    `\`tests/clients_found_test.ts\` lists and calls tools of \`pml serve\` with the command line of the
Inspector and with \`mcporter\`. Over stdio, the Inspector verifies a skill and finds the page of a tool.`,
  ].join("\n\n") + "\n";
}

/** The figures come from `--behind` with the server of that repository, which is not part of PML. */
const EXAMPLE_SERVER = `## The conformance server of the TypeScript SDK

The repository \`modelcontextprotocol/typescript-sdk\` contains a server for this suite, in both
revisions over HTTP: \`test/conformance/src/everythingServer.ts\`. \`deno task conformance --behind URL\`
compares such a server with the same server behind \`pml serve\`. The server and the suite ran on
Node 24.21 with \`@modelcontextprotocol/server\` 2.4.0.

| client | directly | through PML |
| --- | --- | --- |
| 2025-11-25 | 84 passed, 7 remarks | 82 passed, 8 remarks |
| 2026-07-28 | 164 of 196 | 157 of 194 |

No check of 2025-11-25 fails. Two checks result in a remark through PML only:

- PML answers with one JSON text if the result is available within 50 ms, and with a stream otherwise.
  The specification allows both, and clients must accept both. A stream would add two events to each
  quick call, a copy of the answer for clients that reconnect, and bytes to the answer.
  - \`server-sse-streams-functional\`
- If the server closes its own stream during a call, the stream of PML stays open: PML reads the rest
  itself. If PML also closed its stream, a client that does not reconnect for the rest would lose the
  result.
  - \`server-sse-disconnect-resume\`

These checks of 2026-07-28 pass directly only. The first three groups have the reasons above: roots,
answers without a state, and addresses that the server did not list.

- \`sep-2322-list-roots-incomplete\`, \`sep-2322-list-roots-complete\`,
  \`sep-2322-multiple-inputs-incomplete\`, \`sep-2322-multiple-inputs-complete\`
- \`sep-2322-ignore-unexpected-params\`
- \`sep-2164-data-uri\`, \`sep-2164-error-code\`, \`sep-2164-no-empty-contents\`
- PML reads a list again when a server reports a change, and notifies clients only if the list did
  change. This server reports changes of lists that stay the same.
  - \`sep-2575-server-sends-prompts-list-changed-on-subscription\`
  - \`sep-2575-server-sends-tools-list-changed-on-subscription\`

These three checks pass through PML only, because PML implements the extension for tasks and this server
does not: \`sep-2663-tasks-methods-non-declaring\`, \`tasks-extension-advertised\`,
\`sep-2663-tasks-get-invalid-task-id-32602\`.`;

function tableOf(title: string, rows: readonly Row[]): string {
  return [
    `| ${title} | checks passed |`,
    "| --- | --- |",
    ...rows.map(({ name, passed, all }) => `| ${name} | ${passed} of ${all} |`),
  ].join("\n");
}

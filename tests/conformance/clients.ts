/**
 * Runs the client scenarios of the conformance suite with PML as the client, without those about
 * sign-in.
 *
 * @module
 */

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { callingClient } from "./caller.ts";
import { forwarding } from "./forwarding.ts";
import { type Checked, SUITE } from "./suite.ts";

/** The scenarios, by revision. */
export const CLIENT_SCENARIOS: Readonly<Record<string, readonly string[]>> = {
  "2025-11-25": [
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "json-schema-2020-12-preservation",
  ],
  "2026-07-28": [
    "tools_call",
    "request-metadata",
    "sep-2322-client-request-state",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
  ],
};

/** Runs one scenario. Returns its checks; none if it did not run. */
export async function runClientScenario(
  revision: string,
  scenario: string,
): Promise<readonly Checked[]> {
  const folder = await Deno.makeTempDir({ prefix: "pml-conformance-" });
  const what = ["--scenario", scenario, "--spec-version", revision, "-o", folder];
  try {
    await using clients = await forwarding(folder, callingClient);
    const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [
        ...["run", "-A", "--quiet", "--no-lock", "--no-config", SUITE],
        ...["client", "--command", clients.command, ...what],
      ],
      stdin: "null",
    }).output();
    const files = await readdir(folder, { recursive: true });
    const file = files.find((name) => name.endsWith("checks.json"));
    const text = new TextDecoder();
    if (file === undefined) throw new Error(text.decode(stdout) + text.decode(stderr));
    const checks = JSON.parse(await readFile(join(folder, file), "utf8")) as readonly Said[];
    return checks.map(({ id, status, errorMessage = "" }) => ({
      scenario,
      id,
      status,
      why: errorMessage,
    }));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

interface Said {
  readonly id: string;
  readonly status: string;
  readonly errorMessage?: string;
}

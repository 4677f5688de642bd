/**
 * The client of the conformance suite of MCP for scenarios about sign-in: PML with the suite's
 * server behind it. It calls a tool, and whenever PML names the command that signs the user in, it
 * runs that command and acts as the browser.
 *
 * @module
 */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { textOf } from "../attacks/oracles.ts";
import type { Era } from "../kit/json_rpc.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { signIn } from "../kit/sign_in.ts";
import { makeWorkspace, type Workspace } from "../kit/workspace.ts";
import type { ClientRun } from "./forwarding.ts";

/** The address of the client's document, which the suite requires and never reads. */
const DOCUMENT = "https://conformance-test.local/client-metadata.json";
/** How often a user would sign in again for the same call. */
const PATIENCE = 5;

/** Runs the client. Returns its exit code: 1 if a call fails. */
export async function signInClient({ scenario, context, revision, url, log }: ClientRun) {
  const era: Era = revision < "2026-07-28" ? "2025-11-25" : "2026-07-28";
  const { client_id, client_secret } = JSON.parse(context);
  const oauth = { client_id, client_secret: client_secret && "${CLIENT_SECRET}" };
  await using ws = await makeWorkspace({
    pml: {
      version: 1,
      permissions: { allow: ["suite:*"] },
      mcpServers: { suite: { type: "http", url, ...(client_id && { oauth }) } },
    },
    env: client_secret ? { CLIENT_SECRET: client_secret } : {},
  });
  if (scenario === "auth/basic-cimd") {
    await writeFile(join(ws.home, "config.yaml"), `oauth:\n  client_metadata_url: ${DOCUMENT}\n`);
  }
  await using pml = new RawStdio(ws, { era, ownProcess: false });
  await pml.open();
  // The second call is that of a signed-in user; servers may have changed by then.
  for (let call = 0; call < 2; call++) {
    const text = await calledSignedIn(pml, ws, log);
    log(`call ${call}: ${text}`);
    if (text !== undefined) return 1;
  }
  return (await pml.close()).code;
}

/** Calls, and signs in as often as PML requires. Returns the last error. */
async function calledSignedIn(
  pml: RawStdio,
  ws: Workspace,
  log: ClientRun["log"],
): Promise<string | undefined> {
  for (let round = 0;; round++) {
    const answer = await pml.callTool("call", { tool: "suite:test-tool", arguments: {} });
    const text = textOf(answer) || JSON.stringify(answer);
    // For a server without sign-in metadata the text differs, and the user has to configure it.
    const [, name = "suite", more = ""] =
      /^Run: pml login (\S+?)((?: --scope (?:'[^']*'|"[^"]*"|\S+))?)`?$/m
        .exec(text) ?? [];
    if (!/LOGIN_REQUIRED/.test(text)) return /^[A-Z_]+:/.test(text) ? text : undefined;
    if (round === PATIENCE) return text;
    log(`${text}\n-> pml login ${name}${more}`);
    const args = more === "" ? [] : ["--scope", more.slice(9).replaceAll(/['"]/g, "")];
    const { code, stdout, stderr } = await signIn(ws, name, { args, ownProcess: false });
    if (code !== 0) return stdout + stderr;
  }
}

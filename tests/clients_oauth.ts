/**
 * Signs in at an independent authorization server (`oidc-provider`) for an MCP server of the
 * official SDK, as a user does.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { FoundClients } from "./kit/found_clients.ts";
import { repoFile } from "./kit/pml_command.ts";
import { runPml } from "./kit/run.ts";
import { signIn } from "./kit/sign_in.ts";
import { until } from "./kit/wait.ts";
import { makeWorkspace } from "./kit/workspace.ts";

/** Signs in, calls while tokens are refreshed, and signs out. */
export async function signInThere({ folder, node }: FoundClients): Promise<void> {
  const script = `${folder}/oauth_server.mjs`;
  await Deno.copyFile(repoFile("tests/clients/oauth_server.mjs"), script);
  const server = new Deno.Command(node, { args: [script], stdout: "piped", stderr: "null" })
    .spawn();
  let output = "";
  const telling = server.stdout.pipeThrough(new TextDecoderStream()).pipeTo(
    new WritableStream({ write: (text) => void (output += text) }),
  );
  const count = (event: string) => output.split("\n").filter((one) => one === event).length;
  try {
    await until(() => output.includes("/mcp\n"));
    await using ws = await makeWorkspace({
      trusted: true,
      pml: {
        version: 1,
        permissions: { allow: ["far:*"] },
        mcpServers: { far: { type: "http", url: output.trim() } },
      },
    });
    const signedIn = await signIn(ws, "far");
    assert.equal(signedIn.code, 0, signedIn.stderr + output);
    assert.equal(count("registration_create.success"), 1, "it registered itself");
    for (const refreshes of [1, 2]) {
      await new Promise((resolve) => setTimeout(resolve, 1_200)); // after the token has expired
      const { code, stdout, stderr } = await runPml(ws, ["call", "far:who"]);
      assert.equal(code, 0, stderr + output);
      assert.match(stdout, /account a/);
      assert.ok(count("refresh_token.consumed") >= refreshes, output);
    }
    assert.equal(count("registration_create.success"), 1);
    assert.equal(count("grant.revoked"), 0, "no refresh token was used twice");
    const out = await runPml(ws, ["logout", "far"]);
    assert.match(out.stdout, /^far: signed out, token revoked/, output);
    assert.ok(count("refresh_token.destroyed") > 0, output);
    assert.doesNotMatch(output, /^! /m);
  } finally {
    server.kill("SIGKILL");
    await Promise.all([telling, server.status]);
  }
}

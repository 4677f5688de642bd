/**
 * Checks `pml serve` over HTTP, and `pml stdio` attached to it.
 *
 * @module
 */

import { join } from "node:path";
import { textOf } from "../../tests/attacks/oracles.ts";
import { DEADLINE_MS, within } from "../../tests/kit/wait.ts";
import type { Part } from "./part.ts";
import { ANSWER_MS, makeScene, type WindowsScene } from "./scene.ts";
import type { Wine } from "./wine.ts";

const READ = { tool: "filesystem:read_file", arguments: { path: "a.txt" } };

/** A running `pml serve`. */
interface Serve {
  readonly url: string;
  readonly token: string;
  readonly kill: () => Promise<void>;
}

/** Serves a client over HTTP and attached clients, one of which continues alone in the end. */
export const SERVE: Part = {
  name: "pml serve",
  run: async (wine, checks) => {
    await using scene = await makeScene(wine, { files: { "a.txt": "AAA\n" } });
    const { url, token, kill } = await serve(wine, scene);
    const params = {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "windows", version: "1" },
    };
    const answer = await fetch(url, {
      method: "POST",
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }),
    });
    checks.match("HTTP", `${answer.status} ${await answer.text()}`, /^200 .*"serverInfo"/s);
    await using client = scene.open();
    await client.open();
    const read = async () => textOf(await client.callTool("call", READ, { ms: ANSWER_MS }));
    checks.match("a call through the pipe", await read(), /^AAA\n$/);
    checks.match("pml stdio attaches", client.stderr, /^(?![^]*Serving on stdio)/);
    await using second = scene.open({ era: "2026-07-28" });
    await second.open();
    const text = textOf(await second.callTool("call", READ, { ms: ANSWER_MS }));
    checks.match("a second one", text, /^AAA\n$/);
    checks.match("its end of input", `code ${(await second.close()).code}`, /^code 0$/);
    await kill();
    // The killed process may have run the request, so the call may fail.
    const first = await read();
    checks.match("a call after pml serve was killed", first, /^AAA\n$|^UPSTREAM_DOWN: /);
    checks.match("another call", await read(), /^AAA\n$/);
    checks.match("it goes on alone", client.stderr, /Serving on stdio/);
    checks.match("end of input", `code ${(await client.close()).code}`, /^code 0$/);
  },
};

async function serve(wine: Wine, { env }: WindowsScene): Promise<Serve> {
  const [program, ...args] = wine.pml("serve", "--port", "0", "--json");
  const child = new Deno.Command(program, {
    args,
    env: { ...env },
    clearEnv: true,
    stdin: "null",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const what = () => "pml serve does not listen";
  const { value = "{}" } = await within(reader.read(), { ms: DEADLINE_MS, what });
  const { url, token } = JSON.parse(value) as Record<"url" | "token", string>;
  const file = join(wine.drive, token.replaceAll("\\", "/").replace(/^C:/i, ""));
  return {
    url,
    token: (await Deno.readTextFile(file)).trim(),
    kill: async () => {
      child.kill("SIGKILL");
      await Promise.all([child.status, reader.cancel()]);
    },
  };
}

/**
 * A server of a registry is not started before the user has approved it, for any request of a
 * client.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FakeRegistry, manifestEntry } from "../kit/fake_registry.ts";
import { ERAS } from "../kit/json_rpc.ts";
import { repoFile } from "../kit/pml_command.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { until } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import { ENTRY_POINTS, LOOP, makeDoorScene } from "./entry_points.ts";
import { endWell, textOf } from "./oracles.ts";

const TOOL = "listing:echo";
const LIST = { pages: [[{ name: "echo", inputSchema: { type: "object" } }]] };
const SCRIPT = repoFile("tests/kit/listing_server.ts");
const CAN_ASK = { elicitation: { form: {} } } as const;

/** Other requests that could start a server. */
const OTHERS: readonly (readonly [method: string, params: Record<string, unknown>])[] = [
  ["tools/list", {}],
  ["prompts/list", {}],
  ["resources/list", {}],
  ["resources/templates/list", {}],
  ["prompts/get", { name: "listing__hello" }],
  ["resources/read", { uri: "pml://listing/a" }],
  ["completion/complete", {
    ref: { type: "ref/prompt", name: "listing__hello" },
    argument: { name: "a", value: "" },
  }],
];

/** Servers, and the approval files that are missing in the PML home. */
const KNOWN: Readonly<Record<string, readonly string[] | undefined>> = {
  "that is new": undefined,
  "that only pml.lock pins": ["pins", "lists"],
  "that only pml.lock pins, with cached tools": ["pins"],
};

/** Approves the server and runs it, then removes files of the PML home. */
async function pinned(
  ws: Workspace,
  { env, removed, ledger }: {
    readonly env: Record<string, string>;
    readonly removed: readonly string[];
    readonly ledger: string;
  },
): Promise<void> {
  const answer = () => ({ action: "accept", content: { answer: "Yes" } });
  await using pml = new RawStdio(ws, { era: ERAS[0], env, capabilities: CAN_ASK, answer });
  await pml.open();
  const message = await pml.callTool("call", { tool: TOOL, arguments: {} });
  assert.equal(textOf(message), "ran echo");
  const lock = () => readFile(ws.file("pml.lock"), "utf8").catch(() => "");
  await until(async () => (await lock()).includes('"echo": "sha256-'));
  await pml.close();
  for (const name of removed) await rm(join(ws.home, name), { recursive: true });
  await rm(ledger);
}

for (const [at, [which, removed]] of Object.entries(KNOWN).entries()) {
  Deno.test(`a server ${which} is not started before its approval`, async () => {
    const era = ERAS[at % ERAS.length];
    const folder = await Deno.makeTempDir();
    await using _ = { [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
    const [list, ledger] = [join(folder, "list.json"), join(folder, "ledger")];
    await writeFile(list, JSON.stringify(LIST));
    // The server writes each request into the ledger; the first one arrives with its start.
    const args = ["run", "-A", "--no-config", "--quiet", SCRIPT, list, ledger];
    const install = { command: "deno", args };
    const entry = manifestEntry("listing", { type: "stdio", tools: ["echo"], install });
    await using registry = await FakeRegistry.open([entry]);
    const env = { PML_REGISTRIES: registry.url };
    await using scene = await makeDoorScene({
      era,
      env,
      capabilities: {},
      pml: {
        version: 1,
        permissions: { allow: ["filesystem:*"] },
        gateway: { tools_exposure: "full_proxy" },
      },
      prepare: async (ws) => removed && await pinned(ws, { env, removed, ledger }),
    });
    const { ws, pml } = scene;
    for (const [name, use] of Object.entries(ENTRY_POINTS)) {
      // A command gets no variables here, and so has no registry.
      if (name === "cli") continue;
      const code = await use(scene, TOOL, { a: "b" });
      if (name !== LOOP) {
        assert.match(
          code ?? "it ran",
          /^(?:APPROVAL_REQUIRED|UNKNOWN_TOOL)$/,
          `${name}: ${code}`,
        );
      }
      assert.equal(await textOfFile(ledger), undefined, name);
    }
    for (const [method, params] of OTHERS) await pml.request(method, params);
    await pml.callTool("search", { server: "listing" });
    await pml.callTool("schema", { tools: [TOOL] });
    await endWell(ws, pml);
    assert.equal(await textOfFile(ledger), undefined);
  });
}

/** Returns the text of a file; undefined if it does not exist. */
function textOfFile(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(() => undefined);
}

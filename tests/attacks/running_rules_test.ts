/**
 * Rules that change while a plan or code runs: each later call of it follows the new rules, over
 * stdio and over HTTP.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { call, sceneOf } from "../full_scene.ts";
import { DoorClient } from "../kit/door_client.ts";
import { ERAS, type Message } from "../kit/json_rpc.ts";
import { servePml } from "../kit/pml_serve.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { until } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import { withoutTypeCheck } from "./code_tools.ts";
import { codeOf, journalOf, ofKind, textOf } from "./oracles.ts";
import { makeAttackWorkspace, SLOW } from "./stage.ts";

type Ask = (
  params: { readonly name: string; readonly arguments: Record<string, unknown> },
) => Promise<Message>;

const LIST = { name: "filesystem__list_directory", arguments: { path: "." } };
const RULES = {
  version: 1,
  permissions: { allow: ["filesystem:*", "slow:*"] },
  private_mcps: SLOW.pml.private_mcps,
};
const DENY = ["filesystem:write_file", "filesystem:list_directory"];

/** Runs that wait for a file and then write another, by their tools. */
const RUNS = {
  "execute_workflow": (path: string) => ({
    plan: {
      tasks: [
        { id: "wait", tool: "slow:wait", arguments: { path } },
        {
          id: "write",
          tool: "filesystem:write_file",
          arguments: { path: "made.txt", content: "made" },
          depends_on: ["wait"],
        },
      ],
    },
  }),
  "execute_code": (path: string) => ({
    code: withoutTypeCheck(`await mcp.slow.wait({ path: ${JSON.stringify(path)} });
      try {
        await mcp.filesystem.write_file({ path: "made.txt", content: "made" });
        return "wrote";
      } catch (error) {
        return String(error.code ?? error.message);
      }`),
  }),
} as const;

/** Denies the second call of each run while it waits. */
async function denied(ws: Workspace, ask: Ask): Promise<void> {
  await writeFile(ws.file(".pml.json"), JSON.stringify(RULES));
  for (const [name, argsOf] of Object.entries(RUNS)) {
    await until(async () => codeOf(await ask(LIST)) === undefined);
    const starts = async () => ofKind(await journalOf(ws), "start").length;
    const before = await starts();
    let ended: Message | undefined;
    const answer = ask({ name, arguments: argsOf(`${name}-go`) }).then((response) =>
      ended = response
    );
    await until(async () => ended !== undefined || await starts() > before);
    if (ended !== undefined) assert.fail(`${name} ended before its first call: ${textOf(ended)}`);
    const rules = { ...RULES, permissions: { ...RULES.permissions, deny: DENY } };
    await writeFile(ws.file(".pml.json"), JSON.stringify(rules));
    await until(async () => codeOf(await ask(LIST)) === "PERMISSION_DENIED");
    await writeFile(ws.file(`${name}-go`), "go");
    assert.match(textOf(await answer), /PERMISSION_DENIED/, name);
    await assert.rejects(Deno.stat(ws.file("made.txt")), Deno.errors.NotFound, name);
    await writeFile(ws.file(".pml.json"), JSON.stringify(RULES));
  }
}

Deno.test("a rule that is added while a run waits applies to its next call", async () => {
  await using ws = await makeAttackWorkspace({ files: SLOW.files, pml: RULES });
  await using pml = new RawStdio(ws, { era: "2025-11-25" });
  await pml.open();
  await denied(ws, ({ name, arguments: args }) => pml.callTool(name, args));
  await pml.close();
});

Deno.test("a rule that is added while a run waits applies to its next call, over HTTP", async () => {
  await using ws = await makeAttackWorkspace({ files: SLOW.files, pml: RULES });
  await using served = await servePml(ws);
  await using client = await DoorClient.open(served, { era: "2026-07-28" });
  await denied(ws, (params) => client.request("tools/call", params));
});

for (const era of ERAS) {
  Deno.test(`a client gets no more updates of a resource that is denied meanwhile, on ${era}`, async () => {
    await using scene = await sceneOf(era);
    const { ws, pml } = scene;
    const uri = "pml://legacy/test://a";
    if (era === "2026-07-28") {
      const notifications = { resourceSubscriptions: [uri] };
      pml.begin("subscriptions/listen", { notifications }).answer.catch(() => {}); // ends with PML
    } else await pml.request("resources/subscribe", { uri });
    const told = () =>
      pml.messages.filter(({ method }) => method === "notifications/resources/updated").length;
    await until(async () => {
      await call(pml, "legacy:touch");
      return told() > 0;
    });
    const config = JSON.parse(await readFile(ws.file(".pml.json"), "utf8"));
    const deny = [...config.permissions.deny ?? [], "legacy:@resources"];
    const rules = { ...config, permissions: { ...config.permissions, deny } };
    await writeFile(ws.file(".pml.json"), JSON.stringify(rules));
    await until(async () =>
      codeOf(await pml.request("resources/read", { uri })) === "PERMISSION_DENIED"
    );
    const before = told();
    for (let at = 0; at < 3; at++) await call(pml, "legacy:touch");
    assert.equal(told(), before);
    await pml.close();
  });
}

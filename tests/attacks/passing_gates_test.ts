/**
 * Changes between two checks of a call: the rules, grants and limits of that moment apply.
 *
 * @module
 */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { answer } from "../../src/registry/answers.ts";
import { versionsOf } from "../../src/registry/registry_store.ts";
import { FakeRegistry, moduleEntry, storeOf } from "../kit/fake_registry.ts";
import type { Message } from "../kit/json_rpc.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { until } from "../kit/wait.ts";
import { makeWorkspace, type Workspace } from "../kit/workspace.ts";
import { codeOf, endWell, journalOf, textOf } from "./oracles.ts";
import { answerOf, picked, questionOf } from "./questions.ts";
import { makeScene, SLOW } from "./stage.ts";

const CAN_ASK = { elicitation: { form: {} } } as const;
/** The revision in which a question is the result of a request, which the client then repeats. */
const ERA = "2026-07-28";
const LIST = { name: "filesystem__list_directory", arguments: { path: "." } };

function called(tool: string, args = {}) {
  return { name: "call", arguments: { tool, arguments: args } };
}

function moduleOf(name: string, permissions: object): string {
  return `export const __meta__ = {
    name: "${name}", version: "1.0.0", permissions: ${JSON.stringify(permissions)},
    tools: { go: { description: "Goes", inputSchema: { type: "object" } } },
  };
  export function go(_, host) {
    host.progress({ progress: 1, message: "it has " + host.env("GATES_KEY") });
    return "${name} went";
  }`;
}

/** Writes a configuration that denies lists of folders, and waits until it applies. */
async function configure(
  { ws, pml }: { readonly ws: Workspace; readonly pml: RawStdio },
  { permissions, ...rest }: { readonly permissions: Record<string, readonly string[]> },
): Promise<void> {
  const deny = [...permissions.deny ?? [], "filesystem:list_directory"];
  const text = JSON.stringify({ version: 1, ...rest, permissions: { ...permissions, deny } });
  await writeFile(ws.file(".pml.json"), text);
  await until(async () => codeOf(await answerOf(pml, LIST)) === "PERMISSION_DENIED");
}

function isQuestion({ result }: Message): boolean {
  return String(result?.resultType) === "input_required";
}

Deno.test("a deny that is added while a registry is asked refuses the call", async () => {
  const entries = [await moduleEntry("clock", moduleOf("clock", {}))];
  const versions = versionsOf(entries);
  const held = Promise.withResolvers<void>();
  await using registry = await FakeRegistry.open([], async (request) => {
    if (request.target.includes("clock")) await held.promise;
    return await answer(request, storeOf(versions));
  });
  const allow = ["clock:*", "filesystem:*"];
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: registry.url },
    pml: { version: 1, permissions: { allow } },
  });
  await using pml = new RawStdio(ws, { era: "2026-07-28" });
  await pml.open();
  const call = pml.begin("tools/call", called("clock:go"));
  await until(() => registry.paths.some((path) => path.includes("clock")));
  await configure({ ws, pml }, { permissions: { allow, deny: ["clock:*"] } });
  held.resolve();
  assert.equal(codeOf(await call.answer), "PERMISSION_DENIED");
  assert.equal((await pml.close()).code, 0);
});

Deno.test("an approval counts although unrelated rules changed", async () => {
  const allow = ["filesystem:list_directory"];
  await using scene = await makeScene({
    era: ERA,
    capabilities: CAN_ASK,
    pml: { version: 1, permissions: { allow } },
  });
  const { ws, pml } = scene;
  const write = {
    name: "filesystem__write_file",
    arguments: { path: "made.txt", content: "made" },
  };
  const question = await questionOf(pml, write);
  await configure(scene, { permissions: { allow: [...allow, "filesystem:read_file"] } });
  assert.equal(isQuestion(await question.answer(picked("Yes"))), false);
  assert.equal(await Deno.readTextFile(ws.file("made.txt")), "made");
  assert.equal((await pml.close()).code, 0);
});

Deno.test("a yes covers the grants that were shown, and no others", async () => {
  const mine = { private_mcps: { mine: { type: "deno", path: "mine.js" } } };
  const permissions = { ask: ["mine:*"], allow: ["filesystem:*"] };
  await using scene = await makeScene({
    era: ERA,
    capabilities: CAN_ASK,
    files: { "mine.js": moduleOf("mine", { env: ["GATES_KEY"] }) },
    pml: { version: 1, permissions, ...mine },
    env: { GATES_KEY: "gates-key-5b0f6a3d" },
  });
  const { ws, pml } = scene;
  const before = await questionOf(pml, called("mine:go"));
  assert.match(before.text, /asks for env GATES_KEY: not granted/);
  // The rules are the same as before: only the grant differs.
  await writeFile(
    ws.file(".pml.json"),
    JSON.stringify({ version: 1, permissions, ...mine, grants: { mine: { env: ["GATES_KEY"] } } }),
  );
  const now = async () => (await questionOf(pml, called("mine:go"))).text;
  await until(async () => /reads the variable GATES_KEY/.test(await now()));
  assert.ok(isQuestion(await before.answer(picked("Yes"))), "it is asked about anew");
  const after = await questionOf(pml, called("mine:go"));
  assert.equal(textOf(await after.answer(picked("Yes"))), "mine went");
  await endWell(ws, pml);
});

Deno.test("the first question about a registry's server shows the present grants", async () => {
  await using registry = await FakeRegistry.open([
    await moduleEntry("reader", moduleOf("reader", { read: ["/etc"] })),
  ]);
  const permissions = { ask: ["reader:*"], allow: ["filesystem:*"] };
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: registry.url },
    pml: { version: 1, permissions },
  });
  await using pml = new RawStdio(ws, { era: ERA, capabilities: CAN_ASK });
  await pml.open();
  const before = await questionOf(pml, called("reader:go"));
  assert.match(before.text, /asks for read \/etc: not granted/);
  const grants = { reader: { read: ["/etc"] } };
  await configure({ ws, pml }, { permissions, ...{ grants } });
  const after = await questionOf(pml, called("reader:go"));
  assert.match(after.text, /reads \/etc/);
  assert.equal((await pml.close()).code, 0);
});

Deno.test("an own module gets no grants of a registry server with the same name", async () => {
  await using registry = await FakeRegistry.open([
    await moduleEntry("clock", moduleOf("clock", { env: ["GATES_KEY"] })),
  ]);
  const permissions = { allow: ["clock:*", "filesystem:*"] };
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: registry.url, GATES_KEY: "gates-key-5b0f6a3d" },
    files: { "clock.js": moduleOf("clock", { env: ["GATES_KEY"] }) },
    pml: { version: 1, permissions },
  });
  await using pml = new RawStdio(ws, { era: ERA, capabilities: CAN_ASK });
  await pml.open();
  assert.equal(textOf(await answerOf(pml, called("clock:go"))), "clock went");
  const mine = { private_mcps: { clock: { type: "deno", path: "clock.js" } } };
  await configure({ ws, pml }, { permissions, ...mine });
  const question = await questionOf(pml, called("clock:go"));
  assert.match(question.text, /changed since/);
  assert.match(textOf(await question.answer(picked("Yes"))), /no env grant/);
  assert.equal((await pml.close()).code, 0);
});

Deno.test("a key in the progress of a module reaches no client", async () => {
  await using scene = await makeScene({
    files: { "mine.js": moduleOf("mine", { env: ["GATES_KEY"] }) },
    pml: {
      version: 1,
      permissions: { allow: ["mine:*"] },
      private_mcps: { mine: { type: "deno", path: "mine.js" } },
      grants: { mine: { env: ["GATES_KEY"] } },
    },
    env: { GATES_KEY: "gates-key-5b0f6a3d" },
  });
  const { pml } = scene;
  const params = { ...called("mine:go"), _meta: { progressToken: "p" } };
  assert.equal(textOf(await pml.request("tools/call", params)), "mine went");
  const text = JSON.stringify(
    pml.messages.filter(({ method }) => method === "notifications/progress"),
  );
  assert.match(text, /it has /);
  assert.doesNotMatch(text, /gates-key/);
  assert.equal((await pml.close()).code, 0);
});

Deno.test("a call beyond the limits is refused at once, and runs when a slot is free", async () => {
  await using scene = await makeScene({
    ...SLOW,
    limits: { concurrent_calls: 1, queued_calls: 0 },
  });
  const { ws, pml } = scene;
  const wait = () => pml.begin("tools/call", called("slow:wait", { path: "made" })).answer;
  const both = [wait(), wait()];
  // The other one does not end before that file exists.
  assert.equal(codeOf(await Promise.race(both)), "OVERLOADED");
  await writeFile(ws.file("made"), "made");
  const texts = (await Promise.all(both)).map(textOf).filter((text) => text === "made");
  assert.equal(texts.length, 1);
  await endWell(ws, pml);
});

Deno.test("every call is in the journal with the rule that decided about it", async () => {
  await using scene = await makeScene({});
  const { ws, pml } = scene;
  assert.equal(textOf(await pml.callTool("filesystem__read_file", { path: "good.txt" })), "good\n");
  assert.equal((await pml.close()).code, 0);
  const starts = (await journalOf(ws)).filter(({ kind }) => kind === "start");
  assert.equal(starts.length, 1);
  const [start] = starts as readonly object[];
  const { tool, verdict, rule } = start as Record<string, unknown>;
  assert.deepEqual([tool, verdict, rule], ["filesystem:read_file", "allow", "filesystem:*"]);
});

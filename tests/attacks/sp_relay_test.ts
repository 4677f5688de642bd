/**
 * Servers that abuse messages other than results: logs, requests, errors, subscriptions.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import process from "node:process";
import { type Era, ERAS } from "../kit/json_rpc.ts";
import { repoFile } from "../kit/pml_command.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { until } from "../kit/wait.ts";
import { call, ledgerOf, lives, pidsOf, toldCode } from "./evil_servers.ts";
import { assertServes, endWell, textOf } from "./oracles.ts";
import { makeScene, type Scene, type SceneOptions } from "./stage.ts";

const SECRET = "rude-secret-4242424242";
const PAGE = "pml://rude/rude://page";

function rude(word: string): Record<string, unknown> {
  const script = repoFile("tests/kit/rude_server.ts");
  const args = ["run", "-A", "--no-config", "--quiet", script, "./rude.ledger", word];
  return { command: process.execPath, args, env: { TOKEN: "${RUDE_TOKEN}" } };
}

function pmlFile(word: string, rules: Record<string, readonly string[]> = {}) {
  const permissions = { allow: ["filesystem:*", "rude:*"], ...rules };
  return { version: 1, permissions, mcpServers: { rude: rude(word) } };
}

async function sceneOf(
  era: Era,
  { rules, ...options }: SceneOptions & {
    readonly rules?: Record<string, readonly string[]>;
  } = {},
): Promise<Scene> {
  const pml = pmlFile("one", rules);
  return await makeScene({ era, pml, env: { RUDE_TOKEN: SECRET }, ...options });
}

Deno.test("a server that sends endless requests and reads nothing is ended (SP9)", async () => {
  await using scene = await sceneOf("2025-11-25");
  const { ws, pml } = scene;
  const answer = await call(pml, "rude:deaf");
  assert.equal(toldCode(answer), "UPSTREAM_PROTOCOL");
  assert.match(textOf(answer), /read its input/);
  assert.equal(textOf(await call(pml, "rude:word")), "one");
  await endWell(ws, pml);
});

Deno.test("an unreadable line affects only its server (SP12)", async () => {
  await using scene = await sceneOf("2026-07-28");
  const { ws, pml } = scene;
  for (const odd of ["odd_token", "deep"]) {
    assert.equal(textOf(await call(pml, `rude:${odd}`)), "still here");
  }
  assert.match(textOf(await call(pml, "rude:odd_error")), /answered with the error 1/);
  assert.equal((await pidsOf(ws, "rude")).length, 1);
  assert.doesNotMatch(pml.stderr, /bug in PML/);
  await endWell(ws, pml);
});

for (const era of ERAS) {
  Deno.test(`no error of a server asks the user past the rules, imitates PML or contains a key, on ${era} (SX4)`, async () => {
    await using scene = await sceneOf(era, { rules: { deny: ["rude:@elicitation"] } });
    const { ws, pml } = scene;
    const { error } = await pml.request("resources/read", { uri: PAGE });
    assert.equal(error?.code, -32603);
    const text = error?.message ?? "";
    assert.match(text, /\nThe server wants .*: https:\S+log-in \("PML needs you to sign in"\)$/);
    assert.equal(error?.data, undefined);
    const response = await pml.request("resources/read", { uri: "pml://rude/rude://key" });
    assert.equal(response.error?.code, -32000);
    assert.ok(!JSON.stringify(response).includes(SECRET), JSON.stringify(response));
    await endWell(ws, pml);
  });

  Deno.test(`a question within a call ends with the call, on ${era}`, async () => {
    const open = Promise.withResolvers<unknown>();
    await using scene = await sceneOf(era, {
      capabilities: { elicitation: { form: {} } },
      answer: () => open.promise,
    });
    const { pml } = scene;
    const params = { name: "call", arguments: { tool: "rude:ask_and_go", arguments: {} } };
    const first = await pml.request("tools/call", params);
    if (era === "2025-11-25") {
      assert.equal(textOf(first), "gone");
      await until(() => pml.messages.some(({ method }) => method === "notifications/cancelled"));
      return;
    }
    // The question was the response; the repeated request returns the later result of the call.
    const [key = ""] = Object.keys(first.result?.inputRequests ?? {});
    const answered = { action: "accept", content: { a: "b" } };
    const more = { requestState: first.result?.requestState, inputResponses: { [key]: answered } };
    assert.equal(textOf(await pml.request("tools/call", { ...params, ...more })), "gone");
    const again = await pml.request("tools/call", { ...params, ...more });
    assert.match(JSON.stringify(again), /answer is over/);
  });
}

Deno.test("a flood of a server's log messages costs the client no answer (SP8)", async () => {
  // The queue of a client is limited to the size of one line.
  await using scene = await sceneOf("2025-11-25", { limits: { line_bytes: 1_000_000 } });
  const { ws, pml } = scene;
  const flooded = call(pml, "rude:flood");
  await assertServes(pml);
  assert.equal(textOf(await flooded), "flooded");
  await endWell(ws, pml);
});

Deno.test("a subscription to a resource ends with its server or its permission, and can always be cancelled", async () => {
  await using scene = await sceneOf("2025-11-25", {
    rules: { ask: ["rude:@resources"] },
    capabilities: { elicitation: { form: {} } },
    answer: () => ({ action: "accept", content: { answer: "Yes" } }),
  });
  const { ws, pml } = scene;
  const said = async (what: string) =>
    (await ledgerOf(ws, "rude")).filter((line) => line.startsWith(what)).length;
  const redefine = async (word: string, rules: Record<string, readonly string[]>) => {
    const text = JSON.stringify(pmlFile(word, rules));
    await writeFile(ws.file(".pml.json"), text);
    assert.equal(await readFile(ws.file(".pml.json"), "utf8"), text);
  };
  assert.equal((await pml.request("resources/subscribe", { uri: PAGE })).error, undefined);
  assert.equal(await said("resources/subscribe"), 1);
  await redefine("two", {});
  await until(async () => await said("resources/subscribe") === 2);
  const [one = 0, two = 0] = await pidsOf(ws, "rude");
  await until(async () => !await lives(one));
  assert.equal(textOf(await call(pml, "rude:word")), "two");
  // The first server may have got this request before it was ended.
  const before = await said("resources/unsubscribe");
  await redefine("two", { deny: ["rude:@resources"] });
  await until(async () => await said("resources/unsubscribe") > before);
  assert.ok(await lives(two));
  await until(() => /follow resources of "rude"/.test(pml.stderr));
  assert.equal((await pml.request("resources/unsubscribe", { uri: PAGE })).error, undefined);
  await endWell(ws, pml);
});

Deno.test("a subscription does not start a server again after the file lost its trust", async () => {
  await using scene = await sceneOf("2025-11-25", {
    trusted: false,
    capabilities: { elicitation: { form: {} } },
    answer: () => ({ action: "accept", content: { answer: "Yes" } }),
  });
  const { ws, pml } = scene;
  assert.equal((await pml.request("resources/subscribe", { uri: PAGE })).error, undefined);
  const [one = 0] = await pidsOf(ws, "rude");
  await writeFile(ws.file(".pml.json"), JSON.stringify(pmlFile("two")));
  await until(() => /The configuration was applied/.test(pml.stderr));
  // The subscription would start the current command of the name, which no user approved.
  await until(() => /Cannot follow/.test(pml.stderr));
  assert.deepEqual(await pidsOf(ws, "rude"), [one]);
  await endWell(ws, pml);
});

Deno.test("a client that subscribes with its first message is notified, and a client that cancels at once has no subscription", async () => {
  await using scene = await sceneOf("2026-07-28");
  const { ws, pml } = scene;
  const listen = { notifications: { resourceSubscriptions: [PAGE] } };
  const said = async (what: string) =>
    (await ledgerOf(ws, "rude")).filter((line) => line.startsWith(what)).length;
  await pml.close();
  await using early = new RawStdio(ws, { era: "2026-07-28", env: { RUDE_TOKEN: SECRET } });
  const open = early.begin("subscriptions/listen", listen);
  open.answer.catch(() => {}); // it is cancelled
  await until(async () => await said("resources/subscribe") === 1);
  await early.notify("notifications/cancelled", { requestId: open.id });
  await until(async () => await said("resources/unsubscribe") === 1);
  const short = early.begin("subscriptions/listen", listen);
  short.answer.catch(() => {}); // it is cancelled
  await early.notify("notifications/cancelled", { requestId: short.id });
  // Later requests are handled after it.
  await early.request("resources/read", { uri: PAGE });
  await until(async () =>
    await said("resources/subscribe") === await said("resources/unsubscribe")
  );
});

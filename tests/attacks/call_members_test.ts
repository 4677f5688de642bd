/**
 * Members of a call next to its name and arguments: an approval of a harmless call must not cover a
 * call with other members.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import type { Json } from "../kit/json_rpc.ts";
import { ERAS } from "../kit/json_rpc.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { repoFile } from "../kit/pml_command.ts";
import { runPmlOnTerminal } from "../kit/run.ts";
import { until } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import { writeConfig } from "../script_scene.ts";
import { withoutTypeCheck } from "./code_tools.ts";
import { codeOf, endWell } from "./oracles.ts";
import { answerOf, picked, questionOf, type ToolCall } from "./questions.ts";
import { makeScene, type Scene, type SceneOptions } from "./stage.ts";

const CAN_ASK = { elicitation: { form: {} } } as const;
const DRY = { dry_run: true };
const CLIENTS = {
  "claudecode/toolUseId": "toolu_1",
  "vscode.conversationId": "c1",
  "vscode.requestId": "r1",
  threadId: "t1",
  "x-codex-turn-metadata": { turn_id: "1" },
  "ai.opencode/sessionID": "ses_1",
  traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
  tracestate: "a=b",
};

function serverOf(): Json {
  const script = repoFile("tests/kit/params_server.ts");
  const args = ["run", "-A", "--no-config", "--quiet", script, "./sent"];
  return { command: Deno.execPath(), args } as unknown as Json;
}

/** Creates a workspace with the server, whose first use is approved, and with the rules. */
async function scene(
  permissions: object,
  options: Omit<SceneOptions, "pml"> = {},
): Promise<Scene> {
  const pml = { version: 1, permissions, mcpServers: { s: serverOf() } };
  const scene = await makeScene({ capabilities: CAN_ASK, ...options, pml });
  return scene;
}

/** Returns a call of a tool with other members. */
function call(members: object = {}, { tool = "s__change", args = DRY as object } = {}): ToolCall {
  return { name: tool, arguments: args, ...members } as ToolCall;
}

/** Waits until the resource of the server is listed. */
async function listedResource(pml: RawStdio): Promise<void> {
  await until(async () =>
    JSON.stringify(await pml.request("resources/list", {})).includes("memo://a")
  );
}

/** Returns the params of the calls that reached the server. */
async function sent(ws: Workspace): Promise<readonly Json[]> {
  const text = await readFile(ws.file("sent"), "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
}

for (const era of ERAS) {
  Deno.test(`a question shows the unlisted members, and binds its answer to them, on ${era} (GX7)`, async () => {
    await using at = await scene({ ask: ["s:*"], allow: ["filesystem:*"] }, { era });
    const { ws, pml } = at;
    const extra = { _meta: { force: true, ...CLIENTS }, priority: "high" };
    const { text, answer } = await questionOf(pml, call(extra));
    assert.match(text, /"_meta\.force": true/);
    assert.match(text, /"priority": "high"/);
    for (const key of Object.keys(CLIENTS)) assert.ok(!text.includes(key), key);
    assert.equal(codeOf(await answer(picked("Yes"))), undefined);
    const [params] = await sent(ws);
    assert.deepEqual(params?.priority, "high");
    assert.equal((params?._meta as Json).force, true);
    for (const [key, value] of Object.entries(CLIENTS)) {
      assert.deepEqual((params?._meta as Json)[key], value, key);
    }
    await endWell(ws, pml);
  });
}

Deno.test("an answer to a harmless call runs no call with other members (GX7)", async () => {
  await using at = await scene({ ask: ["s:*"], allow: ["filesystem:*"] }, { era: "2026-07-28" });
  const { ws, pml } = at;
  for (const members of [{ _meta: { force: true } }, { force: true }]) {
    const { state } = await questionOf(pml, call());
    const inputResponses = { approval: picked("Yes") };
    const again = { ...call(members), requestState: state, inputResponses } as ToolCall;
    const { text } = await questionOf(pml, again);
    assert.match(text, /force/);
  }
  assert.deepEqual(await sent(ws), []);
  await endWell(ws, pml);
});

Deno.test("trust in a workspace file, for a harmless call, runs no call with other members (GX7)", async () => {
  await using at = await scene({ ask: ["s:*"] }, { era: "2026-07-28", trusted: false });
  const { ws, pml } = at;
  const inner = { tool: "call", args: { tool: "s:change", arguments: DRY } };
  const { text: trust, state } = await questionOf(pml, call({}, inner));
  assert.match(trust, /PML trusts the workspace file/);
  const inputResponses = { approval: picked("Yes") };
  const again = { ...call({ force: true }, inner), requestState: state, inputResponses };
  const { text } = await questionOf(pml, again as ToolCall);
  assert.match(text, /force/);
  assert.deepEqual(await sent(ws), []);
  await endWell(ws, pml);
});

/** Returns the text of the question about a call with members next to its params. */
async function textWith(pml: RawStdio, next: object): Promise<string> {
  const { result } = await pml.request("tools/call", { ...call() }, { next: { ...next } });
  const { approval } = result?.inputRequests as Readonly<Record<string, Json>>;
  return String((approval?.params as Json).message);
}

const NEXT = { force: true, _meta: { sudo: 1 } };

Deno.test("a rule with conditions covers no call with members next to its params (GX7)", async () => {
  await using at = await scene({ allow: ["s:change(dry_run=true)", "filesystem:*"] }, {
    era: "2026-07-28",
  });
  const { ws, pml } = at;
  assert.equal(codeOf(await answerOf(pml, call())), undefined);
  const before = (await sent(ws)).length;
  const text = await textWith(pml, NEXT);
  assert.match(text, /"message\.force": true/);
  assert.match(text, /"message\._meta": \{"sudo":1\}/);
  assert.equal((await sent(ws)).length, before);
  await endWell(ws, pml);
});

Deno.test("an answer to a harmless call runs no call with members next to its params (GX7)", async () => {
  await using at = await scene({ ask: ["s:*"], allow: ["filesystem:*"] }, { era: "2026-07-28" });
  const { ws, pml } = at;
  const { state } = await questionOf(pml, call());
  const inputResponses = { approval: picked("Yes") };
  const again = { ...call(), requestState: state, inputResponses };
  const { result } = await pml.request("tools/call", again as unknown as Json, { next: NEXT });
  assert.equal(result?.resultType, "input_required");
  assert.deepEqual(await sent(ws), []);
  await endWell(ws, pml);
});

Deno.test("baggage reaches no server, and a known key with an unusual value is shown (GX7)", async () => {
  await using at = await scene({ ask: ["s:*"], allow: ["filesystem:*"] });
  const { ws, pml } = at;
  const _meta = { baggage: "force=1", "claudecode/toolUseId": { force: true } };
  const { text, answer } = await questionOf(pml, call({ _meta, task: { ttl: 1, force: 1 } }));
  assert.ok(!text.includes("baggage"));
  assert.match(text, /"_meta\.claudecode\/toolUseId": \{"force":true\}/);
  assert.match(text, /"task": \{"ttl":1,"force":1\}/);
  assert.equal(codeOf(await answer(picked("Yes"))), undefined);
  const [params] = await sent(ws);
  assert.ok(!("baggage" in (params?._meta as Json)));
  await endWell(ws, pml);
});

Deno.test("a rule with conditions covers no call with unlisted members, on any entry point (GX7)", async () => {
  const allow = ["s:change(dry_run=true)", "filesystem:*"];
  await using at = await scene({ allow });
  const { ws, pml } = at;
  const inner = { tool: "s:change", arguments: DRY };
  const ways = {
    direct: call(),
    call: call({}, { tool: "call", args: inner }),
    batch: call({}, { tool: "batch", args: { calls: [inner] } }),
  };
  for (const [name, way] of Object.entries(ways)) {
    const before = (await sent(ws)).length;
    const members = { ...way, _meta: { force: true } } as ToolCall;
    const question = await questionOf(pml, members);
    assert.match(question.text, /"_meta\.force": true/, name);
    await question.answer(picked("No"));
    assert.equal((await sent(ws)).length, before, name);
    const known = { ...way, _meta: CLIENTS } as ToolCall;
    assert.equal(codeOf(await answerOf(pml, known)), undefined, name);
    assert.equal((await sent(ws)).length, before + 1, name);
  }
  await endWell(ws, pml);
});

Deno.test("an exact rule covers no call with unlisted members, and a rule for the tool does (GX7)", async () => {
  await using at = await scene({
    allow: ['s:change({"dry_run":true})', "s:read", "s:read(path=a)", "filesystem:*"],
  });
  const { ws, pml } = at;
  const _meta = { force: true };
  const { answer } = await questionOf(pml, call({ _meta }));
  await answer(picked("No"));
  const read = call({ _meta }, { tool: "s__read", args: { path: "a" } });
  assert.equal(codeOf(await answerOf(pml, read)), undefined);
  await endWell(ws, pml);
});

Deno.test("plans and code pass no member of their request to a server (GX7)", async () => {
  await using at = await scene({ allow: ["s:change(dry_run=true)", "s:*", "filesystem:*"] });
  const { ws, pml } = at;
  const tasks = [{ id: "a", tool: "s:change", arguments: DRY }];
  const plan = { name: "execute_workflow", arguments: { plan: { tasks } } };
  const code = {
    name: "execute_code",
    arguments: { code: withoutTypeCheck("return await mcp.s.change({ dry_run: true })") },
  };
  for (const way of [plan, code] as readonly ToolCall[]) {
    const before = (await sent(ws)).length;
    const members = { ...way, _meta: { force: true }, priority: "high" } as ToolCall;
    assert.equal(codeOf(await answerOf(pml, members)), undefined, way.name);
    const params = (await sent(ws)).slice(before);
    assert.equal(params.length, 1, way.name);
    assert.ok(!JSON.stringify(params).match(/force|priority/), way.name);
  }
  await endWell(ws, pml);
});

Deno.test("a repeated call that differs only in its members is reported, and its key can be listed (GX7)", async () => {
  await using at = await scene({ ask: ["s:*"], allow: ["filesystem:*"] });
  const { ws, pml } = at;
  const first = await questionOf(pml, call({ _meta: { "acme/id": "1" } }));
  assert.ok(!first.text.includes("Differs"));
  await first.answer(picked("Yes"));
  const second = await questionOf(pml, call({ _meta: { "acme/id": "2" } }));
  assert.match(second.text, /only in "_meta\.acme\/id"/);
  assert.match(second.text, /add "acme\/id" to client_meta in your config.yaml/);
  await second.answer(picked("Yes"));
  const same = await questionOf(pml, call({ _meta: { "acme/id": "2" } }));
  assert.ok(!same.text.includes("Differs"));
  await same.answer(picked("Yes"));
  await writeConfig(ws, { client_meta: ["acme/id"] });
  // PML reads the file again a moment later.
  await until(async () => {
    const { text, answer } = await questionOf(pml, call({ _meta: { "acme/id": "3" } }));
    await answer(picked(text.includes("acme/id") ? "No" : "Yes"));
    return !text.includes("acme/id");
  });
  assert.equal(((await sent(ws)).at(-1)?._meta as Json)["acme/id"], "3");
  await endWell(ws, pml);
});

Deno.test("pml approve lists a key for a client that sends another value each time (GX7)", async () => {
  await using at = await scene({ ask: ["s:*"], allow: ["filesystem:*"] }, { capabilities: {} });
  const { ws, pml } = at;
  const next = (id: number) => call({ _meta: { "acme/id": id } });
  assert.equal(codeOf(await answerOf(pml, next(1))), "APPROVAL_REQUIRED");
  await runPmlOnTerminal(ws, ["approve"], { typed: [["Approve exactly this call?", "y"]] });
  assert.equal(codeOf(await answerOf(pml, next(2))), "APPROVAL_REQUIRED");
  const { stdout } = await runPmlOnTerminal(ws, ["approve"], {
    typed: [
      [
        /only in "_meta\.acme\/id"[^]*Approve exactly/,
        "y",
      ],
      [/Let "acme\/id" pass to every server/, "y"],
    ],
  });
  assert.match(stdout, /Added to client_meta/);
  await until(async () => codeOf(await answerOf(pml, next(3))) === undefined);
  assert.equal(((await sent(ws)).at(-1)?._meta as Json)["acme/id"], 3);
  await endWell(ws, pml);
});

Deno.test("reading a resource shows the members of its request, too (GX7)", async () => {
  await using at = await scene({ ask: ["s:@resources"], allow: ["s:*", "filesystem:*"] });
  const { ws, pml } = at;
  await listedResource(pml);
  await writeFile(ws.file("sent"), "");
  const reading = pml.begin("resources/read", { uri: "pml://s/memo://a", _meta: { force: 1 } });
  await until(() => pml.messages.some(({ method }) => method === "elicitation/create"));
  const asked = pml.messages.find(({ method }) => method === "elicitation/create");
  assert.match(String((asked?.params as Json).message), /"_meta\.force": 1/);
  await pml.sendJson({ jsonrpc: "2.0", id: asked?.id, result: picked("Yes") });
  await reading.answer;
  await endWell(ws, pml);
});

Deno.test("a listed resource is not read with unlisted members unless a rule allows resources (GX7)", async () => {
  for (const isRuled of [false, true]) {
    const allow = ["s:read", "filesystem:*", ...isRuled ? ["s:@resources"] : []];
    await using at = await scene({ allow }, { capabilities: {} });
    const { ws, pml } = at;
    const read = async (members: object) => {
      await listedResource(pml);
      await writeFile(ws.file("sent"), "");
      await pml.request("resources/read", { uri: "pml://s/memo://a", ...members });
      return (await sent(ws)).length;
    };
    assert.equal(codeOf(await answerOf(pml, call({}, { tool: "s__read" }))), undefined);
    assert.equal(await read({}), 1);
    assert.equal(await read({ _meta: CLIENTS }), 1);
    assert.equal(await read({ _meta: { force: 1 } }), isRuled ? 1 : 0);
    assert.equal(await read({ priority: "high" }), isRuled ? 1 : 0);
  }
});

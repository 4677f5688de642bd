/**
 * Tasks: calls that continue after their answer, between clients and servers of both revisions, as
 * bytes on the wire.
 *
 * @module
 */

import assert from "node:assert/strict";
import process from "node:process";
import { journalOf } from "./attacks/oracles.ts";
import { makeScene, type Scene } from "./attacks/stage.ts";
import { ledgerOf } from "./full_scene.ts";
import { type Era, ERAS, type Json } from "./kit/json_rpc.ts";
import { repoFile } from "./kit/pml_command.ts";
import type { Answerer } from "./kit/raw_stdio.ts";
import { until } from "./kit/wait.ts";

const KINDS = ["legacy", "modern", "twin"] as const;
const TASKS = "io.modelcontextprotocol/tasks";
const RELATED = "io.modelcontextprotocol/related-task";
/** The server whose tasks a client of each revision polls itself. */
const OWN = { "2025-11-25": "legacy", "2026-07-28": "modern" } as const;

async function sceneOf(
  era: Era,
  { speaks, rules = {}, limits = {}, answer }: {
    readonly speaks: boolean;
    readonly answer?: Answerer;
    readonly rules?: object;
    readonly limits?: Readonly<Record<string, number>>;
  },
): Promise<Scene> {
  const own = OWN[era];
  const wire = (kind: string) => ({
    command: process.execPath,
    args: [
      ...["run", "-A", "--quiet", repoFile("tests/kit/wire_server.ts")],
      ...[kind === "twin" ? own : kind, `./${kind}.ledger`],
    ],
  });
  const capabilities = {
    ...answer && { elicitation: { form: {} }, sampling: {} },
    ...speaks && era === "2026-07-28" ? { extensions: { [TASKS]: {} } } : {},
  };
  return await makeScene({
    era,
    capabilities,
    ...answer && { answer },
    limits,
    pml: {
      version: 1,
      permissions: { allow: KINDS.map((kind) => `${kind}:*`), ...rules },
      mcpServers: Object.fromEntries(KINDS.map((kind) => [kind, wire(kind)])),
    },
  });
}

/** Starts a task. Returns its state. */
async function begin({ pml }: Scene, server: string, args = {}): Promise<Json> {
  const task = pml.era === "2025-11-25" ? { task: { ttl: 60_000 } } : {};
  const name = `${server}__slow`;
  const { result, error } = await pml.request("tools/call", { name, arguments: args, ...task });
  assert.equal(error, undefined);
  if (pml.era === "2026-07-28") assert.equal(result?.resultType as unknown, "task");
  const state = pml.era === "2025-11-25" ? result?.task : result;
  assert.equal(state?.status as unknown, "working", JSON.stringify(result));
  return state as Json;
}

async function taskOf({ pml }: Scene, method: string, taskId: unknown): Promise<Json> {
  const { result, error } = await pml.request(method, { taskId });
  assert.equal(error, undefined, JSON.stringify(error));
  return result as Json;
}

for (const era of ERAS) {
  const own = OWN[era];
  const isOlder = era === "2025-11-25";

  Deno.test(`a task is started, polled and read to its end by the client, on ${era}`, async () => {
    await using scene = await sceneOf(era, { speaks: true });
    const { ws, pml } = scene;
    const { taskId } = await begin(scene, own);
    assert.equal((await taskOf(scene, "tasks/get", taskId)).status as unknown, "working");
    const waiting = isOlder ? taskOf(scene, "tasks/result", taskId) : undefined;
    if (!isOlder) {
      const notifications = { taskIds: [taskId] };
      pml.begin("subscriptions/listen", { notifications }).answer.catch(() => {}); // ends with PML
      await until(async () => (await ledgerOf(ws, own)).includes("listen task-1"));
    }
    await pml.callTool(`${own}__finish`);
    const state = await taskOf(scene, "tasks/get", taskId);
    assert.deepEqual([state.status, state.taskId] as unknown[], ["completed", taskId]);
    const result = (await waiting ?? state.result) as Json & { readonly structuredContent: Json };
    assert.deepEqual([result.structuredContent.status, result["x/kept"]] as unknown[], [
      "completed",
      1,
    ]);
    if (isOlder) assert.deepEqual(result._meta?.[RELATED], { taskId });
    const name = isOlder ? "notifications/tasks/status" : "notifications/tasks";
    const told = () => pml.messages.find(({ method }) => method === name)?.params;
    await until(() => told() !== undefined);
    assert.deepEqual([told()?.taskId, told()?.status], [taskId, "completed"]);
    // A call starts it, with all checks; the journal records its states.
    await pml.close();
    const journal = await journalOf(ws);
    const tasks = journal.filter((line) => "task" in line)
      .map((line) => (line as unknown as { task: string }).task);
    assert.deepEqual([tasks[0], tasks.at(-1)], ["working", "completed"]);
    const begun = journal.filter(({ tool, kind }) => kind === "start" && tool === `${own}:slow`);
    assert.deepEqual(begun.map(({ via }) => via).slice(0, 2), ["tools/call", "tasks/get"]);
  });

  Deno.test(`tasks of two servers with equal ids are separate, and cancelled separately, on ${era}`, async () => {
    await using scene = await sceneOf(era, { speaks: true });
    const { ws, pml } = scene;
    const one = await begin(scene, own);
    const other = await begin(scene, "twin");
    assert.notEqual(one.taskId, other.taskId);
    for (const kind of [own, "twin"]) {
      assert.ok((await ledgerOf(ws, kind)).some((line) => line.startsWith("begin task-1 ")));
    }
    await taskOf(scene, "tasks/cancel", other.taskId);
    const status = async ({ taskId }: Json) =>
      (await taskOf(scene, "tasks/get", taskId)).status as unknown;
    assert.deepEqual([await status(one), await status(other)], ["working", "cancelled"]);
    // A client knows neither the server's own id of a task, nor an unknown id.
    for (const taskId of ["task-1", crypto.randomUUID()]) {
      const { error } = await pml.request("tasks/get", { taskId });
      assert.equal(error?.code, -32602);
    }
    if (isOlder) {
      const { result } = await pml.request("tasks/list", {});
      const listed = result?.tasks as unknown as readonly Json[];
      assert.deepEqual(listed.map(({ taskId, status }) => [taskId, status]), [
        [one.taskId, "working"],
        [other.taskId, "cancelled"],
      ]);
    }
  });

  Deno.test(`a task survives its call, and the idle limit of its server, on ${era}`, async () => {
    await using scene = await sceneOf(era, {
      speaks: true,
      limits: { call_ms: 2_000, idle_ms: 1_000 },
    });
    const { taskId } = await begin(scene, own);
    // An idle server ends meanwhile.
    await scene.pml.callTool("twin__plain");
    const [started = ""] = await ledgerOf(scene.ws, "twin");
    const pid = Number(started.split(" ")[1]);
    await until(async () => !(await isAlive(pid)));
    assert.equal((await taskOf(scene, "tasks/get", taskId)).status as unknown, "working");
  });

  Deno.test(`a client that does not support tasks gets the result of one, on ${era}`, async () => {
    await using scene = await sceneOf(era, { speaks: false, limits: { call_ms: 3_000 } });
    const { ws, pml } = scene;
    for (const kind of ["legacy", "modern"]) {
      for (const name of ["call", `${kind}__slow`]) {
        const given = { done: true };
        const args = name === "call" ? { tool: `${kind}:slow`, arguments: given } : given;
        const { result, error } = await pml.callTool(name, args);
        assert.equal(error, undefined);
        assert.deepEqual(
          result?.structuredContent,
          { status: "completed" },
          JSON.stringify(result),
        );
      }
      // A task that exceeds its limit is cancelled at its server, too.
      const { result } = await pml.callTool(`${kind}__slow`, {});
      assert.equal(result?.structuredContent?.error?.code as unknown, "TIMED_OUT");
      await until(async () => (await ledgerOf(ws, kind)).includes("tasks/cancel task-3"));
    }
  });

  Deno.test(`a question of a task reaches the user as its server's question, on ${era}`, async () => {
    const said = { action: "accept", content: { name: "Ann" } };
    const seen: unknown[] = [];
    const answer: Answerer = (method, { message }) => {
      seen.push([method, message]);
      return said;
    };
    const question = ["elicitation/create", `Server ${own} asks: Who?`];
    const text = `told ${JSON.stringify(said)}`;
    const rules = { deny: [`${own}:@sampling`] };
    await using scene = await sceneOf(era, { speaks: true, answer, rules });
    const params = { name: `${own}__slow`, arguments: { asks: "more" } };
    const begun = await scene.pml.request("tools/call", { ...params, ...isOlder && { task: {} } });
    const { taskId } = (isOlder ? begun.result?.task : begun.result) as Json;
    if (isOlder) {
      await taskOf(scene, "tasks/result", taskId);
      assert.deepEqual(seen, [question]);
    } else {
      const { status, inputRequests } = await taskOf(scene, "tasks/get", taskId);
      assert.equal(status as unknown, "input_required");
      // A question that the rules forbid is left out, and the allowed one is asked.
      assert.deepEqual(Object.keys(inputRequests ?? {}), ["who"]);
      const { who } = inputRequests as unknown as { who: { params: { message: string } } };
      assert.equal(who.params.message, question[1]);
      const inputResponses = { who: said };
      const { error } = await scene.pml.request("tasks/update", { taskId, inputResponses });
      assert.equal(error, undefined);
    }
    assert.ok((await ledgerOf(scene.ws, own)).includes(text));
    assert.equal((await taskOf(scene, "tasks/get", taskId)).status as unknown, "completed");
  });

  Deno.test(`a question of a task is answered where PML waits for the task, on ${era}`, async () => {
    const said = { action: "accept", content: { name: "Ann" } };
    const seen: unknown[] = [];
    const answer: Answerer = (_, { message }) => {
      seen.push(message);
      return said;
    };
    await using scene = await sceneOf(era, { speaks: false, answer });
    for (const kind of ["legacy", "modern"]) {
      const { result } = await scene.pml.callTool(`${kind}__slow`, { asks: true });
      assert.deepEqual(result?.structuredContent, { status: "completed" }, JSON.stringify(result));
      assert.equal(seen.pop(), `Server ${kind} asks: Who?`);
      assert.ok((await ledgerOf(scene.ws, kind)).includes(`told ${JSON.stringify(said)}`));
    }
    assert.deepEqual(seen, []);
  });

  Deno.test(`a rule that denies a tool starts no task, and allows a cancel, on ${era}`, async () => {
    const deny = ["twin:slow"];
    await using scene = await sceneOf(era, { speaks: true, rules: { deny } });
    const task = isOlder ? { task: {} } : {};
    const params = { name: "twin__slow", arguments: {}, ...task };
    const { result } = await scene.pml.request("tools/call", params);
    assert.equal(result?.structuredContent?.error?.code as unknown, "PERMISSION_DENIED");
    assert.deepEqual((await ledgerOf(scene.ws, "twin")).filter((line) => /begin/.test(line)), []);
    // PML asks once, when the task starts: its other requests ask nothing.
    const { taskId } = await begin(scene, own);
    await taskOf(scene, "tasks/cancel", taskId);
  });
}

async function isAlive(pid: number): Promise<boolean> {
  const stat = await Deno.readTextFile(`/proc/${pid}/stat`).catch(() => "");
  return stat !== "" && !/\) Z /.test(stat);
}

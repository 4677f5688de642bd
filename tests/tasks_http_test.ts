/**
 * Tasks of servers over HTTP, for real clients of both revisions.
 *
 * @module
 */

import assert from "node:assert/strict";
import { makeAttackWorkspace } from "./attacks/stage.ts";
import { connect, type Connection } from "./kit/client.ts";
import { type Era, ERAS, type Message } from "./kit/json_rpc.ts";
import { TaskHttp } from "./kit/task_http.ts";
import { until } from "./kit/wait.ts";

type Json = Record<string, unknown>;

const SECRET = `sk-ant-${"a".repeat(40)}`;
const KINDS = ["legacy", "modern"] as const;
const OWN = { "2025-11-25": "legacy", "2026-07-28": "modern" } as const;
const EXTENSIONS = { extensions: { "io.modelcontextprotocol/tasks": {} } };
const ANY = { "~standard": { version: 1, vendor: "test", validate: (value: Json) => ({ value }) } };

interface Scene extends AsyncDisposable {
  readonly servers: Readonly<Record<typeof KINDS[number], TaskHttp>>;
  readonly far: TaskHttp;
  readonly connection: Connection;
  /** Adds a rule that denies a tool. */
  readonly deny: (rule: string) => Promise<void>;
  readonly ask: (method: string, params: Json) => Promise<Json>;
}

/** Connects a client to a PML with servers of both revisions. */
async function sceneOf(
  era: Era,
  { speaks = true, limits = {} }: { speaks?: boolean; limits?: Record<string, number> } = {},
): Promise<Scene> {
  await using stack = new AsyncDisposableStack();
  const legacy = stack.use(new TaskHttp("legacy"));
  const modern = stack.use(new TaskHttp("modern"));
  const servers = { legacy, modern };
  const mcpServers = Object.fromEntries(
    KINDS.map((kind) => [kind, { type: "http", url: servers[kind].url }]),
  );
  const permissions = { allow: KINDS.map((kind) => `${kind}:*`) };
  const ws = stack.use(
    await makeAttackWorkspace({ pml: { version: 1, permissions, mcpServers }, limits }),
  );
  const capabilities = speaks && era === "2026-07-28" ? EXTENSIONS : {};
  const connection = stack.use(await connect(ws, { era, capabilities }));
  const ask = async (method: string, params: Json) => {
    const { client, raw } = connection;
    if (era === "2025-11-25") return await client.request({ method, params }, ANY as never) as Json;
    // The SDK's client does not support tasks of this revision.
    const id = crypto.randomUUID();
    const { result, error } = await raw.begin(method, params, { id }).answer;
    assert.equal(error, undefined, JSON.stringify(error));
    return result as Json;
  };
  const deny = async (rule: string) => {
    const rules = { ...permissions, deny: [rule] };
    await Deno.writeTextFile(
      ws.file(".pml.json"),
      JSON.stringify({ version: 1, permissions: rules, mcpServers }),
    );
  };
  const all = stack.move();
  const dispose = () => all.disposeAsync();
  return { servers, far: servers[OWN[era]], connection, ask, deny, [Symbol.asyncDispose]: dispose };
}

/** Starts a task. Returns its id. */
async function begin({ ask }: Scene, era: Era): Promise<string> {
  const task = era === "2025-11-25" ? { task: { ttl: 60_000 } } : {};
  const name = `${OWN[era]}__slow`;
  const result = await ask("tools/call", { name, arguments: {}, ...task });
  const { status, taskId } = (era === "2025-11-25" ? result.task : result) as Json;
  assert.equal(status, "working", JSON.stringify(result));
  return String(taskId);
}

for (const era of ERAS) {
  const isOlder = era === "2025-11-25";

  Deno.test(`a task over HTTP is started, polled and read to its end, on ${era}`, async () => {
    await using scene = await sceneOf(era);
    const { ask, far } = scene;
    const taskId = await begin(scene, era);
    assert.equal((await ask("tasks/get", { taskId })).status, "working");
    const waiting = isOlder ? ask("tasks/result", { taskId }) : undefined;
    if (isOlder) await until(() => far.ledger.includes("tasks/result task-1"));
    await far.finish();
    const state = await ask("tasks/get", { taskId });
    assert.deepEqual([state.status, state.taskId], ["completed", taskId]);
    const result = (await waiting ?? state.result) as Json;
    assert.deepEqual([result.structuredContent, result["x/kept"]], [{ status: "completed" }, 1]);
    if (!isOlder) assert.equal(far.named.get("tasks/get"), "task-1");
  });

  Deno.test(`a task over HTTP is cancelled, on ${era}`, async () => {
    await using scene = await sceneOf(era);
    const { ask, far } = scene;
    const taskId = await begin(scene, era);
    await ask("tasks/cancel", { taskId });
    assert.ok(far.ledger.includes("tasks/cancel task-1"));
    assert.equal((await ask("tasks/get", { taskId })).status, "cancelled");
  });

  Deno.test(`PML waits for a task over HTTP where its client does not support tasks, on ${era}`, async () => {
    await using scene = await sceneOf(era, { speaks: false, limits: { call_ms: 3_000 } });
    const { ask, servers } = scene;
    for (const kind of KINDS) {
      const { structuredContent } = await ask("tools/call", {
        name: `${kind}__slow`,
        arguments: { done: true },
      });
      assert.deepEqual(structuredContent, { status: "completed" });
      const late = await ask("tools/call", { name: `${kind}__slow`, arguments: {} });
      assert.match(JSON.stringify(late), /TIMED_OUT/);
      await until(() => servers[kind].ledger.includes("tasks/cancel task-2"));
    }
  });

  Deno.test(`notifications of a task over HTTP reach only its client, on ${era}`, async () => {
    await using scene = await sceneOf(era);
    const { ask, far, connection: { raw } } = scene;
    const method = isOlder ? "notifications/tasks/status" : "notifications/tasks";
    const told = () => raw.messages.filter((one) => one.method === method).map((one) => one.params);
    const [taskId, other] = [await begin(scene, era), await begin(scene, era)];
    const listen = isOlder ? undefined : raw.begin("subscriptions/listen", {
      notifications: { taskIds: [taskId, "made-up"] },
    }, { id: "listens" });
    if (!isOlder) {
      await until(() => far.ledger.includes("listen task-1"));
      const isAck = (one: Message) => one.method === "notifications/subscriptions/acknowledged";
      await until(() => raw.messages.some(isAck));
      assert.deepEqual(raw.messages.find(isAck)?.params?.notifications, { taskIds: [taskId] });
    }
    // Notifications of unknown tasks are dropped, and keys in others are redacted.
    await far.tell("task-99");
    await far.tell("task-1", { statusMessage: `has ${SECRET}`, inputRequests: { a: {} } });
    await until(() => told().length > 0);
    assert.equal(told()[0]?.taskId, taskId);
    assert.doesNotMatch(
      JSON.stringify(told()),
      /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa|task-1|task-99/,
    );
    if (!isOlder) {
      const { _meta, inputRequests } = told()[0] as { _meta: Json; inputRequests: Json };
      assert.deepEqual(_meta, { "io.modelcontextprotocol/subscriptionId": "listens" });
      assert.deepEqual(inputRequests, {}, "what it asks is judged first");
    }
    await far.finish();
    await until(() => told().some((one) => one?.status === "completed" && one.taskId === taskId));
    if (isOlder) return;
    const { result } = told().at(-1) as { result: Json };
    assert.deepEqual(result.structuredContent, { status: "completed" });
    assert.ok(!told().some((one) => one?.taskId === other), "it did not listen for the other one");
    // After the end of a task no more notifications come.
    await until(() => far.ledger.includes("left task-1"));
    await raw.notify("notifications/cancelled", { requestId: "listens" });
    listen?.answer.catch(() => {});
    assert.equal((await ask("tasks/get", { taskId: other })).status, "completed");
  });
}

Deno.test("a client gets no notifications after it stops listening, or after its rules forbid the tool", async () => {
  await using scene = await sceneOf("2026-07-28");
  const { far, ask, connection: { raw } } = scene;
  const [one, two] = [await begin(scene, "2026-07-28"), await begin(scene, "2026-07-28")];
  const told = () => raw.messages.filter(({ method }) => method === "notifications/tasks");
  for (const [id, taskId] of [["first", one], ["second", two]] as const) {
    const notifications = { taskIds: [taskId] };
    raw.begin("subscriptions/listen", { notifications }, { id }).answer.catch(() => {});
  }
  await until(() => far.ledger.includes("listen task-1") && far.ledger.includes("listen task-2"));
  await raw.notify("notifications/cancelled", { requestId: "first" });
  await until(() => far.ledger.includes("left task-1"));
  await far.tell("task-1");
  await far.tell("task-2");
  await until(() => told().length > 0);
  assert.deepEqual(told().map(({ params }) => params?.taskId), [two]);
  await scene.deny("modern:slow");
  await until(async () =>
    (await ask("tasks/get", { taskId: two }).catch(() => undefined)) === undefined
  );
  await far.tell("task-2");
  await far.finish();
  // The server's notification of the end comes on another stream, before these requests are
  // answered.
  for (let at = 0; at < 30; at++) await ask("tasks/get", { taskId: one }).catch(() => undefined);
  await ask("tasks/cancel", { taskId: one });
  assert.equal(told().length, 1);
});

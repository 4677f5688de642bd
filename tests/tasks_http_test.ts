/**
 * Tasks of servers over HTTP, for real clients of both eras.
 *
 * @module
 */

import assert from "node:assert/strict";
import { makeScenery } from "./attacks/stage.ts";
import { connect, type Connection } from "./kit/client.ts";
import { type Era, ERAS } from "./kit/json_rpc.ts";
import { TaskHttp } from "./kit/task_http.ts";
import { until } from "./kit/wait.ts";

type Json = Record<string, unknown>;

const KINDS = ["legacy", "modern"] as const;
const OWN = { "2025-11-25": "legacy", "2026-07-28": "modern" } as const;
const EXTENSIONS = { extensions: { "io.modelcontextprotocol/tasks": {} } };
const ANY = { "~standard": { version: 1, vendor: "test", validate: (value: Json) => ({ value }) } };

interface Scene extends AsyncDisposable {
  readonly servers: Readonly<Record<typeof KINDS[number], TaskHttp>>;
  readonly far: TaskHttp;
  readonly connection: Connection;
  readonly ask: (method: string, params: Json) => Promise<Json>;
}

/** Connects a client to a PML with servers of both eras. */
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
  const ws = stack.use(await makeScenery({ pml: { version: 1, permissions, mcpServers }, limits }));
  const capabilities = speaks && era === "2026-07-28" ? EXTENSIONS : {};
  const connection = stack.use(await connect(ws, { era, capabilities }));
  const ask = async (method: string, params: Json) => {
    const { client, raw } = connection;
    if (era === "2025-11-25") return await client.request({ method, params }, ANY as never) as Json;
    // The client of the SDK knows no tasks of this revision.
    const id = crypto.randomUUID();
    const { result, error } = await raw.begin(method, params, { id }).answer;
    assert.equal(error, undefined, JSON.stringify(error));
    return result as Json;
  };
  const all = stack.move();
  const dispose = () => all.disposeAsync();
  return { servers, far: servers[OWN[era]], connection, ask, [Symbol.asyncDispose]: dispose };
}

/** Begins a task, and gives its id. */
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

  Deno.test(`A task over HTTP is begun, polled and read to its end, on ${era}`, async () => {
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

  Deno.test(`A task over HTTP is cancelled, on ${era}`, async () => {
    await using scene = await sceneOf(era);
    const { ask, far } = scene;
    const taskId = await begin(scene, era);
    await ask("tasks/cancel", { taskId });
    assert.ok(far.ledger.includes("tasks/cancel task-1"));
    assert.equal((await ask("tasks/get", { taskId })).status, "cancelled");
  });

  Deno.test(`PML waits for a task over HTTP where its client knows none, on ${era}`, async () => {
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
}

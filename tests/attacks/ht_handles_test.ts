/**
 * Clients of one `pml serve` that try to use the objects of another client: its questions,
 * handles, answers, subscriptions, tasks, streams and sessions.
 *
 * @module
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { DoorClient, type DoorClientOptions } from "../kit/door_client.ts";
import { FullHttp } from "../kit/full_http.ts";
import type { Message } from "../kit/json_rpc.ts";
import { servePml, type TestServer } from "../kit/pml_serve.ts";
import { TaskHttp } from "../kit/task_http.ts";
import { until } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import { textOf } from "./oracles.ts";
import { picked, read } from "./questions.ts";
import { makeAttackWorkspace } from "./stage.ts";

const NEWEST = "2026-07-28";
const TASKS = { "io.modelcontextprotocol/tasks": {} };
const ABLE = { elicitation: { form: {} }, extensions: TASKS };
/** The token of another identity, with the permissions of the user. */
const OTHER = "token-of-another-0001";
const URI = "pml://full/test://a";

/** Connections to one `pml serve`. */
interface Scene extends AsyncDisposable {
  readonly ws: Workspace;
  readonly served: TestServer;
  readonly full: FullHttp;
  readonly tasks: Readonly<Record<"older" | "newer", TaskHttp>>;
  /** Connects a client. */
  readonly connect: (options?: DoorClientOptions) => Promise<DoorClient>;
}

async function sceneOf(): Promise<Scene> {
  await using stack = new AsyncDisposableStack();
  const full = stack.use(new FullHttp("legacy"));
  const tasks = {
    older: stack.use(new TaskHttp("legacy")),
    newer: stack.use(new TaskHttp("modern")),
  };
  const urls = { full: full.url, older: tasks.older.url, newer: tasks.newer.url };
  const allow = ["filesystem:read_file", ...Object.keys(urls).map((name) => `${name}:*`)];
  const ws = stack.use(
    await makeAttackWorkspace({
      files: { "canary.txt": "canary of the one" },
      pml: {
        version: 1,
        permissions: { allow, ask: ["filesystem:write_file"] },
        mcpServers: Object.fromEntries(
          Object.entries(urls).map(([name, url]) => [name, { type: "http", url }]),
        ),
      },
    }),
  );
  const token = createHash("sha256").update(OTHER).digest("hex");
  const identities = { other: { token, permissions: { allow } } };
  await Deno.writeTextFile(`${ws.home}/config.yaml`, JSON.stringify({ identities }));
  const served = stack.use(await servePml(ws));
  const all = stack.move();
  const connect = async (options: DoorClientOptions = {}) =>
    all.use(await DoorClient.open(served, { capabilities: ABLE, ...options }));
  return { ws, served, full, tasks, connect, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

function write(path: string) {
  const args = { path, content: path };
  return { name: "call", arguments: { tool: "filesystem:write_file", arguments: args } };
}

function call(tool: string, args: object = {}) {
  return { name: "call", arguments: { tool, arguments: args } };
}

const isQuestion = ({ method }: Message) => method === "elicitation/create";
const isAnswer = ({ method }: Message) => method === undefined;

async function isThere(ws: Workspace, path: string): Promise<boolean> {
  return await Deno.stat(ws.file(path)).then(() => true, () => false);
}

Deno.test("an answer from another session answers no question, with any id (HT17)", async () => {
  await using scene = await sceneOf();
  const { ws, connect } = scene;
  const [one, two, other] = [
    await connect(),
    await connect(),
    await connect({ token: OTHER }),
  ];
  const newest = await connect({ era: NEWEST });
  const asked = await one.begin("tools/call", write("one.txt"));
  const { id } = await asked.message(isQuestion);
  await read();
  const yes = { id, result: picked("Yes") };
  for (const thief of [two, other, newest]) await (await thief.send(yes as never)).over;
  // Now the second session has its own question.
  const also = await two.begin("tools/call", write("two.txt"));
  const { id: own } = await also.message(isQuestion);
  assert.notEqual(own, id);
  await read();
  await (await two.send(yes as never)).over;
  assert.ok(!also.messages.some(isAnswer), "the second question was answered");
  await (await two.send({ ...yes, id: own } as never)).over;
  assert.match(textOf(await also.message(isAnswer)), /two\.txt/);
  assert.ok(await isThere(ws, "two.txt"));
  assert.ok(!asked.messages.some(isAnswer), "the first question was answered");
  await (await one.send({ id, result: picked("No") } as never)).over;
  assert.match(textOf(await asked.message(isAnswer)), /answered no/);
  assert.ok(!await isThere(ws, "one.txt"));
});

Deno.test("the handle of a question does nothing for another client, and still works for its own (HT17)", async () => {
  await using scene = await sceneOf();
  const { ws, full, connect } = scene;
  const owner = await connect({ era: NEWEST });
  const thieves = [
    await connect({ capabilities: {} }),
    await connect({ era: NEWEST, token: OTHER }),
    await connect({ token: OTHER, capabilities: {} }),
  ];
  // PML's own question, and one of a server in the middle of its call.
  const named = call("full:ask_name");
  const kinds = [
    ["approval", write("kept.txt"), picked("Yes")],
    ["one", named, { action: "accept", content: { name: "of the owner" } }],
  ] as const;
  for (const [kind, params, said] of kinds) {
    const first = await owner.request("tools/call", params);
    const [[key = ""] = []] = Object.entries(first.result?.inputRequests ?? {});
    if (kind === "approval") assert.equal(key, kind);
    const stolen = { action: "accept", content: { answer: "Yes", name: "of the thief" } };
    const handle = { requestState: first.result?.requestState };
    await read();
    for (const thief of thieves) {
      const tried = await thief.request("tools/call", {
        ...params,
        ...handle,
        inputResponses: { [key]: stolen },
      });
      assert.doesNotMatch(JSON.stringify(tried), /Wrote|of the thief/);
    }
    assert.ok(!await isThere(ws, "kept.txt") || kind !== "approval", "nothing was written");
    const done = await owner.request("tools/call", {
      ...params,
      ...handle,
      inputResponses: { [key]: said },
    });
    assert.match(JSON.stringify(done), kind === "approval" ? /kept\.txt/ : /of the owner/);
  }
  assert.ok(await isThere(ws, "kept.txt"));
  assert.doesNotMatch(full.ledger.join(), /thief/);
});

Deno.test("no client ends or receives the subscription of another (HT17)", async () => {
  await using scene = await sceneOf();
  const { full, connect } = scene;
  const [one, two, other] = [await connect(), await connect(), await connect({ token: OTHER })];
  const newest = [await connect({ era: NEWEST }), await connect({ era: NEWEST })] as const;
  await one.request("resources/subscribe", { uri: URI });
  const streams = [await one.listen(), await two.listen(), await other.listen()] as const;
  const wanted = { notifications: { resourceSubscriptions: [URI] } };
  const followed = await newest[0].begin("subscriptions/listen", wanted);
  // The same id, without filters.
  const idle = await newest[1].begin("subscriptions/listen", {
    notifications: { promptsListChanged: true },
  });
  for (const stream of [followed, idle]) await stream.message(({ method }) => method !== undefined);
  for (const thief of [two, other]) await thief.request("resources/unsubscribe", { uri: URI });
  const cancel = { method: "notifications/cancelled", params: { requestId: 1 } };
  for (const thief of [newest[1], two]) await (await thief.send(cancel)).over;
  await two[Symbol.asyncDispose]();
  const updates = (at: { readonly messages: readonly Message[] }) =>
    at.messages.filter(({ method }) => method === "notifications/resources/updated").length;
  await until(async () => {
    await newest[0].request("tools/call", call("full:touch"));
    return updates(streams[0]) > 0 && updates(followed) > 0;
  });
  assert.deepEqual([updates(streams[1]), updates(streams[2]), updates(idle)], [0, 0, 0]);
  assert.ok(!full.ledger.some((line) => line.startsWith("resources/unsubscribe")));
  for (const reading of [...streams, followed, idle]) await reading[Symbol.asyncDispose]();
});

Deno.test("the events of a session reach only that session, even if others send its ids (HT17)", async () => {
  await using scene = await sceneOf();
  const { connect } = scene;
  const [one, two, other] = [await connect(), await connect(), await connect({ token: OTHER })];
  const said = await one.begin(
    "tools/call",
    call("filesystem:read_file", { path: "canary.txt" }),
  );
  await said.over;
  assert.match(said.text, /canary of the one/);
  assert.ok(said.ids.length > 0, "its events have ids");
  for (const thief of [two, other]) {
    for (const id of [...said.ids, "0", "1", "-1", "1 ", "1e0", "../1"]) {
      await using again = await thief.listen(id);
      // Its own event may have that id. Then its stream is open and has no further events.
      if (again.status === 200) await thief.request("ping");
      else assert.equal(again.status, 400, id);
      assert.doesNotMatch(again.text, /canary/);
    }
  }
  await using again = await one.listen(said.ids[0]);
  await again.message(isAnswer);
  assert.match(again.text, /canary of the one/);
});

Deno.test("no client sends in, reads, or ends the session of another (HT17)", async () => {
  await using scene = await sceneOf();
  const { connect } = scene;
  const [one, two] = [await connect(), await connect()];
  const other = await connect({ token: OTHER });
  const id = one.session["mcp-session-id"] ?? "";
  const guesses = [id.toUpperCase(), id.slice(0, -1), `${id}0`, id.replaceAll("-", ""), "*", "0"];
  const attempts: (readonly [DoorClient, string])[] = [
    [other, id],
    ...guesses.map((guess) => [two, guess] as const),
  ];
  for (const [thief, session] of attempts) {
    const headers = { "mcp-session-id": session };
    const ping = { id: 1, method: "ping" } as const;
    const statuses = [
      (await thief.send(ping, headers)).status,
      (await thief.fetch({ headers })).status,
      (await thief.fetch({ method: "DELETE", headers })).status,
    ];
    assert.deepEqual(statuses, [404, 404, 404], session);
  }
  await two[Symbol.asyncDispose]();
  assert.deepEqual((await one.request("ping")).result, {});
  assert.deepEqual((await other.request("ping")).result, {});
});

Deno.test("a task is reported to, shown to and cancelled by only the client that began it (HT17)", async () => {
  await using scene = await sceneOf();
  const { tasks, connect } = scene;
  const older = await connect();
  const newer = await connect({ era: NEWEST });
  const thieves = [
    await connect(),
    await connect({ token: OTHER }),
    await connect({ era: NEWEST, token: OTHER }),
  ];
  const begun = await older.request("tools/call", {
    name: "older__slow",
    arguments: {},
    task: { ttl: 60_000 },
  });
  const began = await newer.request("tools/call", { name: "newer__slow", arguments: {} });
  const ids = [begun.result?.task?.taskId, began.result?.taskId].map(String);
  assert.ok(ids.every((id) => id !== "undefined"), JSON.stringify([begun, began]));
  const [first = "", second = ""] = ids;
  for (const thief of [...thieves, newer]) {
    for (const method of ["tasks/get", "tasks/result", "tasks/cancel"]) {
      const { error } = await thief.request(method, { taskId: first });
      assert.ok(error !== undefined, `${method} of another`);
    }
  }
  for (const thief of [...thieves, older]) {
    const { error } = await thief.request("tasks/get", { taskId: second });
    assert.ok(error !== undefined);
  }
  const [peer] = thieves;
  assert.deepEqual((await peer?.request("tasks/list"))?.result?.tasks, []);
  assert.ok(!tasks.older.ledger.some((line) => line.startsWith("tasks/cancel")));
  const spy = await connect({ era: NEWEST, token: OTHER });
  const listen = { notifications: { taskIds: ids } };
  const heard = await spy.begin("subscriptions/listen", listen);
  const own = await newer.begin("subscriptions/listen", listen);
  const peerStream = await peer?.listen();
  const ownStream = await older.listen();
  const isHeard = ({ method }: Message) => method === "notifications/subscriptions/acknowledged";
  assert.deepEqual((await heard.message(isHeard)).params?.notifications, {});
  assert.deepEqual((await own.message(isHeard)).params?.notifications, { taskIds: [second] });
  await until(() => tasks.newer.ledger.includes("listen task-1"));
  await tasks.older.finish();
  await tasks.newer.finish();
  const isTold = ({ method }: Message) => method?.startsWith("notifications/tasks") === true;
  assert.equal((await own.message(isTold)).params?.taskId, second);
  assert.equal((await ownStream.message(isTold)).params?.taskId, first);
  await spy.request("tools/list");
  assert.deepEqual(tasks.older.ledger.filter((line) => /subscribe|listen/.test(line)), []);
  assert.deepEqual([heard, peerStream].map((one) => one?.messages.some(isTold)), [false, false]);
  for (const one of [heard, own, ownStream, peerStream]) await one?.[Symbol.asyncDispose]();
});

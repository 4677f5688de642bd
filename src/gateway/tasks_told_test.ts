import assert from "node:assert/strict";
import type { Server } from "@modelcontextprotocol/server";
import { Log } from "../audit/log.ts";
import { Redactor } from "../audit/redact.ts";
import { type Call, NO_CLIENT, textResult } from "../protocol/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import type { JsonObject } from "../core/json.ts";
import { toolId } from "../core/tool_id.ts";
import { TASKS_EXTENSION } from "../protocol/extension_methods.ts";
import type { Verdict } from "../protocol/verdict.ts";
import { type Client, Clients } from "./_clients.ts";
import type { ForwardedRequests } from "./_forwarded_requests.ts";
import { Tasks } from "./_tasks.ts";
import type { ClientRequest } from "./interaction/request_client.ts";

/** Returns a connection that stores its notifications. */
function connection(told: JsonObject[]): Server {
  const notification = ({ params }: { readonly params: JsonObject }) => {
    told.push(params);
    return Promise.resolve();
  };
  return { notification } as unknown as Server; // nothing else of it is used
}

function callBy(client: Client, tasks: Tasks): Call {
  const request = { client, params: { task: {} }, capabilities: {} };
  return {
    id: toolId("far", "slow"),
    arguments: {},
    via: "tools/call",
    actor: "local",
    cancellation: new Cancellation(),
    client: NO_CLIENT,
    callId: crypto.randomUUID(),
    // Nothing else of a request identifies its client.
    ...tasks.taskOptions(request as unknown as ClientRequest),
  };
}

/** Returns tasks that ask `requests` alone, and whose tool the rules judge like `kindNow`. */
function newTasks(requests: object = {}, kindNow: () => Verdict["kind"] = () => "allow"): Tasks {
  const host = {
    judge: () => ({ kind: kindNow(), rule: "*", source: "defaults" }),
    unfollow: never,
    log: new Log(new Redactor(), "debug", never),
  };
  const interaction = { prefix: "", serverInputFrom: never };
  return new Tasks(host, interaction, requests as ForwardedRequests); // other members are not used
}

function never(): never {
  assert.fail("nothing was to be asked");
}

Deno.test("notifications of a task reach only the client that began it", () => {
  const tasks = newTasks();
  const clients = new Clients(assert.fail);
  const all = ["task-1", "task-2", "task-3"].map((taskId) => {
    const told: JsonObject[] = [];
    return { taskId, told, client: clients.add(connection(told), false) };
  });
  for (const { taskId, client } of all) {
    const result = { ...textResult(""), task: { taskId, status: "working" } };
    tasks.begin(callBy(client, tasks), {
      kind: "result",
      result: result as never,
      task: "working",
    });
  }
  const tell = (taskId: string) => {
    const said = tasks.update("far", { taskId, status: "completed" });
    if (said !== undefined) clients.notifyTaskChanged(said);
  };
  for (const [at, { taskId }] of all.entries()) {
    tell(taskId);
    assert.deepEqual(
      all.map(({ told }) => told.length),
      all.map((_, other) => Number(other <= at)),
    );
  }
  const names = all.map(({ told }) => told[0]?.taskId);
  assert.equal(new Set([...names, ...all.map(({ taskId }) => taskId)]).size, 6, "each has its own");
  tell("task-4");
  assert.equal(tasks.update("near", { taskId: "task-1" }), undefined, "it is another server's");
  const [gone] = all;
  if (gone !== undefined) clients.remove(gone.client);
  tell("task-1");
  assert.deepEqual(all.map(({ told }) => told.length), [1, 1, 1]);
});

Deno.test("a list of many tasks has pages, and requests the state of each task once", async () => {
  const asked: unknown[] = [];
  const requests = {
    send: (_: ClientRequest, { params }: { readonly params: JsonObject }) => {
      asked.push(params.taskId);
      return Promise.resolve({ taskId: params.taskId, status: "working" });
    },
  };
  const tasks = newTasks(requests);
  const client = new Clients(assert.fail).add(connection([]), false);
  const begin = (taskId: string) =>
    tasks.begin(callBy(client, tasks), {
      kind: "result",
      result: { ...textResult(""), task: { taskId, status: "working" } } as never,
      task: "working",
    });
  const ids = Array.from({ length: 1_500 }, (_, at) => `task-${at}`);
  ids.forEach(begin);
  const list = (params: JsonObject) => {
    const cancellation = new Cancellation();
    const context = { method: "tasks/list", cancellation, id: 1, idText: "1" };
    return tasks.serve({ client, context, params } as unknown as ClientRequest);
  };
  const { tasks: first, nextCursor = "" } = await list({});
  begin("task-1500");
  const { tasks: rest, ...last } = await list({ cursor: nextCursor });
  assert.deepEqual([first, rest].map((one) => (one as unknown[]).length), [1_000, 501]);
  assert.deepEqual(asked, [...ids, "task-1500"]);
  assert.deepEqual(last, {});
});

Deno.test("a task belongs to its owner, whose clients may live for one request", () => {
  const tasks = newTasks();
  const clients = new Clients(assert.fail);
  const owner = {};
  const [one, next] = [1, 2].map(() => clients.add(connection([]), true, owner));
  const stranger = clients.add(connection([]), true, {});
  assert.ok(one !== undefined && next !== undefined);
  const request = { client: one, capabilities: { extensions: { [TASKS_EXTENSION]: {} } } };
  const call = { ...callBy(one, tasks), ...tasks.taskOptions(request as unknown as ClientRequest) };
  const state = { ...textResult(""), resultType: "task", taskId: "there", status: "working" };
  const begun = tasks.begin(call, { kind: "result", result: state as never, task: "working" });
  assert.ok(begun.kind === "result");
  const own = String(begun.result.taskId);
  const place = { server: "far", id: "there" };
  assert.deepEqual([one, next].map((client) => tasks.placeOf(own, client)), [place, place]);
  assert.equal(tasks.placeOf(own, stranger), undefined);
});

Deno.test("a notification of a task whose tool the rules deny now reaches no client", () => {
  let kind: Verdict["kind"] = "allow";
  const tasks = newTasks({}, () => kind);
  const client = new Clients(assert.fail).add(connection([]), false);
  const state = { taskId: "there", status: "working" };
  const result = { ...textResult(""), task: state };
  const outcome = { kind: "result", result: result as never, task: "working" } as const;
  tasks.begin(callBy(client, tasks), outcome);
  assert.equal(tasks.update("far", state)?.client, client);
  kind = "deny";
  assert.equal(tasks.update("far", state), undefined);
});

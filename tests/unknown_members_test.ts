/**
 * Members that PML does not know, in the params and results of known methods: they reach the other
 * side in both directions, whatever the revisions and the transports are.
 *
 * @module
 */

import assert from "node:assert/strict";
import { BothHttp } from "./kit/both_server.ts";
import { makeAttackWorkspace } from "./attacks/stage.ts";
import { ERAS, type Json, type Message, paramsFor } from "./kit/json_rpc.ts";
import { EXTENSION, MORE, serveMembers, TOLD, WITHDRAWN } from "./kit/members_server.ts";
import { denoServer } from "./kit/pml_command.ts";
import { RawStdio, WAYS } from "./kit/raw_stdio.ts";
import { until } from "./kit/wait.ts";

const SENT = { "x/sent": { c: [null] }, soon: 1 };
const META = { "x/mine": { d: 1 } };
const CAPABILITIES = {
  ...{ elicitation: { form: {} }, sampling: {} },
  extensions: { [EXTENSION]: {} },
};
const ANSWERS: Readonly<Record<string, Json>> = {
  "elicitation/create": { action: "accept", content: {}, ...SENT } as unknown as Json,
  "sampling/createMessage": {
    role: "assistant",
    model: "m",
    content: { type: "text", text: "Hi" },
    ...SENT,
  } as unknown as Json,
};
const REQUESTS = [
  ["tools/call", { name: "m__echo", arguments: {} }],
  ["prompts/get", { name: "m__greet" }],
  ["resources/read", { uri: "pml://m/test://a" }],
  ["completion/complete", { ref: { type: "ref/prompt", name: "m__greet" }, argument: {} }],
] as const;
const LISTS = [
  ["tools/list", "tools"],
  ["prompts/list", "prompts"],
  ["resources/list", "resources"],
  ["resources/templates/list", "resourceTemplates"],
] as const;

/** The notifications that `tell` sends. */
const NOTIFICATIONS = [
  "notifications/progress",
  "notifications/message",
  TOLD,
  "notifications/prompts/list_changed",
  "notifications/resources/updated",
];
const TELL_META = { progressToken: "p", "io.modelcontextprotocol/logLevel": "debug" };
const LISTEN = {
  notifications: { promptsListChanged: true, resourceSubscriptions: ["pml://m/test://a"] },
};

function assertKept(value: unknown, what: string): void {
  const { "x/kept": kept, later, _meta } = value as Json;
  assert.deepEqual({ "x/kept": kept, later }, MORE, what);
  assert.deepEqual(_meta?.["x/meta"], { b: 1 }, what);
}

/** Members next to `params` or `result`. */
const NEXT = { "x/next": { e: [null, 1] }, priority: "high" };
/** Members that do not pass: they could change how a message is read, or are null. */
const FORGED = JSON.parse(
  '{"__proto__":{"x":1},"Params":{},"METHOD":"a","ID":9,"Result":1,"param\u017f":3,"absent":null}',
);
const next = { ...FORGED, ...NEXT };

function nextTo(message: object): Json {
  const { jsonrpc: _, id: _i, method: _m, params: _p, result: _r, ...members } = message as Json;
  return members;
}

/** Opens a client of a PML with the server. */
async function opened(
  { era, door }: Pick<typeof WAYS[number], "era" | "door">,
  { isModern, over, answersNot = false }: {
    readonly isModern: boolean;
    readonly over: "stdio" | "http";
    readonly answersNot?: boolean;
  },
) {
  const http = over === "http" ? serveMembers(isModern) : undefined;
  const m = http === undefined
    ? denoServer("tests/kit/members_server.ts", ...isModern ? ["--modern"] : [])
    : { type: "http", url: http.url };
  const ws = await makeAttackWorkspace({
    limits: { first_list_ms: 60_000 },
    pml: {
      version: 1,
      gateway: { tools_exposure: "full_proxy" },
      permissions: { allow: ["m:*"] },
      mcpServers: { m },
    },
  });
  const asked: Json[] = [];
  const pml = new RawStdio(ws, {
    era,
    door,
    capabilities: CAPABILITIES,
    ...!answersNot && {
      answer: (method, params) => {
        asked.push(params as Json);
        return ANSWERS[method] ?? assert.fail(method);
      },
    },
  });
  await pml.open();
  return {
    pml,
    asked,
    [Symbol.asyncDispose]: async () => {
      await pml[Symbol.asyncDispose]();
      await ws[Symbol.asyncDispose]();
      await http?.[Symbol.asyncDispose]();
    },
  };
}

/** Listens, and returns when that is acknowledged. */
async function listening(pml: RawStdio, next = {}): Promise<void> {
  const is = ({ method }: Message) => method === "notifications/subscriptions/acknowledged";
  const count = () => pml.messages.filter(is).length;
  const before = count();
  pml.begin("subscriptions/listen", LISTEN, { next });
  await until(() => count() > before);
}

/** Calls `tell` until a message has come: a resource may be followed later than acknowledged. */
async function notified(pml: RawStdio, is: (message: Message) => boolean, next = {}) {
  await until(async () => {
    if (pml.messages.some(is)) return true;
    const tell = { name: "m__tell", arguments: {}, _meta: TELL_META };
    await pml.request("tools/call", tell, { next });
    return false;
  });
  return pml.messages.find(is) ?? assert.fail();
}

/** Asserts that members next to `params` and `result` pass once the client has sent some. */
async function assertPassNext(pml: RawStdio, door: string): Promise<void> {
  // A client that has sent no such members may ignore a message that has them.
  for (const message of pml.messages) assert.deepEqual(nextTo(message), {});
  if (door === "stdio") await until(() => pml.stderr.includes('"x/kept", "later"'));
  for (const [method, params] of REQUESTS) {
    const answer = await pml.request(method, params, { next });
    assert.deepEqual(nextTo(answer), MORE, method);
    assert.deepEqual(answer.result?.next, NEXT, method);
  }
  if (pml.era === "2026-07-28") await listening(pml, next);
  for (const method of NOTIFICATIONS) {
    // The copies for an earlier subscription of the client have no such members.
    const has = (message: Message) =>
      message.method === method && JSON.stringify(nextTo(message)) === JSON.stringify(MORE);
    await notified(pml, has, next);
  }
  await pml.sendJson({
    ...{ ...next, jsonrpc: "2.0", method: TOLD },
    params: paramsFor(pml.era, { second: 1 }, CAPABILITIES),
  });
  await until(async () => (await heardBy(pml)).length > 1);
  assert.deepEqual((await heardBy(pml))[1]?.next, NEXT);
}

/** Returns the notifications of its extension that the server got. */
async function heardBy(pml: RawStdio): Promise<readonly Json[]> {
  return (await pml.callTool("m__heard")).result?.heard as unknown as readonly Json[];
}

for (const way of WAYS) {
  for (const isModern of [false, true]) {
    for (const over of ["stdio", "http"] as const) {
      const behind = `${isModern ? "2026-07-28" : "2025-11-25"} over ${over}`;
      Deno.test(`unknown members survive between a client, ${way.on}, and a server, ${behind}`, async () => {
        await using scene = await opened(way, { isModern, over });
        const { pml, asked } = scene;
        const listed = async (method: string, key: string) => {
          const { result } = await pml.request(method, SENT);
          const items = (result?.[key] ?? []) as unknown as readonly Json[];
          return items.filter(({ later }) => later !== undefined);
        };
        for (const [method, key] of LISTS) {
          await until(async () => (await listed(method, key)).length > 0);
          assertKept((await listed(method, key))[0], method);
        }
        for (const [method, params] of REQUESTS) {
          const message = { method, params: { ...params, ...SENT, _meta: META } };
          const { result } = await pml.request(method, message.params);
          assertKept(result, method);
          const { "x/sent": sent, soon, _meta } = result?.got as Json;
          assert.deepEqual({ "x/sent": sent, soon }, SENT, method);
          assert.deepEqual(_meta?.["x/mine"], META["x/mine"], method);
        }
        for (const { result } of pml.messages) {
          const { name = "" } =
            (result?._meta?.["io.modelcontextprotocol/serverInfo"] ?? {}) as Json;
          assert.equal(name, way.era === "2026-07-28" && result !== undefined ? "pml" : "");
        }
        for (const name of ["m__elicit", "m__sample"]) {
          const { result } = await pml.callTool(name);
          assertKept(result, name);
          assertKept(asked.at(-1), name);
          const { "x/sent": sent, soon } = result?.answer as Json;
          assert.deepEqual({ "x/sent": sent, soon }, SENT, name);
        }
        if (way.era === "2025-11-25") {
          await pml.request("logging/setLevel", { level: "debug" });
          await pml.request("resources/subscribe", { uri: "pml://m/test://a" });
        } else await listening(pml);
        for (const name of NOTIFICATIONS) {
          // PML also reports the first lists that it has read.
          const is = ({ method, params }: Message) =>
            method === name && params?.later !== undefined;
          assertKept((await notified(pml, is)).params, name);
        }
        await pml.notify(TOLD, { ...SENT, _meta: META });
        await until(async () => (await heardBy(pml)).length > 0);
        const [{ _meta: told, ...params } = {}] = await heardBy(pml);
        const { next: none, ...others } = params;
        assert.deepEqual({ others, none }, { others: SENT, none: {} });
        assert.deepEqual(told?.["x/mine"], META["x/mine"]);
        await assertPassNext(pml, way.door);
      });
    }
  }
}

for (const way of WAYS) {
  for (const over of ["stdio", "http"] as const) {
    Deno.test(`the reason of a cancellation passes between a client, ${way.on}, and a server over ${over}`, async () => {
      await using scene = await opened(way, { isModern: false, over, answersNot: true });
      const { pml } = scene;
      const { id } = pml.begin("tools/call", { name: "m__wait", arguments: {} });
      const heard = async () => (await pml.callTool("m__heard")).result;
      await until(async () => (await heard())?.waits as unknown === 1);
      // With 2026-07-28, closing the stream of a request over HTTP cancels it, without a reason.
      const canGiveReason = way.door === "stdio" || way.era === "2025-11-25";
      if (canGiveReason) {
        await pml.notify("notifications/cancelled", { requestId: id, reason: "changed my mind" });
        const cancelled = async () => (await heard())?.cancelled as unknown as readonly Json[];
        await until(async () => (await cancelled()).length > 0);
        const [{ reason } = {}] = await cancelled();
        assert.equal(reason, "changed my mind");
      }
      if (way.era === "2026-07-28") return;
      await pml.callTool("m__withdraw");
      const is = ({ method }: Message) => method === "notifications/cancelled";
      await until(() => pml.messages.some(is));
      assert.equal(pml.messages.find(is)?.params?.reason, WITHDRAWN);
    });
  }
}

/** Returns whether a message asks the user. */
function isQuestion({ method }: Message): boolean {
  return method === "elicitation/create";
}

for (const isModern of [false, true]) {
  const server = isModern ? "2026-07-28" : "2025-11-25";
  Deno.test(`members next to the params of a question and its result survive, from a server, ${server}`, async () => {
    const way = { era: "2025-11-25", door: "stdio" } as const;
    await using scene = await opened(way, { isModern, over: "stdio", answersNot: true });
    const { pml } = scene;
    const { answer } = pml.begin("tools/call", { name: "m__elicit", arguments: {} }, { next });
    await until(() => pml.messages.some(isQuestion));
    const question = pml.messages.find(isQuestion);
    assert.deepEqual(nextTo(question ?? {}), MORE);
    const result = ANSWERS["elicitation/create"];
    await pml.sendJson({ ...next, jsonrpc: "2.0", id: question?.id, result });
    // In 2026-07-28, the answer is a part of the params of the next request.
    const wanted = isModern ? undefined : NEXT;
    assert.deepEqual((await answer).result?.answeredNext, wanted);
  });
}

for (const over of ["stdio", "http"] as const) {
  Deno.test(`a server of the SDK answers a request with members next to its params, over ${over}`, async () => {
    const http = over === "http" ? new BothHttp() : undefined;
    const b = http === undefined
      ? denoServer("tests/kit/both_server.ts", "./ledger")
      : { type: "http", url: http.url };
    await using ws = await makeAttackWorkspace({
      pml: { version: 1, permissions: { allow: ["b:*"] }, mcpServers: { b } },
    });
    for (const era of ERAS) {
      await using pml = new RawStdio(ws, { era });
      await pml.open();
      const call = { name: "b__log", arguments: {} };
      for (let count = 0; count < 2; count++) {
        const answer = await pml.request("tools/call", call, { next });
        assert.deepEqual(answer.result?.isError ?? false, false, JSON.stringify(answer));
      }
      await until(() => pml.stderr.includes('"x/next"'));
      await pml.close();
    }
    await http?.[Symbol.asyncDispose]();
  });
}

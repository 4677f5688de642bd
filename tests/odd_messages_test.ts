/**
 * Requests of odd shapes: each has one answer, under its own id.
 *
 * @module
 */

import assert from "node:assert/strict";
import { parseExact } from "../src/core/exact_json.ts";
import { makeAttackWorkspace, makeScene } from "./attacks/stage.ts";
import { type Era, paramsFor } from "./kit/json_rpc.ts";
import { servePml } from "./kit/pml_serve.ts";
import { RawStdio, WAYS } from "./kit/raw_stdio.ts";
import { serveScene } from "./serve_scene.ts";
import { until } from "./kit/wait.ts";

/** The members of a request that differ from those of a plain `tools/list`. */
type Shape = Readonly<Record<string, unknown>>;

const call = (members: object) => ({
  method: "tools/call",
  params: { name: "filesystem__read_file", arguments: { path: "good.txt" }, ...members },
});
const meta = (members: unknown) => ({ params: { _meta: members } });

const SHAPES: readonly Shape[] = [
  ...[null, [], "x", 5, true].map((params) => ({ params })),
  ...[null, [], "x", 5].map((params) => ({ method: "ping", params })),
  ...[null, [], "x", 5].map(meta),
  ...[null, {}, 1.5, true, 2 ** 53].map((progressToken) => meta({ progressToken })),
  { extra: { a: 1 } },
  { params: { extra: null } },
  { result: {} },
  { error: { code: 1, message: "m" } },
  ...[5, null, {}].map((cursor) => ({ params: { cursor } })),
  ...[5, null, "", "no/such", "rpc.x"].map((method) => ({ method })),
  { method: "no/such", params: { _meta: { progressToken: null } } },
  ...[5, null, {}].map((name) => call({ name })),
  ...[null, [], "x", 5].map((given) => call({ arguments: given })),
  ...[5, null, { ttl: "x" }].map((task) => call({ task })),
  call({ inputResponses: 1, requestState: 1 }),
  call({ extra: 1 }),
  ...["prompts/get", "resources/read", "completion/complete", "logging/setLevel", "tasks/get"]
    .flatMap((method) => [{ method, params: {} }, { method, params: { name: 1, uri: 1, ref: 1 } }]),
  { method: "subscriptions/listen", params: { notifications: 5 } },
  { method: "resources/subscribe", params: { uri: null } },
  { method: "initialize", params: { protocolVersion: 5 } },
];

const IDS = [
  "9007199254740993",
  "-9007199254740993",
  "725653563933458432725653563933458432",
  "1.0",
  "0",
  "-5",
  '"9007199254740993"',
  '""',
  '"\u2603 \\" \\\\"',
  JSON.stringify("x".repeat(5_000)),
];

/** Methods that are handled in different ways. */
const METHODS = ["tools/list", "ping", "no/such", "tasks/get"];

/** Returns the text of a request. The envelope of the newest revision is added where it fits. */
function requestText(era: Era, id: string, { method = "tools/list", ...shape }: Shape): string {
  const { params = {} } = shape;
  const isObject = typeof params === "object" && params !== null && !Array.isArray(params);
  const own = (params as Record<string, unknown> | null)?._meta;
  const isPlain = isObject && (own === undefined || Object(own) === own && !Array.isArray(own));
  const all = isPlain ? paramsFor(era, params as Record<string, unknown>, {}) : params;
  const request = { ...shape, jsonrpc: "2.0", method, params: all };
  return `{"id":${id},${JSON.stringify(request).slice(1)}\n`;
}

async function assertAllAnswered(pml: RawStdio): Promise<void> {
  for (const [at, shape] of SHAPES.entries()) {
    const id = `odd ${at}`;
    const text = requestText(pml.era, JSON.stringify(id), shape);
    const answer = pml.expect(id, { what: text });
    await pml.sendText(text);
    const { result, error } = await answer;
    assert.ok(result !== undefined || typeof error?.message === "string", text);
  }
  await pml.request("tools/list");
  pml.assertAnswered();
}

async function assertIdsComeBack(pml: RawStdio): Promise<void> {
  for (const method of METHODS) {
    for (const id of IDS) {
      const { length } = pml.stdout;
      await pml.sendText(requestText(pml.era, id, { method }));
      const wanted = `"id":${id}`;
      const answer = () =>
        pml.stdout.slice(length).split("\n").find((line) => line.includes(wanted));
      const what = `${method} with the id ${id.slice(0, 50)}`;
      await until(() => answer() !== undefined).catch(() => assert.fail(`no answer to ${what}`));
      // PML parsed it, too.
      const line = answer() ?? "";
      assert.ok(!/"code":-32[067]00\b/.test(line), `${what}: ${line}`);
      if (method === "tools/list") assert.match(line, /"result":/, what);
    }
  }
}

for (const { on, ...way } of WAYS) {
  Deno.test(`each odd request is answered, on ${on}`, async () => {
    await using scene = await makeScene(way);
    await assertAllAnswered(scene.pml);
  });

  Deno.test(`ids of any size come back as they were, on ${on}`, async () => {
    await using scene = await makeScene(way);
    await assertIdsComeBack(scene.pml);
  });
}

Deno.test("each odd request is answered, and ids come back, through an attached window", async () => {
  await using ws = await makeAttackWorkspace();
  await using _served = await servePml(ws);
  await using pml = new RawStdio(ws);
  await pml.open();
  await assertAllAnswered(pml);
  await assertIdsComeBack(pml);
});

for (const door of ["stdio", "http"] as const) {
  Deno.test(`an odd first request is answered, on ${door}`, async () => {
    const params = {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "t", version: "1" },
    };
    const first: readonly [id: string, shape: Shape][] = [
      ["9007199254740993", { method: "initialize", params }],
      ["1.0", { method: "initialize", params: { ...params, _meta: { a: 1 } } }],
      ["3", { method: "initialize", params, extra: 1 }],
      ["4", { method: "initialize", params: null }],
      ["5", { method: "initialize", params: { ...params, capabilities: null } }],
      ["6", { method: "tools/list", params: null }],
      ["7", { method: "no/such", params: {} }],
    ];
    await using ws = await makeAttackWorkspace();
    for (const [id, shape] of first) {
      await using pml = new RawStdio(ws, { door });
      const text = requestText("2025-11-25", id, shape);
      await pml.sendText(text);
      await until(() => pml.stdout.includes(`"id":${id}`)).catch(() =>
        assert.fail(`${text}: ${pml.stdout}`)
      );
    }
  });
}

/** Requests with a param of the wrong type, and the text of the error about it. */
const WRONG_TYPES: readonly (readonly [method: string, params: Shape, problem: string])[] = [
  ["tools/call", { name: 5 }, "name must be a string"],
  ["tools/call", { name: "s__run", arguments: [] }, "arguments must be an object"],
  ["tools/list", { query: 5 }, "query must be a string"],
  ["prompts/get", {}, "name must be a string"],
  ["resources/read", { uri: null }, "uri must be a string"],
  ["completion/complete", {}, "ref must be an object"],
  ["completion/complete", { ref: { type: "ref/prompt" } }, "name must be a string"],
];

for (const { on, ...way } of WAYS) {
  Deno.test(`the error of a request names the param of a wrong type, on ${on}`, async () => {
    await using scene = await makeScene(way);
    for (const [method, params, problem] of WRONG_TYPES) {
      const { error } = await scene.pml.request(method, params);
      assert.deepEqual([error?.code, error?.message.includes(problem)], [-32602, true], problem);
    }
    if (way.era === "2025-11-25") {
      const { error } = await scene.pml.request("logging/setLevel", { level: "loud" });
      assert.match(error?.message ?? "", /level .*debug, info/);
    }
  });
}

Deno.test("an id beyond 2^53 comes back on a stream, and on a resumed stream", async () => {
  await using scene = await serveScene();
  await using session = await scene.open({ era: "2025-11-25" });
  const id = parseExact("9007199254740993");
  const params = { name: "s__run", arguments: { steps: [{ wait: 700 }] } };
  const wanted = '"id":9007199254740993';
  await using whole = await session.send({ id, method: "tools/call", params });
  await whole.over;
  assert.equal(whole.headers.get("content-type"), "text/event-stream");
  assert.ok(whole.text.includes(wanted), whole.text);
  await using resumed = await session.listen(whole.ids[0]);
  await until(() => resumed.text.includes('"result"'));
  assert.ok(resumed.text.includes(wanted), resumed.text);
});

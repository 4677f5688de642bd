import assert from "node:assert/strict";
import { textOf } from "./attacks/oracles.ts";
import type { Message } from "./kit/json_rpc.ts";
import { until } from "./kit/wait.ts";
import { answers, ASK, bare, told, WITH_META } from "./script_scene.ts";
import { serveScene } from "./serve_scene.ts";

const NEWEST = "2026-07-28";
const SOON_MS = 20_000;
const FORM = { elicitation: { form: {} } };

Deno.test("a call over HTTP has the same answer with a _meta and without", async () => {
  await using all = await serveScene();
  const large = `"content":[{"type":"text","text":"${"x".repeat(300_000)}"}]`;
  const lines = [
    ...[`"result":{"content":[]}`, `"result":{${large}}`, `"result":5`, `"x":1`],
    ...[-32601, -32020, -32021, 1].map((code) => `"error":{"code":${code},"message":"m"}`),
    `"result":{"content":[],"resultType":"input_required","requestState":"x"}`,
  ];
  for (const members of lines) {
    const first = await all.call(answers(members));
    const other = await all.call(answers(members), WITH_META);
    assert.deepEqual(bare(other), bare(first));
  }
  assert.equal((await all.ledger()).filter((line) => line.startsWith("start")).length, 1);
});

Deno.test("notifications of a server during a call over HTTP come before the answer, as events", async () => {
  await using all = await serveScene();
  const seen = async (more: object) => {
    const _meta = { progressToken: "p", ...more };
    const said = { steps: [told(1), told(2)] };
    await using reading = await all.client.begin("tools/call", {
      ...{ name: "s__run", arguments: said, _meta },
    });
    await reading.over;
    assert.equal(reading.headers.get("content-type"), "text/event-stream");
    return reading.messages.map(withoutId);
  };
  const first = await seen({});
  assert.deepEqual(first.map(({ method }) => method), [
    ...["notifications/progress", "notifications/progress", undefined],
  ]);
  assert.deepEqual(await seen(WITH_META._meta), first);
});

Deno.test("a question of a server during a call over HTTP is answered, and the call continues", async () => {
  await using all = await serveScene();
  const able = await all.open({ capabilities: FORM });
  // The server is started again for a client that can be asked.
  await all.warm(able);
  const calls = async () => (await all.ledger()).filter((line) => /^call run/.test(line)).length;
  const before = await calls();
  const params = { name: "s__run", arguments: ASK };
  const request = await able.request("tools/call", params);
  const { resultType, inputRequests, requestState } = request.result ?? {};
  assert.equal(resultType, "input_required");
  const [[id = "", question] = []] = Object.entries(
    inputRequests as unknown as Record<string, Message>,
  );
  assert.equal(question?.params?.message, "Server s asks: Who?");
  const inputResponses = { [id]: { action: "accept", content: {} } };
  const done = await able.request("tools/call", { ...params, requestState, inputResponses });
  assert.match(textOf(done), /"action":"accept"/);
  assert.equal(await calls(), before + 1, "the server was called once");
});

Deno.test("simultaneous clients over HTTP get each its own answer", async () => {
  await using all = await serveScene();
  const others = await Promise.all([1, 2, 3, 4].map(() => all.open()));
  await Promise.all(Array.from({ length: 60 }, async (_, at) => {
    const text = `answer ${at}`;
    const said = answers(`"result":{"content":[{"type":"text","text":"${text}"}]}`);
    const client = others[at % others.length] ?? all.client;
    const message = await client.request("tools/call", { name: "s__run", arguments: said });
    assert.equal(textOf(message), text);
  }));
});

Deno.test("a client over HTTP that disconnects cancels its call", async () => {
  await using all = await serveScene();
  for (const more of [{}, WITH_META]) {
    const before = (await all.ledger()).length;
    const gone = new AbortController();
    const params = { name: "s__run", arguments: { steps: [{ wait: 20_000 }], silent: true } };
    const call = all.served.fetch({
      method: "POST",
      signal: gone.signal,
      headers: {
        ...{ "mcp-protocol-version": NEWEST, "mcp-method": "tools/call", "mcp-name": "s__run" },
      },
      body: JSON.stringify({
        ...{ jsonrpc: "2.0", id: 1, method: "tools/call" },
        params: {
          ...params,
          _meta: {
            "io.modelcontextprotocol/protocolVersion": NEWEST,
            "io.modelcontextprotocol/clientCapabilities": {},
            ...(more as Partial<typeof WITH_META>)._meta,
          },
        },
      }),
    }).catch(() => {});
    await until(async () => (await all.ledger()).length === before + 1);
    gone.abort();
    // Long before the call's own deadline.
    await until(async () => (await all.ledger()).at(-1) === "cancelled", SOON_MS);
    await call;
  }
});

function withoutId({ id: _, ...message }: Message): Omit<Message, "id"> {
  return message;
}

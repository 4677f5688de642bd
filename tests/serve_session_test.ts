/**
 * Calls in sessions of the older revisions over HTTP, which do not load the SDK unless they take
 * long.
 */

import assert from "node:assert/strict";
import { textOf } from "./attacks/oracles.ts";
import type { DoorClient, Reading } from "./kit/door_client.ts";
import { until } from "./kit/wait.ts";
import { answers, ASK, bare, type Said, told, WITH_META } from "./script_scene.ts";
import { type ServeScene, serveScene } from "./serve_scene.ts";

const OLDER = "2025-11-25";
const JSON_TYPE = "application/json";
const EVENTS_TYPE = "text/event-stream";
/** Longer than the time within which an answer comes without a stream. */
const SLOW: Said = { steps: [{ wait: 700 }] };
const ENDLESS: Said = { steps: [{ wait: 20_000 }], silent: true };

interface Session extends ServeScene {
  readonly session: DoorClient;
  /** Calls the tool in the session, optionally with more params. */
  begin(said: Said, more?: object): Promise<Reading>;
}

/** Creates a session that called the tool before. */
async function sessionScene(options: object = {}): Promise<Session> {
  const all = await serveScene();
  const session = await all.open({ era: OLDER, ...options });
  await all.warm(session);
  const begin = (said: Said, more: object = {}) =>
    session.begin("tools/call", { name: "s__run", arguments: said, ...more });
  return { ...all, session, begin };
}

async function read(begun: Promise<Reading>): Promise<Reading> {
  const reading = await begun;
  await reading.over;
  return reading;
}

Deno.test("a short call in a session has an answer without a stream, the same with a _meta and without", async () => {
  await using all = await sessionScene();
  const large = `"content":[{"type":"text","text":"${"x".repeat(300_000)}"}]`;
  const lines = [
    ...[`"result":{"content":[]}`, `"result":{${large}}`, `"result":5`, `"x":1`],
    ...[-32601, -32002, 1].map((code) => `"error":{"code":${code},"message":"m"}`),
  ];
  let pieces = 0;
  for (const members of lines) {
    const plain = await read(all.begin(answers(members)));
    assert.equal(plain.status, 200);
    if (plain.headers.get("content-type") === JSON_TYPE) pieces++;
    const marked = await read(all.begin(answers(members), WITH_META));
    const [one, other] = [plain, marked].map(({ messages: [first] }) => first && bare(first));
    assert.ok(one !== undefined);
    assert.deepEqual(one, other);
  }
  // On a busy machine some calls take longer.
  assert.ok(pieces > 0, "no answer came in one piece");
});

Deno.test("the answer of a longer call in a session can be requested again, and the call runs once", async () => {
  await using all = await sessionScene();
  const calls = async () => (await all.ledger()).filter((line) => /^call run/.test(line)).length;
  const before = await calls();
  const reading = await all.begin(SLOW);
  assert.equal(reading.headers.get("content-type"), EVENTS_TYPE);
  await until(() => reading.ids.length > 0);
  await reading[Symbol.asyncDispose]();
  assert.deepEqual(reading.messages, []);
  // PML may not have noticed yet that the stream broke.
  let again: Reading;
  await until(async () => (again = await all.session.listen(reading.ids[0])).status === 200);
  await again!.over;
  const [answer] = again!.messages;
  assert.match(JSON.stringify(answer), /"content"/);
  assert.equal(await calls(), before + 1);
  assert.ok(!(await all.ledger()).includes("cancelled"), "who leaves does not cancel in a session");
});

Deno.test("notifications during a call in a session come before the answer, on its stream", async () => {
  await using all = await sessionScene();
  for (const more of [{}, WITH_META._meta]) {
    const _meta = { progressToken: "p", ...more };
    const { headers, messages } = await read(all.begin({ steps: [told(1), told(2)] }, { _meta }));
    assert.equal(headers.get("content-type"), EVENTS_TYPE);
    assert.deepEqual(messages.map(({ method }) => method), [
      ...["notifications/progress", "notifications/progress", undefined],
    ]);
  }
});

Deno.test("a question during a call in a session comes on the call's stream, and the call continues", async () => {
  await using all = await sessionScene({ capabilities: { elicitation: { form: {} } } });
  await using other = await all.open({ era: OLDER, capabilities: { elicitation: { form: {} } } });
  await using reading = await all.begin(ASK);
  const { id } = await reading.message(({ method }) => method === "elicitation/create");
  // Another session has no question with this id.
  await other.send({ id, result: { action: "decline" } } as never);
  await all.session.send({ id, result: { action: "accept", content: {} } } as never);
  const done = await reading.message(({ method }) => method === undefined);
  assert.match(textOf(done), /"action":"accept"/);
});

Deno.test("a call in a session ends when it is cancelled, and when its session ends", async () => {
  await using all = await sessionScene();
  const cancelled = async () => (await all.ledger()).filter((line) => line === "cancelled").length;
  const begun = async (act: (id: unknown) => Promise<unknown>) => {
    const before = await cancelled();
    const calls = (await all.ledger()).length;
    const id = `call ${calls}`;
    const params = { name: "s__run", arguments: ENDLESS };
    const reading = all.session.send({ id, method: "tools/call", params } as never);
    await until(async () => (await all.ledger()).length > calls);
    await act(id);
    await until(async () => await cancelled() === before + 1, 10_000);
    return await reading;
  };
  const left = await begun((requestId) =>
    all.session.send({ method: "notifications/cancelled", params: { requestId } } as never)
  );
  assert.deepEqual(left.messages, [], "what is cancelled is not answered");
  await left[Symbol.asyncDispose]();
  const ended = await begun(() => all.session.fetch({ method: "DELETE" }));
  await ended.over;
});

Deno.test("a request whose id is in use is refused, and the first one is answered", async () => {
  await using all = await sessionScene();
  const { session } = all;
  const call = { method: "tools/call", params: { name: "s__run", arguments: SLOW } };
  const ping = { id: 70, method: "ping" };
  const batch = (...all: readonly object[]) =>
    session.fetch({
      method: "POST",
      body: JSON.stringify(all.map((one) => ({ jsonrpc: "2.0", ...one }))),
    });
  const refused = async (begun: Promise<Reading>) => {
    const { status, text } = await read(begun);
    assert.equal(status, 400);
    assert.match(text, /"code":-32600/);
  };
  const first = session.send({ id: 70, ...call });
  const other = batch({ id: 71, ...call }, { id: 72, method: "ping" });
  for (const one of [first, other]) one.catch(() => {});
  await until(async () => (await all.ledger()).filter((one) => one === "call run {}").length > 3);
  await refused(session.send(ping));
  await refused(session.send({ ...ping, id: 71 }));
  await refused(batch({ ...ping, id: 73 }, ping));
  await refused(batch({ ...ping, id: 73 }, { ...ping, id: 73 }));
  assert.equal((await read(session.send({ ...ping, id: 73 }))).status, 200);
  assert.match((await read(first)).text, /"done"[^]*"id":70/);
  assert.match((await read(other)).text, /"done"[^]*"id":71/);
});

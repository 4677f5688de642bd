/**
 * Calls while they run: they are recorded, cancelled and timed, and their servers send requests.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { textOf } from "./attacks/oracles.ts";
import { type Era, ERAS, type Json, type Message } from "./kit/json_rpc.ts";
import { runPml } from "./kit/run.ts";
import { until } from "./kit/wait.ts";
import type { Workspace } from "./kit/workspace.ts";
import {
  answers,
  bare,
  codeIn,
  type Said,
  type ScriptScene,
  scriptScene,
  warmUp,
  WITH_META,
} from "./script_scene.ts";

const WHO = {
  ask: {
    method: "elicitation/create",
    params: {
      message: "Who?",
      requestedSchema: { type: "object", properties: { name: { type: "string" } } },
    },
  },
} as const;

interface Recorded {
  readonly kind: string;
  readonly callId?: string;
  readonly outcome?: string;
  readonly code?: string;
}

async function recordsOf({ home }: Workspace): Promise<readonly Recorded[]> {
  const folder = join(home, "journal");
  const texts = (await readdir(folder)).map((name) => readFile(join(folder, name), "utf8"));
  return (await Promise.all(texts)).join("").trim().split("\n").map((line) => JSON.parse(line));
}

/** Returns how each call ended, in the order of their starts. */
async function endsOf(ws: Workspace): Promise<readonly (string | undefined)[]> {
  const all = await recordsOf(ws);
  const ends = new Map(all.flatMap((one) => one.kind === "end" ? [[one.callId, one]] : []));
  return all.filter(({ kind }) => kind === "start").map(({ callId }) => {
    const end = ends.get(callId);
    return end?.code ?? end?.outcome;
  });
}

/** Answers the questions of a call as each revision does. Returns the result and the questions. */
async function answered(
  { pml }: ScriptScene,
  { said, meta = {}, reply }: {
    readonly said: Said;
    readonly meta?: object;
    readonly reply: object;
  },
): Promise<{ readonly answer: Message; readonly asked: readonly Json[] }> {
  const params = { name: "s__run", arguments: said, ...meta };
  const asked: Json[] = [];
  let answer = await pml.request("tools/call", params);
  while ((answer.result?.resultType as unknown) === "input_required") {
    assert.ok(asked.length < 5, "it asks again and again");
    const { inputRequests = {}, requestState } = answer.result ?? {};
    asked.push(...Object.values(inputRequests as unknown as Record<string, Json>));
    const keys = Object.keys(inputRequests as object);
    const inputResponses = Object.fromEntries(keys.map((key) => [key, reply]));
    answer = await pml.request("tools/call", { ...params, inputResponses, requestState });
  }
  return { answer, asked };
}

Deno.test("each call is recorded before its server receives it, and after its end", async () => {
  await using scene = await scriptScene("2025-11-25");
  const { ws, call, ledger, pml } = scene;
  const calls = (await endsOf(ws)).length;
  await call({ steps: [{ read: join(ws.home, "journal") }] });
  const read = (await ledger()).find((line) => line.startsWith("read ")) ?? "";
  assert.equal(read.split('"kind":"start"').length - 1, calls + 1);
  await call(answers('"error":{"code":1,"message":"m"}'));
  await call(answers('"x":1'));
  await until(async () => !(await endsOf(ws)).includes(undefined));
  assert.deepEqual((await endsOf(ws)).slice(-3), ["result", "tool error", "UPSTREAM_PROTOCOL"]);
  assert.equal((await pml.close()).code, 0);
  const { code, stdout, stderr } = await runPml(ws, ["audit", "verify"]);
  assert.equal(code, 0, stdout + stderr);
});

for (const era of ERAS) {
  Deno.test(`the server is notified of a cancelled call, which gets no answer, on ${era}`, async () => {
    await using scene = await scriptScene(era);
    const { ws, pml, ledger, call } = scene;
    const held = { steps: [{ until: ws.file("never") }] };
    const before = (await ledger()).length;
    const { id } = pml.begin("tools/call", { name: "s__run", arguments: held });
    await until(async () => (await ledger()).length > before);
    await pml.notify("notifications/cancelled", { requestId: id });
    await until(async () => (await ledger()).includes("cancelled"));
    await until(async () => (await endsOf(ws)).includes("CANCELLED"));
    assert.equal(textOf(await call()), "done");
    // The cancellation comes in the same chunk as the call, and the id is reused at once.
    const line = (of: object) => `${JSON.stringify({ jsonrpc: "2.0", ...of })}\n`;
    const request = (arguments_: Said) => {
      const _meta = metaOf(era);
      const params = { name: "s__run", arguments: arguments_, ...(_meta && { _meta }) };
      return line({ id: "twice", method: "tools/call", params });
    };
    const cancel = line({ method: "notifications/cancelled", params: { requestId: "twice" } });
    const answer = pml.expect("twice");
    await pml.sendText(request({ ...held, first: 1 }) + cancel + request({ second: 1 }));
    assert.equal(textOf(await answer), "done");
    await until(async () => !(await endsOf(ws)).includes(undefined));
    assert.equal((await endsOf(ws)).filter((end) => end === "CANCELLED").length, 2);
    // Two calls at once with one id: the second is refused.
    const twice = pml.expect("twice");
    await pml.sendText(request({ steps: [{ wait: 50 }] }) + request({}));
    assert.equal(textOf(await twice), "done");
    assert.match(pml.stdout, /id is in use/);
    assert.ok(!pml.messages.some((one) => one.id === id && !("method" in one)));
  });

  Deno.test(`a server's questions during a call reach the client, on ${era}`, async () => {
    const seen: Json[] = [];
    let reply: object = { action: "accept", content: { name: "Ann" } };
    await using scene = await scriptScene(era, {
      capabilities: { elicitation: { form: {} } },
      answer: (method, params) => {
        seen.push({ method, params } as unknown as Json);
        return reply;
      },
    });
    const said = { steps: [{ write: PROGRESS }, WHO, WHO] };
    for (reply of [reply, { action: "decline" }, { action: "cancel" }]) {
      const first = await answered(scene, { said, reply });
      const other = await answered(scene, { said, reply, meta: WITH_META });
      assert.deepEqual(bare(other.answer), bare(first.answer));
      assert.match(textOf(first.answer), new RegExp(String(Reflect.get(reply, "action"))));
      const asked = [...first.asked, ...seen.splice(0)];
      assert.match(JSON.stringify(asked), /Server s asks: Who\?/);
    }
    await using unable = await scriptScene(era);
    const refused = await unable.call(said);
    assert.match(textOf(refused), /ask its user/);
    assert.deepEqual(bare(await unable.callWithMeta(said)), bare(refused));
  });

  Deno.test(`sampling asks the user before the model, on ${era}`, async () => {
    const requests: string[] = [];
    const model = { role: "assistant", model: "m", content: { type: "text", text: "it" } };
    await using scene = await scriptScene(era, {
      rules: { allow: ["s:run"] },
      capabilities: { elicitation: { form: {} }, sampling: {} },
      answer: (method) => {
        requests.push(method);
        return method === "sampling/createMessage"
          ? model
          : { action: "accept", content: { answer: "Yes" } };
      },
    });
    const messages = [{ role: "user", content: { type: "text", text: "Say it" } }];
    const params = { messages, maxTokens: 9 };
    const answer = await scene.pml.callTool("s__run", {
      steps: [{ ask: { method: "sampling/createMessage", params } }],
    });
    assert.match(textOf(answer), /"text":"it"/);
    assert.deepEqual(requests, ["elicitation/create", "sampling/createMessage"]);
  });

  Deno.test(`a client that leaves during a question leaves nothing behind, on ${era}`, async () => {
    const never = Promise.withResolvers<unknown>();
    await using scene = await scriptScene(era, {
      capabilities: { elicitation: { form: {} } },
      answer: () => never.promise,
    });
    const { pml, ws } = scene;
    const from = pml.messages.length;
    pml.begin("tools/call", { name: "s__run", arguments: { steps: [WHO] } }).answer.catch(() => {});
    await until(() => pml.messages.length > from);
    assert.equal((await pml.close()).code, 0);
    await pml.watch.assertNothingLeft();
    assert.ok(!(await endsOf(ws)).includes(undefined));
  });

  Deno.test(`a call that takes too long ends, unless a question is open or progress comes, on ${era}`, async () => {
    await using scene = await scriptScene(era, {
      limits: { call_ms: 1_000 },
      capabilities: { elicitation: { form: {} } },
      answer: async () => {
        await delay(1_500);
        return { action: "accept", content: {} };
      },
    });
    const { ws, call, callWithMeta, ledger, pml } = scene;
    const beat = Array.from({ length: 5 }, () => [{ wait: 400 }, { write: PROGRESS }]).flat();
    assert.equal(textOf(await call({ steps: beat })), "done");
    const late = await callWithMeta({ silent: true });
    assert.equal(codeIn(late), "TIMED_OUT");
    assert.deepEqual(bare(await call({ silent: true })), bare(late));
    await until(async () => (await ledger()).filter((line) => line === "cancelled").length === 2);
    await warmUp(scene);
    const request = era === "2025-11-25"
      ? await scene.call({ steps: [WHO] })
      : await pml.callTool("s__run", { steps: [WHO] });
    assert.match(textOf(request), /accept/);
    await until(async () => !(await endsOf(ws)).includes(undefined));
    assert.equal((await endsOf(ws)).filter((end) => end === "TIMED_OUT").length, 2);
  });
}

/** Writes a line of progress, for a call with a progress token. */
const PROGRESS =
  '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}';

function metaOf(era: Era): object | undefined {
  if (era === "2025-11-25") return undefined;
  const prefix = "io.modelcontextprotocol/";
  return { [`${prefix}protocolVersion`]: era, [`${prefix}clientCapabilities`]: {} };
}

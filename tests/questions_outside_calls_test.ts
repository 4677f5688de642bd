/**
 * Requests of a server while none of its calls is under way.
 *
 * @module
 */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import type { Era, Json, Message } from "./kit/json_rpc.ts";
import type { Step } from "./kit/script_server.ts";
import { until } from "./kit/wait.ts";
import { type ScriptScene, scriptScene } from "./script_scene.ts";

const QUESTION = {
  method: "elicitation/create",
  params: {
    message: "Which branch?\nPML asks: Yes?",
    requestedSchema: { type: "object", properties: { branch: { type: "string" } } },
  },
};
const ANSWER = { action: "accept", content: { branch: "main" } };
const RESULT = { write: '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}' };
const LOG =
  '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":$ANSWER}}';

/** Lets the server ask after its call has ended. Returns the answers that it received. */
async function answersOf(
  { pml, ws, call }: ScriptScene,
  { era = "2025-11-25", times = 1, question = QUESTION }: {
    readonly era?: Era;
    readonly times?: number;
    readonly question?: typeof QUESTION;
  } = {},
): Promise<readonly string[]> {
  const steps: Step[] = Array.from({ length: times }, () => [{ ask: question }, { write: LOG }])
    .flat();
  const logged = () =>
    pml.messages.filter(({ method }) => method === "notifications/message")
      .map(({ params }) => JSON.stringify(params));
  if (era === "2025-11-25") await pml.request("logging/setLevel", { level: "debug" });
  await call({ silent: true, steps: [RESULT, { until: ws.file("go") }, ...steps] });
  await writeFile(ws.file("go"), "");
  if (era !== "2025-11-25") return [];
  await until(() => logged().length === times);
  return logged();
}

function asked({ pml }: ScriptScene): readonly Message[] {
  return pml.messages.filter(({ method }) => method === "elicitation/create");
}

const CAN_ASK = { capabilities: { elicitation: { form: {} } }, answer: () => ANSWER };

Deno.test("a question of a server outside of a call reaches the only client", async () => {
  await using scene = await scriptScene("2025-11-25", CAN_ASK);
  const [answer = ""] = await answersOf(scene);
  assert.match(answer, /"action":"accept","content":\{"branch":"main"\}/);
  const [question] = asked(scene);
  const text = `${question?.params?.message}`;
  assert.match(text, /^Server s .*: Which branch\?\n {4}PML asks: Yes\?$/);
});

Deno.test("progress of the client for a question outside of a call reaches the server", async () => {
  await using scene: ScriptScene = await scriptScene("2025-11-25", {
    ...CAN_ASK,
    answer: async (_, { _meta }) => {
      const { progressToken } = _meta as Json;
      await scene.pml.notify("notifications/progress", { progressToken, progress: 1 });
      return ANSWER;
    },
  });
  const params = { ...QUESTION.params, _meta: { progressToken: "of/server" } };
  await answersOf(scene, { question: { ...QUESTION, params } });
  const reports = (await scene.ledger()).filter((line) => line.startsWith("progress "));
  assert.deepEqual(reports, ['progress {"progress":1,"progressToken":"of/server"}']);
});

Deno.test("questions of a server outside of calls are bounded, and rules deny them", async () => {
  await using scene = await scriptScene("2025-11-25", CAN_ASK);
  const answers = await answersOf(scene, { times: 7 });
  assert.equal(asked(scene).length, 5);
  for (const answer of answers.slice(5)) assert.match(answer, /asked 5 times in a minute/);
  const rules = { allow: ["s:*"], deny: ["s:@elicitation"] };
  await using denied = await scriptScene("2025-11-25", { ...CAN_ASK, rules });
  const [refusal = ""] = await answersOf(denied);
  assert.match(refusal, /error/);
  assert.equal(asked(denied).length, 0);
});

Deno.test("a client that cannot be asked outside of calls is not asked", async () => {
  await using mute = await scriptScene("2025-11-25");
  const [refusal = ""] = await answersOf(mute);
  assert.match(refusal, /ask its user/);
  await using scene = await scriptScene("2026-07-28", CAN_ASK);
  await answersOf(scene, { era: "2026-07-28" });
  // The server gets an answer at once, before its next call.
  await scene.call();
  assert.equal(asked(scene).length, 0);
});

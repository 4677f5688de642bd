import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { textOf } from "./attacks/oracles.ts";
import type { Message } from "./kit/json_rpc.ts";
import { until } from "./kit/wait.ts";
import { scriptScene, told } from "./script_scene.ts";
import { serveScene } from "./serve_scene.ts";

const RUNS = /^s:run has been running for \d+ s$/;
const TOKEN = { progressToken: "p" };

/** Returns the params of all progress notifications among the messages. */
function progressIn(messages: readonly Message[]): readonly Record<string, unknown>[] {
  return messages.filter(({ method }) => method === "notifications/progress")
    .map(({ params }) => params ?? {});
}

Deno.test("a client with a token gets reports of a silent call, with rising values", async () => {
  await using scene = await scriptScene("2026-07-28");
  const { ws, pml } = scene;
  const [first, second] = [ws.file("first"), ws.file("second")];
  const steps = [{ until: first }, told(0), { until: second }];
  const from = pml.messages.length;
  const said = () => progressIn(pml.messages.slice(from));
  const call = (more: object) =>
    pml.begin("tools/call", { name: "s__run", arguments: { steps }, ...more }).answer;
  const [answer, other] = [call({ _meta: TOKEN }), call({})];
  await until(() => said().length > 0);
  await writeFile(first, "");
  await until(() => said().some(({ progress }) => progress === 0));
  const { length } = said();
  await until(() => said().length > length);
  await writeFile(second, "");
  assert.equal(textOf(await answer), "done");
  assert.equal(textOf(await other), "done");
  const all = said();
  assert.ok(all.every(({ progressToken }) => progressToken === "p"));
  const [own = {}] = all;
  assert.match(String(own.message), RUNS);
  assert.ok(Number(own.progress) < -1_000);
  assert.match(String(all.at(-1)?.message), RUNS);
  const values = all.map(({ progress }) => Number(progress));
  assert.deepEqual(values, [...new Set(values)].toSorted((one, next) => one - next));
});

Deno.test("plans, code and batches report silent calls", async () => {
  const config = { gateway: { meta_tools: ["batch", "execute_code", "execute_workflow"] } };
  await using scene = await scriptScene("2025-11-25", { config: { ...config } });
  const { ws, pml } = scene;
  const end = ws.file("end");
  const args = { steps: [{ until: end }] };
  const requests: Record<string, object> = {
    batch: { calls: [{ tool: "s:run", arguments: args }] },
    execute_code: { code: `return await (mcp as any).s.run(${JSON.stringify(args)})` },
    execute_workflow: { plan: { tasks: [{ id: "a", tool: "s:run", arguments: args }] } },
  };
  const from = pml.messages.length;
  const answers = Object.entries(requests).map(([name, given]) =>
    pml.begin("tools/call", { name, arguments: given, _meta: { progressToken: name } }).answer
  );
  const tokens = () =>
    progressIn(pml.messages.slice(from)).filter(({ message }) => RUNS.test(String(message)))
      .map(({ progressToken }) => progressToken);
  await until(() => new Set(tokens()).size === answers.length);
  await writeFile(end, "");
  for (const answer of answers) assert.equal((await answer).result?.isError, undefined);
});

Deno.test("reports of a silent call come as events over HTTP, and not to a client that accepts only JSON", async () => {
  await using all = await serveScene();
  const older = await all.open({ era: "2025-11-25" });
  const end = all.ws.file("end");
  const params = { name: "s__run", arguments: { steps: [{ until: end }] }, _meta: TOKEN };
  const json = await all.open({ headers: { accept: "application/json" } });
  const [plain, ...streams] = [json, all.client, older].map((one) =>
    one.begin("tools/call", params)
  );
  for (const stream of streams) {
    const reading = await stream;
    assert.equal(reading.headers.get("content-type"), "text/event-stream");
    const { params } = await reading.message(({ method }) => method === "notifications/progress");
    assert.match(String(params?.message), RUNS);
  }
  await writeFile(end, "");
  for (const stream of streams) {
    await using reading = await stream;
    assert.equal(textOf(await reading.message(({ method }) => method === undefined)), "done");
  }
  await using reading = await plain as Awaited<NonNullable<typeof plain>>;
  await reading.over;
  assert.equal(reading.headers.get("content-type"), "application/json");
  assert.equal(reading.messages.length, 1);
  assert.equal(textOf(reading.messages[0] as Message), "done");
});

import assert from "node:assert/strict";
import { type Call, NO_CLIENT, type Outcome, type ServerRequest } from "../protocol/call.ts";
import { limitsOf } from "../config/limits.ts";
import type { JsonObject } from "../core/json.ts";
import { toolId } from "../core/tool_id.ts";
import type { Run } from "./run.ts";
import { type RunStart, withRun } from "./run_scope.ts";
import { WaitingRuns } from "./waiting_runs.ts";

const ONE = { config: { limits: limitsOf({ waiting_runs: 1 }) } };

Deno.test("withRun() counts runs that wait for the user, but not runs that wait for a model", async () => {
  const waiting = new WaitingRuns(ONE);
  const callTool = async (
    { arguments: { method }, client, cancellation }: Call,
  ): Promise<Outcome> => {
    const { signal } = cancellation;
    await client.onServerRequest?.({ server: "s", method, params: {}, signal } as ServerRequest);
    return { kind: "result", result: { content: [] } };
  };
  const parts = { waiting, callTool, journal: { record: () => {} } };
  const open = Promise.withResolvers<JsonObject>();
  const start: RunStart = {
    ...{ via: "code", actor: "local", maxCalls: 1, ms: 60_000, totalMs: 60_000, about: {} },
    signal: new AbortController().signal,
    client: { onServerRequest: () => open.promise },
  };
  const asking = (method: ServerRequest["method"]) =>
    withRun(start, parts, async (run) => {
      await run.call({ id: toolId("s", "ask"), arguments: { method } });
      return { kind: "done" };
    });
  const models = [asking("sampling/createMessage"), asking("sampling/createMessage")];
  const person = asking("elicitation/create");
  await assert.rejects(asking("elicitation/create"), { code: "OVERLOADED" });
  models.push(asking("sampling/createMessage"));
  open.resolve({});
  assert.deepEqual(await Promise.all([...models, person]), Array(4).fill({ kind: "done" }));
});

Deno.test("a run does not count the time of its calls, up to a total limit", async () => {
  const callTool = async (): Promise<Outcome> => {
    await new Promise((resolve) => setTimeout(resolve, 60));
    return { kind: "result", result: { content: [] } };
  };
  const parts = { waiting: new WaitingRuns(ONE), callTool, journal: { record: () => {} } };
  const { signal } = new AbortController();
  const start = {
    ...{ via: "code", actor: "local", maxCalls: 10, about: {} } as const,
    ...{ signal, client: NO_CLIENT },
  };
  const call = async (run: Run) => {
    const { signal } = run.options;
    for (let count = 0; count < 4 && !signal.aborted; count++) {
      await run.call({ id: toolId("s", "slow"), arguments: {} });
    }
    signal.throwIfAborted();
    return { kind: "done" };
  };
  assert.deepEqual(await withRun({ ...start, ms: 50, totalMs: 60_000 }, parts, call), {
    kind: "done",
  });
  await assert.rejects(withRun({ ...start, ms: 50, totalMs: 100 }, parts, call), {
    message: / 100 ms$/,
    hint: /call_max_ms/,
  });
  const idle = async (run: Run) => {
    await new Promise((resolve) => run.options.signal.addEventListener("abort", resolve));
    throw run.options.signal.reason;
  };
  await assert.rejects(withRun({ ...start, ms: 50, totalMs: 60_000 }, parts, idle), {
    message: / 50 ms$/,
    hint: /timeout_ms/,
  });
});

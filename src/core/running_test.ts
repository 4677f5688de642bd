import assert from "node:assert/strict";
import type { Call, Outcome } from "./call.ts";
import { Running } from "./running.ts";

Deno.test("Running waits for every call under way, also for one that fails", async () => {
  const running = new Running();
  const ended: string[] = [];
  const first = Promise.withResolvers<Outcome>();
  const second = Promise.withResolvers<Outcome>();
  const call = {} as Call; // nothing of it is looked at
  const calls = [first, second].map(({ promise }) => running.gate(() => promise)(call));
  const over = running.over().then(() => ended.push("over"));
  first.resolve({ kind: "result", result: { content: [] } });
  await calls[0];
  ended.push("first");
  second.reject(new Error("no"));
  await assert.rejects(calls[1] ?? Promise.resolve(), /no/);
  await over;
  assert.deepEqual(ended, ["first", "over"]);
  await running.over();
});

import assert from "node:assert/strict";
import type { Outcome } from "../protocol/call.ts";
import { DONE, newCall, newPipeline } from "./_context_test.ts";
import { Capacity } from "./capacity.ts";

Deno.test("Capacity waits for all running calls, also for failing ones", async () => {
  const running = new Capacity(() => ({ concurrentCalls: 2, queuedCalls: 1 }), () => {});
  const ended: string[] = [];
  const first = Promise.withResolvers<Outcome>();
  const second = Promise.withResolvers<Outcome>();
  const ends = [first, second];
  using pipeline = newPipeline({
    capacity: running,
    run: () => ends.shift()?.promise ?? assert.fail("it ran"),
  });
  const calls = [1, 2].map(() => pipeline.callTool(newCall()));
  const over = running.whenIdle().then(() => ended.push("over"));
  first.resolve(DONE);
  await calls[0];
  ended.push("first");
  second.reject(new Error("no"));
  await assert.rejects(calls[1] ?? Promise.resolve(), /no/);
  await over;
  assert.deepEqual(ended, ["first", "over"]);
  await running.whenIdle();
});

Deno.test("Capacity runs so many calls at once, lets so many wait, and refuses the rest", async () => {
  let refused = 0;
  const limits = { concurrentCalls: 2, queuedCalls: 3 };
  const running = new Capacity(() => limits, () => void refused++);
  const ends: (() => void)[] = [];
  let most = 0;
  let active = 0;
  using pipeline = newPipeline({
    capacity: running,
    run: async () => {
      most = Math.max(most, ++active);
      await new Promise<void>((resolve) => ends.push(resolve));
      active--;
      return DONE;
    },
  });
  const calls = Array.from({ length: 7 }, () => pipeline.callTool(newCall()));
  const settled = Promise.allSettled(calls);
  for (let at = 0; at < 5; at++) {
    while (ends.length === 0) await new Promise((resolve) => setTimeout(resolve, 0));
    ends.shift()?.();
  }
  const states = (await settled).map((one) => one.status === "rejected" ? one.reason.code : "ran");
  assert.deepEqual(states, ["ran", "ran", "ran", "ran", "ran", "OVERLOADED", "OVERLOADED"]);
  assert.equal(refused, 2);
  assert.equal(most, 2);
  // All capacity is free again.
  const again = pipeline.callTool(newCall());
  while (ends.length === 0) await new Promise((resolve) => setTimeout(resolve, 0));
  ends.shift()?.();
  assert.equal((await again).kind, "result");
});

Deno.test("a nested call uses the place of its outer call", async () => {
  const capacity = new Capacity(() => ({ concurrentCalls: 1, queuedCalls: 0 }), () => {});
  const [outer, inner] = [newCall(), newCall({ isNested: true })];
  assert.equal(capacity.enter(outer), undefined);
  assert.equal(capacity.enter(inner), undefined);
  capacity.leave(inner);
  assert.throws(() => capacity.enter(newCall()), { code: "OVERLOADED" });
  capacity.leave(outer);
  await capacity.whenIdle();
});

import assert from "node:assert/strict";
import { BoundedQueue } from "./bounded_queue.ts";

const LIMITS = { waiting: 2, perMinute: 4, bytesPerMinute: 100 };

Deno.test("work is done in its order, also after work that failed", async () => {
  const queue = new BoundedQueue(LIMITS);
  const done: number[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  queue.take(1, async () => {
    await promise;
    done.push(1);
    throw new Error("this work fails");
  });
  const second = Promise.withResolvers<void>();
  queue.take(1, () => {
    done.push(2);
    second.resolve();
    return Promise.resolve();
  });
  assert.match(queue.take(1, () => assert.fail()) ?? "", /2 of them wait/);
  resolve();
  await second.promise;
  assert.deepEqual(done, [1, 2]);
});

Deno.test("work is bounded in count and in bytes, for a minute", async () => {
  let now = 0;
  const queue = new BoundedQueue({ ...LIMITS, waiting: 100 }, () => now);
  let count = 0;
  const work = () => Promise.resolve(void count++);
  assert.match(queue.take(101, work) ?? "", /bytes/);
  for (let at = 0; at < 4; at++) assert.equal(queue.take(1, work), undefined);
  assert.match(queue.take(1, work) ?? "", /4 in a minute/);
  now += 60_000;
  const { promise, resolve } = Promise.withResolvers<void>();
  assert.equal(queue.take(100, () => Promise.resolve(resolve())), undefined);
  await promise;
  assert.equal(count, 4);
});

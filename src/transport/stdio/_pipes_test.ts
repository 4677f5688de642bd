import assert from "node:assert/strict";
import { openStream } from "./_pipes.ts";

Deno.test("openStream() delivers all pieces and the end, and takes none while it is paused", async () => {
  let sent = 0;
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (sent === 5) controller.close();
      else controller.enqueue(new Uint8Array([sent++]));
    },
  }, { highWaterMark: 0 });
  const taken: number[] = [];
  const input = openStream(stream, ([first = -1]) => {
    taken.push(first);
    if (first === 1) input.pause();
  });
  while (taken.length < 2) await new Promise((resolve) => setTimeout(resolve));
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual([taken, sent], [[0, 1], 2]);
  input.resume();
  await input.over;
  assert.deepEqual(taken, [0, 1, 2, 3, 4]);
});

Deno.test("openStream() ends when it is closed, also while it is paused", async () => {
  const stream = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(1)),
  });
  const input = openStream(stream, () => input.pause());
  await new Promise((resolve) => setTimeout(resolve));
  await input.close();
  await input.over;
});

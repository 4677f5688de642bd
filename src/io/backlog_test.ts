import assert from "node:assert/strict";
import { Backlog } from "./backlog.ts";

const MB = 1 << 20;

/** Returns whether a reader may continue at once. */
function goes(backlog: Backlog, reader: object, size = 0): boolean {
  const waiting = backlog.waitForMemory(reader, size);
  waiting?.catch(() => {});
  return waiting === undefined;
}

Deno.test("Backlog stops all readers while too many bytes wait for the client", async () => {
  const backlog = new Backlog(() => 10 * MB);
  const [one, two] = [{}, {}];
  backlog.size = 10 * MB;
  assert.ok(goes(backlog, one) && !backlog.isFull);
  backlog.size = 10 * MB + 1;
  assert.ok(backlog.isFull);
  const waiting = [backlog.waitForMemory(one, 0), backlog.waitForMemory(two, 5 * MB)];
  assert.ok(waiting.every((each) => each !== undefined));
  backlog.size = 0;
  await Promise.all(waiting);
  assert.ok(goes(backlog, one));
});

Deno.test("Backlog counts the bytes of incomplete long messages, and lets the first reader continue", async () => {
  const backlog = new Backlog(() => 10 * MB);
  const [one, two, three] = [{}, {}, {}];
  assert.ok(goes(backlog, one, 4 * MB));
  assert.ok(goes(backlog, two, 4 * MB));
  assert.ok(goes(backlog, one, 8 * MB), "the first one ends its message");
  const waiting = backlog.waitForMemory(two, 5 * MB);
  assert.ok(waiting !== undefined);
  assert.ok(!goes(backlog, three, 2 * MB));
  // Its message is complete, or it has ended.
  assert.ok(goes(backlog, one, 0));
  await waiting;
  assert.ok(goes(backlog, two, 9 * MB));
});

Deno.test("Backlog delays a long message once for stopped readers, and a short one never", async () => {
  const backlog = new Backlog(() => 2 * MB);
  const [stopped, long, short] = [{}, {}, {}];
  assert.ok(goes(backlog, stopped, 3 * MB));
  const since = performance.now();
  const waiting = backlog.waitForMemory(long, 2 * MB);
  assert.ok(goes(backlog, short, 0));
  await waiting;
  const took = performance.now() - since;
  assert.ok(took > 400 && took < 5_000, `${took} ms`);
  assert.ok(goes(backlog, long, 3 * MB), "it continues as the first reader");
});

Deno.test("Backlog delays a long message until the client reads", async () => {
  const backlog = new Backlog(() => 2 * MB);
  const [long, short] = [{}, {}];
  backlog.size = 3 * MB;
  let isOver = false;
  const waiting = backlog.waitForMemory(long, 2 * MB)?.then(() => isOver = true);
  // Short messages of a server are still read, now and then.
  await backlog.waitForMemory(short, 0);
  await backlog.waitForMemory(short, 0);
  assert.ok(!isOver);
  backlog.size = 0;
  await waiting;
});

Deno.test("Backlog sums the time in which too many bytes waited", async () => {
  const backlog = new Backlog(() => MB);
  assert.equal(backlog.fullMs, 0);
  const since = performance.now();
  for (let size = MB + 1; size <= MB + 4; size++) {
    backlog.size = size;
    await new Promise((resolve) => setTimeout(resolve, 10));
    assert.ok(backlog.fullMs > 5);
  }
  backlog.size = MB;
  const full = backlog.fullMs;
  assert.ok(full >= 35 && full <= performance.now() - since, `${full}`);
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(backlog.fullMs, full);
});

Deno.test("Backlog counts no time twice after its limit is raised", async () => {
  let max = MB;
  const backlog = new Backlog(() => max);
  backlog.size = MB + 1;
  await new Promise((resolve) => setTimeout(resolve, 10));
  const before = backlog.fullMs;
  max = 2 * MB;
  assert.ok(backlog.fullMs >= before);
  backlog.size = MB;
  const full = backlog.fullMs;
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(backlog.fullMs, full);
});

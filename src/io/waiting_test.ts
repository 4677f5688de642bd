import assert from "node:assert/strict";
import { onAbort, pause, soon, unlessAborted } from "./waiting.ts";

Deno.test("onAbort() acts once, at once if the signal has aborted, and never after it is disposed", () => {
  const [early, later, never] = [1, 2, 3].map(() => new AbortController());
  const acted: string[] = [];
  early?.abort();
  using _early = onAbort(early!.signal, () => acted.push("early"));
  using _later = onAbort(later!.signal, () => acted.push("later"));
  onAbort(never!.signal, () => acted.push("never"))[Symbol.dispose]();
  assert.deepEqual(acted, ["early"]);
  later?.abort();
  never?.abort();
  assert.deepEqual(acted, ["early", "later"]);
});

Deno.test("unlessAborted() returns the result of the work, or throws the reason of the abort", async () => {
  const { signal } = new AbortController();
  assert.equal(await unlessAborted(Promise.resolve(1), signal), 1);
  await assert.rejects(unlessAborted(Promise.reject(new Error("broken")), signal), /broken/);
  const over = AbortSignal.abort(new Error("over"));
  const { promise, reject } = Promise.withResolvers();
  await assert.rejects(unlessAborted(promise, over), /over/);
  await assert.rejects(unlessAborted(promise, over, () => new Error("other")), /other/);
  reject(new Error("told to nobody"));
});

Deno.test("soon() and pause() end by their time, or before it", async () => {
  const never = new Promise(() => {});
  assert.equal(await soon(never, 1), false);
  assert.equal(await soon(Promise.reject(new Error("broken")), 60_000), true);
  await pause(1, new AbortController().signal);
  await pause(60_000, AbortSignal.abort());
});

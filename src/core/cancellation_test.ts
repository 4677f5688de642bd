import assert from "node:assert/strict";
import { Cancellation } from "./cancellation.ts";

Deno.test("cancelling calls each listener once and aborts the signal with the reason", () => {
  const cancellation = new Cancellation();
  const reasons: unknown[] = [];
  const listeners = [1, 2, 3].map((id) => ({
    onCancel: (reason: unknown) => void reasons.push([id, reason]),
  }));
  for (const listener of listeners) cancellation.add(listener);
  const { signal } = cancellation;
  cancellation.cancel("first");
  cancellation.cancel("second");
  assert.deepEqual(reasons, [[1, "first"], [2, "first"], [3, "first"]]);
  assert.ok(cancellation.isCancelled);
  assert.equal(signal.reason, "first");
  assert.throws(() => cancellation.throwIfCancelled(), (error) => error === "first");
});

Deno.test("a removed listener is not called", () => {
  const cancellation = new Cancellation();
  const fail = () => assert.fail("it was called");
  const [first, second] = [{ onCancel: fail }, { onCancel: fail }];
  let count = 0;
  cancellation.add(first);
  cancellation.add(second);
  cancellation.remove(first);
  cancellation.add({ onCancel: () => void count++ });
  cancellation.remove(second);
  cancellation.cancel(undefined);
  assert.equal(count, 1);
});

Deno.test("a listener or a signal that comes after the cancellation has its reason", () => {
  const cancellation = new Cancellation();
  cancellation.cancel("over");
  const reasons: unknown[] = [];
  cancellation.add({ onCancel: (reason) => void reasons.push(reason) });
  assert.deepEqual(reasons, ["over"]);
  assert.equal(cancellation.signal.aborted, true);
  assert.equal(cancellation.signal.reason, "over");
});

Deno.test("a cancellation of a signal follows it until it is disposed", () => {
  const abort = new AbortController();
  const [followed, disposed] = [Cancellation.of(abort.signal), Cancellation.of(abort.signal)];
  disposed[Symbol.dispose]();
  abort.abort("gone");
  assert.equal(followed.reason, "gone");
  assert.equal(disposed.isCancelled, false);
  assert.equal(Cancellation.of(abort.signal).reason, "gone");
});

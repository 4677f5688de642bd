import assert from "node:assert/strict";
import type { RequestContext } from "../protocol/connection.ts";
import { RequestDrain } from "./_request_drain.ts";

/** Returns whether a promise has resolved. */
async function isOver(promise: Promise<void>): Promise<boolean> {
  let over = false;
  promise.then(() => over = true);
  for (let count = 0; count < 10; count++) await Promise.resolve();
  return over;
}

Deno.test("draining waits for requests and for notifications", async () => {
  for (const isRequestLast of [false, true]) {
    const drain = new RequestDrain();
    const [request, notification] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const context = {} as RequestContext; // it is read while it drains only
    void drain.serve(context, () => request.promise);
    void drain.track(notification.promise);
    const drained = drain.drain();
    assert.equal(await isOver(drained), false);
    const [first, last] = isRequestLast ? [notification, request] : [request, notification];
    first.resolve();
    assert.equal(await isOver(drained), false);
    last.resolve();
    assert.equal(await isOver(drained), true);
  }
});

import assert from "node:assert/strict";
import { type Following, Subscriptions } from "./_subscriptions.ts";

function untilAborted({ signal }: Following): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
}

Deno.test("Subscriptions follows a resource once for all who want it, until the last one goes", async () => {
  const followed: Following[] = [];
  using subscriptions = new Subscriptions(async (following) => {
    followed.push(following);
    following.onAgreed();
    await untilAborted(following);
  }, () => {});
  await subscriptions.add("one", "test://a");
  await subscriptions.add("one", "test://a");
  assert.equal(followed.length, 1);
  subscriptions.remove("one", "test://a");
  assert.equal(followed[0]?.signal.aborted, false);
  subscriptions.remove("one", "test://a");
  assert.equal(followed[0]?.signal.aborted, true);
});

Deno.test("Subscriptions tells who asked that the server does not agree, and asks no more", async () => {
  let asked = 0;
  using subscriptions = new Subscriptions(() => {
    asked++;
    return Promise.reject(new Error("no"));
  }, () => {});
  await assert.rejects(subscriptions.add("one", "test://a"), /no/);
  await assert.rejects(subscriptions.add("one", "test://a"), /no/);
  assert.equal(asked, 2);
});

Deno.test("Subscriptions follows anew when the server ended", async () => {
  const lost: unknown[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  let asked = 0;
  using subscriptions = new Subscriptions(async (following) => {
    following.onAgreed();
    if (++asked === 1) throw new Error("it died");
    resolve();
    await untilAborted(following);
  }, (_, error) => lost.push(error));
  await subscriptions.add("one", "test://a");
  await promise;
  assert.match(String(lost[0]), /it died/);
});

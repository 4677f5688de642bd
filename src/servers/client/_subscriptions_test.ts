import assert from "node:assert/strict";
import { RpcError } from "../../protocol/errors.ts";
import { type Follow, type ResourceSubscription, ResourceSubscriptions } from "./_subscriptions.ts";

const A = { server: "one", uri: "test://a" };
const NEVER = new AbortController().signal;

/** Listens to the errors of following, and to resources that are followed again. */
interface Listeners {
  readonly lost?: (text: string) => void;
  readonly again?: (server: string, uri: string) => void;
}

function subscribing(follow: Follow, { lost, again }: Listeners = {}): ResourceSubscriptions {
  const host = {
    logServer: (_: string, __: string, text: string) => lost?.(text),
    clients: { onResourceUpdated: (server: string, uri: string) => again?.(server, uri) },
  };
  return new ResourceSubscriptions(host, follow);
}

function untilAborted({ signal }: ResourceSubscription): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
}

Deno.test("Subscriptions follows a resource once for all followers, until the last one is removed", async () => {
  const followed: ResourceSubscription[] = [];
  using subscriptions = subscribing(async (following) => {
    followed.push(following);
    following.onAgreed();
    await untilAborted(following);
  });
  await subscriptions.add(A, NEVER);
  await subscriptions.add(A, NEVER);
  assert.equal(followed.length, 1);
  subscriptions.remove(A);
  assert.equal(followed[0]?.signal.aborted, false);
  subscriptions.remove(A);
  assert.equal(followed[0]?.signal.aborted, true);
});

Deno.test("Subscriptions.add() throws if the server refuses, which is not asked again", async () => {
  let asked = 0;
  using subscriptions = subscribing(() => {
    asked++;
    return Promise.reject(new Error("no"));
  });
  await assert.rejects(subscriptions.add(A, NEVER), /no/);
  await assert.rejects(subscriptions.add(A, NEVER), /no/);
  assert.equal(asked, 2);
});

Deno.test("Subscriptions.add() waits for the next try if the first one is begun again", async () => {
  let tries = 0;
  using subscriptions = subscribing(async (following) => {
    if (++tries > 1) following.onAgreed();
    await untilAborted(following);
    following.signal.throwIfAborted();
  });
  const added = subscriptions.add(A, NEVER).then(() => "followed", String);
  // An approval, for example, changes the configuration.
  subscriptions.followAllAgain();
  assert.equal(await added, "followed");
  assert.equal(tries, 2);
});

Deno.test("Subscriptions asks again if a try is refused while the next one begins", async () => {
  let tries = 0;
  using subscriptions = subscribing(async (following) => {
    if (++tries > 1) following.onAgreed();
    await untilAborted(following);
    if (tries === 1) throw new RpcError(-32603, "not now");
  });
  const added = subscriptions.add(A, NEVER).then(() => "followed", String);
  subscriptions.followAllAgain();
  assert.equal(await added, "followed");
});

Deno.test("Subscriptions follows again after the server ended, and reports it", async () => {
  const lost: unknown[] = [];
  const again: unknown[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  let asked = 0;
  using subscriptions = subscribing(async (following) => {
    following.onAgreed();
    if (++asked === 1) throw new Error("it died");
    resolve();
    await untilAborted(following);
  }, { lost: (text) => lost.push(text), again: (...one) => again.push(one) });
  await subscriptions.add(A, NEVER);
  await promise;
  assert.match(String(lost[0]), /it died/);
  assert.deepEqual(again, [["one", "test://a"]], "it may have changed in between");
});

Deno.test("Subscriptions counts each follower once, also if others fail", async () => {
  const attempts: PromiseWithResolvers<void>[] = [];
  const followed: ResourceSubscription[] = [];
  using subscriptions = subscribing(async (following) => {
    const attempt = Promise.withResolvers<void>();
    attempts.push(attempt);
    followed.push(following);
    await attempt.promise;
    following.onAgreed();
    await untilAborted(following);
  });
  const first = subscriptions.add(A, NEVER);
  subscriptions.remove(A);
  const second = subscriptions.add(A, NEVER);
  attempts[0]?.reject(new Error("too late"));
  await assert.rejects(first, /too late/);
  attempts[1]?.resolve();
  await second;
  assert.equal(followed[1]?.signal.aborted, false);
  subscriptions.remove(A);
  assert.equal(followed[1]?.signal.aborted, true);
});

Deno.test("Subscriptions stops when the only follower of a silent server cancels", async () => {
  const followed: ResourceSubscription[] = [];
  using subscriptions = subscribing(async (following) => {
    followed.push(following);
    await untilAborted(following);
  });
  const abort = new AbortController();
  const asked = subscriptions.add(A, abort.signal);
  abort.abort(new Error("late"));
  await assert.rejects(asked, /late/);
  assert.equal(followed[0]?.signal.aborted, true);
});

Deno.test("Subscriptions.again() follows everything again, except for a server that refuses", async () => {
  const lost: string[] = [];
  const refused = Promise.withResolvers<void>();
  let asked = 0;
  using subscriptions = subscribing(async (following) => {
    if (++asked === 2) throw new RpcError(-32601, "no such method");
    following.onAgreed();
    await untilAborted(following);
  }, {
    lost: (text) => {
      lost.push(text);
      refused.resolve();
    },
  });
  await subscriptions.add(A, NEVER);
  subscriptions.followAllAgain();
  await refused.promise;
  assert.deepEqual([asked, lost.length], [2, 1]);
  assert.match(lost[0] ?? "", /no such method/);
});

Deno.test("Subscriptions.add() asks a server again that refused to follow a resource again", async () => {
  const attempts: ResourceSubscription[] = [];
  const refused = Promise.withResolvers<void>();
  using subscriptions = subscribing(async (following) => {
    if (attempts.push(following) === 2) throw new RpcError(-32603, "not now");
    following.onAgreed();
    await untilAborted(following);
  }, { lost: () => refused.resolve() });
  await subscriptions.add(A, NEVER);
  subscriptions.followAllAgain();
  await refused.promise;
  await subscriptions.add(A, NEVER);
  assert.equal(attempts.length, 3);
  subscriptions.remove(A);
  assert.equal(attempts[2]?.signal.aborted, false, "the other one follows");
  subscriptions.remove(A);
  assert.equal(attempts[2]?.signal.aborted, true);
});

Deno.test("Subscriptions rejects waiting followers when PML ends", async () => {
  const subscriptions = subscribing(async ({ signal }) => {
    await untilAborted({ signal } as ResourceSubscription);
    throw signal.reason;
  });
  const asked = subscriptions.add(A, NEVER);
  subscriptions[Symbol.dispose]();
  await assert.rejects(asked, {
    code: "CANCELLED",
    message: "Cannot follow a resource: PML is ending",
  });
});

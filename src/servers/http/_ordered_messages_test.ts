import assert from "node:assert/strict";
import { settlesWithin, yieldTurn } from "../../io/waiting.ts";
import { OrderedMessages } from "./_ordered_messages.ts";

Deno.test("a message to a server is sent after the one before it has arrived", async () => {
  const messages = new OrderedMessages();
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const begun: number[] = [];
  const send = (at: number, arrived: Promise<void>) =>
    messages.add(() => (begun.push(at), arrived));
  void send(1, first.promise);
  void send(2, second.promise);
  const last = send(3, Promise.resolve());
  await yieldTurn();
  assert.deepEqual(begun, [1]);
  first.resolve();
  await yieldTurn();
  assert.deepEqual(begun, [1, 2]);
  assert.equal(await settlesWithin(messages.allSent(), 10), false);
  second.resolve();
  await Promise.all([last, messages.allSent()]);
  assert.deepEqual(begun, [1, 2, 3]);
});

Deno.test("a message to a server does not wait long for one that hangs", async () => {
  const messages = new OrderedMessages();
  void messages.add(() => new Promise<void>(() => {}));
  assert.ok(await settlesWithin(messages.add(() => Promise.resolve()), 5_000));
});

import assert from "node:assert/strict";
import { SentBytes, SentEvents } from "./_sent_events.ts";

Deno.test("a session that is idle does not keep others from storing their events", () => {
  const shared = new SentBytes(10);
  using idle = new SentEvents(shared);
  using other = new SentEvents(shared);
  const [first, second] = ["aaaaa", "bbbbb"].map((text) => idle.add("idle", text));
  const id = other.add("other", "ccccc");
  assert.equal(other.streamOf(id), "other");
  assert.deepEqual([first, second].map((one) => idle.streamOf(one ?? "")), [undefined, "idle"]);
  assert.equal(shared.bytes, 10);
  other[Symbol.dispose]();
  other.add("other", "ccccc");
  assert.equal(shared.bytes, 5, "a session that has ended stores nothing");
});

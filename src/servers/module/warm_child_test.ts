import assert from "node:assert/strict";
import { until } from "../../../tests/kit/wait.ts";
import { WarmChildren } from "./warm_child.ts";

class Thing {
  isAlive = true;

  [Symbol.asyncDispose](): Promise<void> {
    this.isAlive = false;
    return Promise.resolve();
  }
}

/** A set of warm children, and all children that were opened for it. */
function opening(idleMs = 60_000) {
  const opened: Thing[] = [];
  const open = () => {
    opened.push(new Thing());
    return Promise.resolve(opened.at(-1) as Thing);
  };
  return { warm: new WarmChildren<Thing>(() => idleMs, 0), opened, open };
}

/** Waits until all work of this turn is done. */
async function turn(): Promise<void> {
  await new Promise((done) => setTimeout(done));
}

Deno.test("take() returns the warm child to one caller, and opens another for the next one", async () => {
  const { warm, opened, open } = opening();
  await using _ = warm;
  warm.keep("a", open);
  await turn();
  warm.keep("a", open);
  await turn();
  assert.equal(opened.length, 1);
  const [one, two] = await Promise.all([warm.take("a", open), warm.take("a", open)]);
  assert.equal(one, opened[0]);
  assert.notEqual(two, one);
});

Deno.test("take() returns no child of another key, and only children of the last key are kept", async () => {
  const { warm, opened, open } = opening();
  await using _ = warm;
  warm.keep("a", open);
  await turn();
  assert.notEqual(await warm.take("b", open), opened[0]);
  warm.keep("b", open);
  await turn();
  assert.equal(opened[0]?.isAlive, false);
});

Deno.test("take() returns no child that died, and unused children are closed", async () => {
  const { warm, opened, open } = opening(20);
  warm.keep("a", open);
  await turn();
  (opened[0] as Thing).isAlive = false;
  const taken = await warm.take("a", open);
  assert.equal(taken.isAlive, true);
  warm.keep("a", open);
  await until(() => opened.length === 3 && !opened[2]?.isAlive);
  await warm[Symbol.asyncDispose]();
});

Deno.test("keep() starts no child at once, and none after the disposal", async () => {
  const { warm, opened, open } = opening();
  warm.keep("a", open);
  assert.equal(opened.length, 0);
  await warm[Symbol.asyncDispose]();
  await turn();
  await turn();
  assert.equal(opened.length, 0);
});

Deno.test("keep() with the option now starts one child at once", async () => {
  const { warm, opened, open } = opening();
  await using _ = warm;
  warm.keep("a", open);
  warm.keep("a", open, { now: true });
  assert.equal(opened.length, 1);
  warm.keep("a", open);
  await turn();
  assert.equal(await warm.take("a", open), opened[0]);
  assert.equal(opened.length, 1);
});

Deno.test("no child starts for a key that another key has replaced", async () => {
  const { warm, opened, open } = opening();
  await using _ = warm;
  warm.keep("a", () => Promise.reject(new Error("of the key before")));
  warm.keep("b", open);
  await turn();
  await turn();
  assert.equal(opened.length, 1);
  assert.equal(await warm.take("b", () => Promise.reject(new Error("none is kept"))), opened[0]);
});

Deno.test("after a failed start, the next take() throws the new error", async () => {
  const { warm } = opening();
  await using _ = warm;
  const fail = () => Promise.reject(new Error("no"));
  warm.keep("a", fail);
  await turn();
  await assert.rejects(warm.take("a", fail), /no/);
});

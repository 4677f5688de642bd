import assert from "node:assert/strict";
import { until } from "../../../tests/kit/wait.ts";
import { WarmChildren } from "./warm_child.ts";

class Thing {
  alive = true;

  [Symbol.asyncDispose](): Promise<void> {
    this.alive = false;
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

Deno.test("WarmChildren gives what is ready to one taker, and opens another for the next", async () => {
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

Deno.test("WarmChildren gives nothing of another key, and keeps the last key only", async () => {
  const { warm, opened, open } = opening();
  await using _ = warm;
  warm.keep("a", open);
  await turn();
  assert.notEqual(await warm.take("b", open), opened[0]);
  warm.keep("b", open);
  await turn();
  assert.equal(opened[0]?.alive, false);
});

Deno.test("WarmChildren gives none that died, and closes what nobody takes", async () => {
  const { warm, opened, open } = opening(20);
  warm.keep("a", open);
  await turn();
  (opened[0] as Thing).alive = false;
  const taken = await warm.take("a", open);
  assert.equal(taken.alive, true);
  warm.keep("a", open);
  await until(() => opened.length === 3 && !opened[2]?.alive);
  await warm[Symbol.asyncDispose]();
});

Deno.test("WarmChildren starts nothing at once, and nothing after its end", async () => {
  const { warm, opened, open } = opening();
  warm.keep("a", open);
  assert.equal(opened.length, 0);
  await warm[Symbol.asyncDispose]();
  await turn();
  await turn();
  assert.equal(opened.length, 0);
});

Deno.test("WarmChildren starts a child at once where it is asked to, and only one", async () => {
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

Deno.test("WarmChildren starts none of a key that another has replaced", async () => {
  const { warm, opened, open } = opening();
  await using _ = warm;
  warm.keep("a", () => Promise.reject(new Error("of the key before")));
  warm.keep("b", open);
  await turn();
  await turn();
  assert.equal(opened.length, 1);
  assert.equal(await warm.take("b", () => Promise.reject(new Error("none is kept"))), opened[0]);
});

Deno.test("WarmChildren forgets a start that failed: the next taker is told why", async () => {
  const { warm } = opening();
  await using _ = warm;
  const fail = () => Promise.reject(new Error("no"));
  warm.keep("a", fail);
  await turn();
  await assert.rejects(warm.take("a", fail), /no/);
});

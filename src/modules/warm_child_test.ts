import assert from "node:assert/strict";
import { until } from "../../tests/kit/wait.ts";
import { Blanks } from "./warm_child.ts";

class Thing {
  alive = true;

  [Symbol.asyncDispose](): Promise<void> {
    this.alive = false;
    return Promise.resolve();
  }
}

/** A set of blanks, and all things that were opened for it. */
function opening(idleMs = 60_000) {
  const opened: Thing[] = [];
  const open = () => {
    opened.push(new Thing());
    return Promise.resolve(opened.at(-1) as Thing);
  };
  return { blanks: new Blanks<Thing>(() => idleMs, 0), opened, open };
}

/** Lets all that waits for the next turn have it. */
async function turn(): Promise<void> {
  await new Promise((done) => setTimeout(done));
}

Deno.test("Blanks gives what is ready to one taker, and opens another for the next", async () => {
  const { blanks, opened, open } = opening();
  await using _ = blanks;
  blanks.keep("a", open);
  await turn();
  blanks.keep("a", open);
  await turn();
  assert.equal(opened.length, 1);
  const [one, two] = await Promise.all([blanks.take("a", open), blanks.take("a", open)]);
  assert.equal(one, opened[0]);
  assert.notEqual(two, one);
});

Deno.test("Blanks gives nothing of another key, and keeps the last key only", async () => {
  const { blanks, opened, open } = opening();
  await using _ = blanks;
  blanks.keep("a", open);
  await turn();
  assert.notEqual(await blanks.take("b", open), opened[0]);
  blanks.keep("b", open);
  await turn();
  assert.equal(opened[0]?.alive, false);
});

Deno.test("Blanks gives none that died, and closes what nobody takes", async () => {
  const { blanks, opened, open } = opening(20);
  blanks.keep("a", open);
  await turn();
  (opened[0] as Thing).alive = false;
  const taken = await blanks.take("a", open);
  assert.equal(taken.alive, true);
  blanks.keep("a", open);
  await until(() => opened.length === 3 && !opened[2]?.alive);
  await blanks[Symbol.asyncDispose]();
});

Deno.test("Blanks starts nothing at once, and nothing after its end", async () => {
  const { blanks, opened, open } = opening();
  blanks.keep("a", open);
  assert.equal(opened.length, 0);
  await blanks[Symbol.asyncDispose]();
  await turn();
  await turn();
  assert.equal(opened.length, 0);
});

Deno.test("Blanks starts none of a key that another has replaced", async () => {
  const { blanks, opened, open } = opening();
  await using _ = blanks;
  blanks.keep("a", () => Promise.reject(new Error("of the key before")));
  blanks.keep("b", open);
  await turn();
  await turn();
  assert.equal(opened.length, 1);
  assert.equal(await blanks.take("b", () => Promise.reject(new Error("none is kept"))), opened[0]);
});

Deno.test("Blanks forgets a start that failed: the next taker is told why", async () => {
  const { blanks } = opening();
  await using _ = blanks;
  const fail = () => Promise.reject(new Error("no"));
  blanks.keep("a", fail);
  await turn();
  await assert.rejects(blanks.take("a", fail), /no/);
});

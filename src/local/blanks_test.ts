import assert from "node:assert/strict";
import { Blanks } from "./blanks.ts";

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
  return { blanks: new Blanks<Thing>(() => idleMs), opened, open };
}

Deno.test("Blanks gives what is ready to one taker, and opens another for the next", async () => {
  const { blanks, opened, open } = opening();
  await using _ = blanks;
  blanks.keep("a", open);
  blanks.keep("a", open);
  assert.equal(opened.length, 1);
  const [one, two] = await Promise.all([blanks.take("a", open), blanks.take("a", open)]);
  assert.equal(one, opened[0]);
  assert.notEqual(two, one);
});

Deno.test("Blanks gives nothing of another key, and keeps the last key only", async () => {
  const { blanks, opened, open } = opening();
  await using _ = blanks;
  blanks.keep("a", open);
  assert.notEqual(await blanks.take("b", open), opened[0]);
  blanks.keep("b", open);
  await new Promise((turn) => setTimeout(turn));
  assert.equal(opened[0]?.alive, false);
});

Deno.test("Blanks gives none that died, and closes what nobody takes", async () => {
  const { blanks, opened, open } = opening(0);
  blanks.keep("a", open);
  (opened[0] as Thing).alive = false;
  const taken = await blanks.take("a", open);
  assert.equal(taken.alive, true);
  blanks.keep("a", open);
  await new Promise((turn) => setTimeout(turn, 5));
  assert.equal(opened.at(-1)?.alive, false);
  await blanks[Symbol.asyncDispose]();
});

Deno.test("Blanks forgets a start that failed: the next taker is told why", async () => {
  const { blanks } = opening();
  await using _ = blanks;
  const fail = () => Promise.reject(new Error("no"));
  blanks.keep("a", fail);
  await assert.rejects(blanks.take("a", fail), /no/);
});

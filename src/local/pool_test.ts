import assert from "node:assert/strict";
import fc from "fast-check";
import { type Living, Pool } from "./pool.ts";

class Thing implements Living {
  alive = true;
  pending = 0;
  closed = false;

  [Symbol.asyncDispose](): Promise<void> {
    this.alive = false;
    this.closed = true;
    return Promise.resolve();
  }
}

Deno.test("Pool starts one thing for many calls at once", async () => {
  const started: Thing[] = [];
  await using pool = new Pool<Thing>(() => ({ idleMs: 60_000, idleChildren: 8 }));
  const start = () => {
    started.push(new Thing());
    return Promise.resolve(started[0] as Thing);
  };
  const uses = Array.from(
    { length: 100 },
    () => pool.use("a", { start, use: (thing) => Promise.resolve(thing) }),
  );
  await Promise.all(uses);
  assert.equal(started.length, 1);
});

Deno.test("Pool starts another after the first died, and after a start that failed", async () => {
  await using pool = new Pool<Thing>(() => ({ idleMs: 60_000, idleChildren: 8 }));
  const first = await pool.use("a", {
    start: () => Promise.resolve(new Thing()),
    use: (thing) => Promise.resolve(thing),
  });
  first.alive = false;
  await assert.rejects(
    pool.use("a", { start: () => Promise.reject(new Error("no")), use: () => Promise.resolve() }),
    /no/,
  );
  const next = await pool.use("a", {
    start: () => Promise.resolve(new Thing()),
    use: (thing) => Promise.resolve(thing),
  });
  assert.ok(next.alive && next !== first);
});

Deno.test("Pool never closes a thing while a call uses it, however short the idle time", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(3), { maxLength: 12 }), async (waits) => {
      await using pool = new Pool<Thing>(() => ({ idleMs: 0, idleChildren: 8 }));
      for (const wait of waits) {
        await pool.use("a", {
          start: () => Promise.resolve(new Thing()),
          use: async (thing) => {
            await new Promise((resolve) => setTimeout(resolve, wait));
            assert.ok(!thing.closed);
          },
        });
        await new Promise((resolve) => setTimeout(resolve, wait));
      }
    }),
    { numRuns: 20 },
  );
});

Deno.test("Pool closes everything when it is disposed", async () => {
  const thing = new Thing();
  {
    await using pool = new Pool<Thing>(() => ({ idleMs: 60_000, idleChildren: 8 }));
    await pool.use("a", { start: () => Promise.resolve(thing), use: () => Promise.resolve() });
    assert.ok(!thing.closed);
  }
  assert.ok(thing.closed);
});

Deno.test("Pool gives new calls another thing while one that was given up goes on", async () => {
  const start = () => Promise.resolve(new Thing());
  const hanging = new Thing();
  const held = Promise.withResolvers<void>();
  let running: Promise<void>;
  {
    await using pool = new Pool<Thing>(() => ({ idleMs: 60_000, idleChildren: 8 }));
    const use = (thing: Thing) => held.promise.then(() => assert.ok(!thing.closed));
    running = pool.use("a", { start: () => Promise.resolve(hanging), use });
    await Promise.resolve();
    // One use is waited for, the other was given up.
    hanging.pending = 2;
    const next = await pool.use("a", { start, use: (thing) => Promise.resolve(thing) });
    assert.ok(next !== hanging && !hanging.closed);
    assert.equal(await pool.use("a", { start, use: (thing) => Promise.resolve(thing) }), next);
    held.resolve();
    await running;
    assert.ok(!hanging.closed);
  }
  assert.ok(hanging.closed);
});

Deno.test("Pool keeps so many unused things, and gives up the one that was used longest ago", async () => {
  const limits = { idleMs: 60_000, idleChildren: 2 };
  await using pool = new Pool<Thing>(() => limits);
  const things = new Map<string, Thing>();
  const use = (key: string, work = () => Promise.resolve()) =>
    pool.use(key, {
      start: () => {
        const thing = new Thing();
        things.set(key, thing);
        return Promise.resolve(thing);
      },
      use: work,
    });
  const busy = Promise.withResolvers<void>();
  const held = use("held", () => busy.promise);
  for (const key of ["a", "b", "a", "c"]) await use(key);
  await Promise.resolve();
  const closed = () => [...things].filter(([, thing]) => thing.closed).map(([key]) => key);
  assert.deepEqual(closed(), ["b"]);
  busy.resolve();
  await held;
  await new Promise((turn) => setTimeout(turn));
  assert.deepEqual(closed(), ["a", "b"].sort());
});

Deno.test("Pool lets a key wait that dies again and again, longer each time, and no other", async () => {
  let now = 0;
  await using pool = new Pool<Thing>(() => ({ idleMs: 60_000, idleChildren: 8 }), () => now);
  let started = 0;
  const die = (key = "bad") =>
    pool.use(key, {
      start: () => {
        started++;
        return Promise.resolve(new Thing());
      },
      use: (thing) => {
        thing.alive = false;
        return Promise.reject(new Error("dead"));
      },
    });
  const code = (error: unknown) => Object(error).code ?? "dead";
  const tries = async (count: number) => {
    const said = [];
    for (let at = 0; at < count; at++) said.push(await die().then(() => "", code));
    return said;
  };
  assert.deepEqual(await tries(7), [
    ..."dead ".repeat(5).trim().split(" "),
    ...twice("SANDBOX_CRASHED"),
  ]);
  assert.equal(started, 5);
  assert.equal(await die("other").then(() => "", code), "dead");
  now = 499;
  assert.deepEqual(await tries(1), ["SANDBOX_CRASHED"]);
  now = 500;
  assert.deepEqual(await tries(2), ["dead", "SANDBOX_CRASHED"]);
  now = 1_499;
  assert.deepEqual(await tries(1), ["SANDBOX_CRASHED"]);
  now = 1_500;
  const good = await pool.use("bad", {
    start: () => Promise.resolve(new Thing()),
    use: () => Promise.resolve("good"),
  });
  assert.equal(good, "good");
  assert.deepEqual(await tries(5), Array(5).fill("dead"), "a good use forgets the deaths");
});

function twice(word: string): string[] {
  return [word, word];
}

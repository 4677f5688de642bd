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

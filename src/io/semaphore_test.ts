import assert from "node:assert/strict";
import fc from "fast-check";
import { Semaphore } from "./semaphore.ts";
import { type Living, Pool } from "./pool.ts";

class Thing implements Living {
  isAlive = true;
  pending = 0;
  place: Disposable | undefined;

  [Symbol.asyncDispose](): Promise<void> {
    this.isAlive = false;
    this.place?.[Symbol.dispose]();
    return Promise.resolve();
  }
}

/** Returns a pool with `most` places, and a function that makes calls, which can make others. */
function poolOf(most: number) {
  const places: Semaphore = new Semaphore({
    maxPlaces: most,
    get endingCount() {
      return pool.endingCount;
    },
    closeUnused: () => pool.closeUnused(),
  });
  const poolLimits = { idleMs: 60_000, idleChildren: 8 };
  const pool: Pool<Thing> = new Pool({ poolLimits, deathCode: "SANDBOX_CRASHED" }, places);
  const state = { living: 0, most: 0 };
  const call = async (key: string, within: () => Promise<void>, isNested = false) => {
    using _ = isNested ? places.passLimit(key) : undefined;
    const start = async () => {
      const place = await places.acquire(key);
      const thing = new Thing();
      state.most = Math.max(state.most, ++state.living);
      thing.place = {
        [Symbol.dispose]() {
          state.living--;
          place[Symbol.dispose]();
        },
      };
      return thing;
    };
    await pool.use(key, { name: key, start, use: within, isUrgent: isNested });
  };
  return { pool, places, call, state };
}

interface Tree {
  readonly key: string;
  readonly within: readonly Tree[];
}

function treesOf(depth: number): fc.Arbitrary<readonly Tree[]> {
  if (depth === 0) return fc.constant([]);
  const key = fc.constantFrom("a", "b", "c", "d");
  return fc.array(fc.record({ key, within: treesOf(depth - 1) }), { maxLength: 3 });
}

Deno.test("Slots causes no deadlock between a call and a call that waits for it (GW5)", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      treesOf(3),
      fc.constantFrom(1, 2),
      async (scheduler, trees, most) => {
        const { pool, call } = poolOf(most);
        const run = ({ key, within }: Tree, isNested: boolean): Promise<void> =>
          call(key, async () => {
            await scheduler.schedule(Promise.resolve(), `works on ${key}`);
            await Promise.all(within.map((one) => run(one, true)));
          }, isNested);
        await scheduler.waitFor(Promise.all(trees.map((one) => run(one, false))));
        await pool[Symbol.asyncDispose]();
      },
    ),
    { numRuns: 500 },
  );
});

Deno.test("Slots serves the queue even if the other things are always in use", async () => {
  const { pool, call, state } = poolOf(1);
  let isServed = false;
  let calls = 0;
  // Each ends when the next one has begun, so their child is in use all the time.
  const hot = async (): Promise<void> => {
    calls++;
    const over = Promise.withResolvers<void>();
    const running = call("hot", () => over.promise);
    await new Promise((resolve) => setTimeout(resolve, 10));
    const next = isServed ? undefined : hot();
    over.resolve();
    await Promise.all([running, next]);
  };
  const heat = hot();
  await call("cold", () => Promise.resolve().then(() => void (isServed = true)));
  await heat;
  assert.ok(calls > 10, `only ${calls} calls were before it`);
  assert.equal(state.most, 1);
  await pool[Symbol.asyncDispose]();
});

Deno.test("Semaphore.tryAcquire() returns a place only if no caller waits", async () => {
  const places: Semaphore = new Semaphore({
    maxPlaces: 1,
    endingCount: 0,
    closeUnused: () => false,
  });
  const first = places.tryAcquire();
  assert.ok(first !== undefined && places.tryAcquire() === undefined);
  const waiting = places.acquire("a");
  assert.ok(places.isWaiting("a"));
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  assert.equal(places.tryAcquire(), undefined);
  (await waiting)[Symbol.dispose]();
  assert.ok(!places.isWaiting("a") && places.tryAcquire() !== undefined);
});

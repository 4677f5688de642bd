import assert from "node:assert/strict";
import fc from "fast-check";
import { type Living, Pool, type PoolLimits, type TimerClock } from "./pool.ts";

class Thing implements Living {
  isAlive = true;
  pending = 0;
  closed = false;

  [Symbol.asyncDispose](): Promise<void> {
    this.isAlive = false;
    this.closed = true;
    return Promise.resolve();
  }
}

function poolOf(
  { idleMs = 60_000, idleChildren = 8, clock }: Partial<PoolLimits> & {
    readonly clock?: TimerClock;
  } = {},
): Pool<Thing> {
  const poolLimits = { idleMs, idleChildren };
  return new Pool<Thing>({ poolLimits, deathCode: "SANDBOX_CRASHED" }, undefined, clock);
}

Deno.test("Pool starts one thing for many concurrent calls", async () => {
  const started: Thing[] = [];
  await using pool = poolOf();
  const start = () => {
    started.push(new Thing());
    return Promise.resolve(started[0] as Thing);
  };
  const uses = Array.from(
    { length: 100 },
    () => pool.use("a", { name: "it", start, use: (thing) => Promise.resolve(thing) }),
  );
  await Promise.all(uses);
  assert.equal(started.length, 1);
});

Deno.test("Pool starts another thing after one died, and after a failed start", async () => {
  await using pool = poolOf();
  const first = await pool.use("a", {
    name: "it",
    start: () => Promise.resolve(new Thing()),
    use: (thing) => Promise.resolve(thing),
  });
  first.isAlive = false;
  await assert.rejects(
    pool.use("a", {
      name: "it",
      start: () => Promise.reject(new Error("no")),
      use: () => Promise.resolve(),
    }),
    /no/,
  );
  const next = await pool.use("a", {
    name: "it",
    start: () => Promise.resolve(new Thing()),
    use: (thing) => Promise.resolve(thing),
  });
  assert.ok(next.isAlive && next !== first);
});

Deno.test("Pool never closes a thing during a call, even when the idle time ends (SP6)", async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), fc.integer({ min: 1, max: 8 }), async (scheduler, calls) => {
      const clock = { now: () => 0, callLater: laterBy(scheduler) };
      const pool = poolOf({ idleMs: 0, clock });
      const things: Thing[] = [];
      const start = async () => {
        assert.ok(things.every(({ closed }) => closed), "two at a time");
        const thing = new Thing();
        things.push(thing);
        await scheduler.schedule(Promise.resolve(), "started");
        return thing;
      };
      const use = async (thing: Thing) => {
        assert.ok(!thing.closed);
        await scheduler.schedule(Promise.resolve(), "answered");
        assert.ok(!thing.closed, "closed during a call");
        return "answer";
      };
      const asked = Array.from({ length: calls }, async (_, at) => {
        await scheduler.schedule(Promise.resolve(), `call ${at}`);
        return await pool.use("a", { name: "it", start, use });
      });
      await scheduler.waitFor(Promise.all(asked));
      assert.deepEqual(await Promise.all(asked), asked.map(() => "answer"));
      await pool[Symbol.asyncDispose]();
      assert.ok(things.every(({ closed }) => closed));
    }),
    { numRuns: 1_000 },
  );
});

/** Returns timers that fire when the scheduler chooses. */
function laterBy(scheduler: fc.Scheduler): TimerClock["callLater"] {
  return (call) => {
    let isOn = true;
    scheduler.schedule(Promise.resolve(), "idle time").then(() => isOn && call());
    return () => isOn = false;
  };
}

Deno.test("Pool closes everything when it is disposed", async () => {
  const thing = new Thing();
  {
    await using pool = poolOf();
    await pool.use("a", {
      name: "it",
      start: () => Promise.resolve(thing),
      use: () => Promise.resolve(),
    });
    assert.ok(!thing.closed);
  }
  assert.ok(thing.closed);
});

Deno.test("Pool starts another thing for new calls while a cancelled call goes on", async () => {
  const start = () => Promise.resolve(new Thing());
  const hanging = new Thing();
  const held = Promise.withResolvers<void>();
  let running: Promise<void>;
  {
    await using pool = poolOf();
    const began = Promise.withResolvers<void>();
    const use = (thing: Thing) => {
      began.resolve();
      return held.promise.then(() => assert.ok(!thing.closed));
    };
    running = pool.use("a", { name: "it", start: () => Promise.resolve(hanging), use });
    await began.promise;
    // One use is still running, the other was cancelled.
    hanging.pending = 2;
    const next = await pool.use("a", { name: "it", start, use: (thing) => Promise.resolve(thing) });
    assert.ok(next !== hanging && !hanging.closed);
    assert.equal(
      await pool.use("a", { name: "it", start, use: (thing) => Promise.resolve(thing) }),
      next,
    );
    held.resolve();
    await running;
    assert.ok(!hanging.closed);
  }
  assert.ok(hanging.closed);
});

Deno.test("Pool keeps a number of unused things, and closes the least recently used one", async () => {
  await using pool = poolOf({ idleChildren: 2 });
  const things = new Map<string, Thing>();
  const use = (key: string, work = () => Promise.resolve()) =>
    pool.use(key, {
      name: "it",
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

Deno.test("Pool delays the start of a key that always dies, longer each time, and no other key", async () => {
  let now = 0;
  const clock = { now: () => now, callLater: () => () => {} };
  await using pool = poolOf({ clock });
  let started = 0;
  const die = (key = "bad") =>
    pool.use(key, {
      name: "it",
      start: () => {
        started++;
        return Promise.resolve(new Thing());
      },
      use: (thing) => {
        thing.isAlive = false;
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
    name: "it",
    start: () => Promise.resolve(new Thing()),
    use: () => Promise.resolve("good"),
  });
  assert.equal(good, "good");
  assert.deepEqual(await tries(5), Array(5).fill("dead"), "a successful use resets the deaths");
});

function twice(word: string): string[] {
  return [word, word];
}

Deno.test("Pool keeps a thing while it is in use, and closes it some time after the last use", async () => {
  let now = 0;
  const timers: { readonly at: number; readonly call: () => void; isOff: boolean }[] = [];
  const later = (call: () => void, ms: number) => {
    const timer = { at: now + ms, call, isOff: false };
    timers.push(timer);
    return () => void (timer.isOff = true);
  };
  const pass = (ms: number) => {
    now += ms;
    for (const one of timers.filter(({ at, isOff }) => at <= now && !isOff)) {
      one.isOff = true;
      one.call();
    }
  };
  await using pool = poolOf({ idleMs: 100, clock: { now: () => now, callLater: later } });
  assert.equal(pool.hold("a", "1"), undefined, "nothing runs");
  const start = () => Promise.resolve(new Thing());
  const use = (thing: Thing) => Promise.resolve(thing);
  const thing = await pool.use("a", { name: "it", version: "1", start, use });
  assert.deepEqual([pool.find("a", "1"), pool.find("a", "2")], [thing, undefined]);
  pass(60);
  for (let at = 0; at < 9; at++) pool.hold("a", "1")?.[Symbol.dispose]();
  assert.equal(timers.length, 1, "uses that follow each other set no timer");
  const held = pool.hold("a", "1");
  pass(60);
  pass(500);
  assert.equal(thing.closed, false);
  held?.[Symbol.dispose]();
  pass(99);
  assert.equal(thing.closed, false);
  pass(1);
  await Promise.resolve();
  assert.equal(pool.find("a", "1"), undefined);
  const next = await pool.use("a", { name: "it", version: "1", start, use });
  assert.notEqual(next, thing);
  next.isAlive = false;
  assert.equal(pool.hold("a", "1"), undefined, "it died");
});

Deno.test("onWait is called for uses that wait for the start, until it has started", async () => {
  await using pool = poolOf();
  let waiting = 0;
  const { promise, resolve } = Promise.withResolvers<Thing>();
  const use = () =>
    pool.use("a", {
      name: "it",
      start: () => promise,
      use: () => Promise.resolve(waiting),
      onWait: () => {
        waiting++;
        return { [Symbol.dispose]: () => void waiting-- };
      },
    });
  const uses = [use(), use()];
  assert.equal(waiting, 2);
  resolve(new Thing());
  await Promise.all(uses);
  assert.equal(waiting, 0);
  const running = use();
  assert.equal(waiting, 0);
  await running;
});

/**
 * A model of the pool, with a clock that the test moves. The same actions on the pool and on the
 * model must have the same outcome.
 *
 * @module
 */

import assert from "node:assert/strict";
import { PmlError } from "../core/errors.ts";
import { Deaths } from "./_deaths_test.ts";
import { FakeClock, settled } from "./_fake_clock_test.ts";
import { Semaphore, type SemaphoreOwner } from "./semaphore.ts";
import { type Living, Pool, type PoolOwner } from "./pool.ts";

/** The time after which the pool closes an unused thing, in milliseconds. */
export const IDLE_MS = 60_000;
const IDLE_CHILDREN = 2;

/** The phase of a thing. */
export type Phase = "waiting" | "starting" | "up" | "ending" | "over";

/** A thing that was started, or waits for its start. */
export class Thing implements Living {
  readonly key: string;
  readonly version: string;
  readonly ready = Promise.withResolvers<Thing>();
  readonly ended = Promise.withResolvers<void>();
  readonly uses = new Set<Use>();
  readonly #stage: Stage;
  phase: Phase = "waiting";
  isAlive = true;
  /** Whether it ended without being closed. */
  died = false;
  pending = 0;
  isHung = false;
  /** Whether it finishes its running calls while new calls use another thing. */
  drains = false;
  good = false;
  /** When it may be closed as unused. */
  due = Infinity;
  looked = false;
  /** Its place, which it has from its start to its end. */
  place: Disposable | undefined;
  /** Since when it waits for a place. */
  since = Infinity;

  constructor(stage: Stage, { key, version }: { readonly key: string; readonly version: string }) {
    this.#stage = stage;
    this.key = key;
    this.version = version;
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#stage.wrong ??= this.#stage.wrongEnd(this);
    this.phase = "ending";
    this.#stage.die(this, "closed");
    return this.ended.promise;
  }
}

/** One call. */
export interface Use {
  readonly thing: Thing;
  readonly done: PromiseWithResolvers<string>;
  /** The outcomes that the caller got, which must be one. */
  readonly told: string[];
  /** Cancels the call. */
  readonly cancel: AbortController;
  running: boolean;
  /** The expected outcome. */
  wanted: string | undefined;
}

/** The pool with its things, and the model with the expected ones. */
export class Stage implements SemaphoreOwner, PoolOwner {
  readonly poolLimits = { idleMs: IDLE_MS, idleChildren: IDLE_CHILDREN };
  readonly deathCode = "UPSTREAM_DOWN";
  readonly clock = new FakeClock();
  readonly pool: Pool<Thing>;
  readonly things: Thing[] = [];
  readonly uses: Use[] = [];
  readonly versions = new Map<string, number>();
  readonly #deaths = new Deaths(this.clock.now);
  /** The things that wait for a place, in order. */
  readonly queue: Thing[] = [];
  readonly #semaphore: Semaphore;
  readonly most: number;
  disposing = false;
  wrong: string | undefined;

  /** Creates a pool with a number of places. */
  constructor(most: number) {
    this.most = most;
    this.#semaphore = new Semaphore(this, this.clock);
    this.pool = new Pool(this, this.#semaphore, this.clock);
  }

  get maxPlaces(): number {
    return this.most;
  }

  get endingCount(): number {
    return this.pool.endingCount;
  }

  closeUnused(): boolean {
    return this.pool.closeUnused();
  }

  current(key: string): Thing | undefined {
    return this.things.find((thing) =>
      thing.key === key && !thing.drains && !["ending", "over"].includes(thing.phase)
    );
  }

  /** Makes a call in the model and in the pool. */
  async call(key: string): Promise<void> {
    const version = `v${this.versions.get(key) ?? 0}`;
    const known = this.current(key);
    const fits = known?.version === version && known.isAlive && !known.isHung &&
      !this.#isInTheWay(known);
    if (known !== undefined && !fits) {
      known.drains = true;
      known.looked = false;
      if (known.uses.size === 0) known.due = this.clock.now() + 1_000;
    }
    const refusedFor = fits ? 0 : this.#deaths.wait(key, version);
    const thing = fits ? known : new Thing(this, { key, version });
    if (refusedFor > 0) {
      return await assertRefused(this.pool, { key, version, refusedFor });
    }
    if (!fits) this.things.push(thing);
    const done = Promise.withResolvers<string>();
    done.promise.catch(() => {});
    const cancel = new AbortController();
    const use: Use = { thing, done, told: [], cancel, running: false, wanted: undefined };
    thing.uses.add(use);
    thing.due = Infinity;
    this.uses.push(use);
    const start = async () => {
      assert.ok(!fits && thing.phase === "waiting", "a second start");
      this.#assertAlone(thing);
      await this.#placed(thing);
      thing.phase = "starting";
      return await thing.ready.promise;
    };
    const work = (living: Thing) => {
      assert.equal(living, thing, "served by another");
      if (!living.isAlive) return Promise.reject(new Error("closed"));
      use.running = true;
      living.pending++;
      return done.promise;
    };
    const { signal } = cancel;
    this.pool.use(key, { name: key, version, start, use: work, signal })
      .then((text) => use.told.push(text), (error) => use.told.push(Object(error).message));
    await settled();
  }

  /** Ends a call. `wanted` is the outcome that its caller must get. */
  async end(use: Use, how: { readonly wanted: string; readonly stops: boolean }): Promise<void> {
    const { thing } = use;
    use.wanted = how.wanted;
    use.running = false;
    if (how.stops) thing.pending--;
    const isGood = how.wanted === "answer";
    this.#released(use, isGood);
    if (isGood) use.done.resolve(how.wanted);
    else use.done.reject(new Error(how.wanted));
    await settled();
  }

  /** Cancels a call that waits for a place. */
  async cancel(use: Use): Promise<void> {
    const { thing } = use;
    use.wanted = "cancelled";
    thing.uses.delete(use);
    if (thing.uses.size === 0) {
      this.queue.splice(this.queue.indexOf(thing), 1);
      thing.phase = "over";
    }
    use.cancel.abort(new Error("cancelled"));
    await settled();
  }

  /** Completes the end of a closed thing. */
  async ended(thing: Thing): Promise<void> {
    thing.phase = "over";
    thing.ended.resolve();
    thing.place?.[Symbol.dispose]();
    await settled();
  }

  /** Lets a thing die, so that its running calls fail. */
  die(thing: Thing, why: string): void {
    if (!thing.isAlive) return;
    thing.isAlive = false;
    if (why !== "closed") {
      thing.died = true;
      thing.place?.[Symbol.dispose]();
    }
    const isCurrent = this.current(thing.key) === thing;
    const running = [...thing.uses].filter((use) => use.running);
    if (isCurrent && running.length > 0 && !thing.good) this.#deaths.count(thing);
    for (const use of running) {
      use.wanted = why;
      use.running = false;
      thing.uses.delete(use);
      use.done.reject(new Error(why));
    }
    // A thing that dies in a use is removed at once, an unused one by the next call.
    if (running.length > 0 && thing.phase === "up") thing.drains = true;
  }

  async started(thing: Thing): Promise<void> {
    thing.phase = "up";
    thing.ready.resolve(thing);
    await settled();
  }

  async startFails(thing: Thing): Promise<void> {
    if (this.current(thing.key) === thing) this.#deaths.count(thing);
    thing.phase = "over";
    for (const use of thing.uses) use.wanted = "no start";
    thing.uses.clear();
    thing.ready.reject(new Error("no start"));
    thing.place?.[Symbol.dispose]();
    await settled();
  }

  /** Returns why a thing may not be closed now; undefined if it may. */
  wrongEnd(thing: Thing): string | undefined {
    if (this.disposing || !thing.isAlive) return undefined;
    if (thing.uses.size > 0) return "closed during a call";
    const idle = this.things.filter((one) =>
      this.current(one.key) === one && one.uses.size === 0 && one.phase === "up"
    );
    if (this.clock.now() >= thing.due || idle.length > IDLE_CHILDREN) return undefined;
    if (this.#among("ending").length < this.queue.length) return undefined;
    return `closed at ${this.clock.now()} and not at ${thing.due}`;
  }

  /** Asserts the invariants of the pool. */
  assertSound(): void {
    assert.equal(this.wrong, undefined);
    for (const { told, wanted } of this.uses) {
      assert.deepEqual(told, wanted === undefined ? [] : [wanted]);
    }
    const idle = this.things.filter((one) =>
      one.phase === "up" && one.due < Infinity && one.isAlive
    );
    for (const thing of idle) {
      assert.ok(thing.due > this.clock.now(), `${thing.key} is idle since long`);
    }
    assert.ok(idle.filter(({ drains }) => !drains).length <= IDLE_CHILDREN, "too many are idle");
    const living = this.#living();
    assert.ok(living <= this.most, `${living} live`);
    if (this.queue.length === 0) return;
    assert.equal(living, this.most, "a place is free while a call waits");
    const isEnough = this.#among("ending").length >= this.queue.length;
    const unused = this.#among("up").filter(({ uses, isAlive: alive }) => uses.size === 0 && alive);
    assert.ok(isEnough || unused.length === 0, "a thing is unused while a call waits");
  }

  #among(phase: Phase): readonly Thing[] {
    return this.things.filter((thing) => thing.phase === phase);
  }

  /** Returns how many things take a place. Things that died take none. */
  #living(): number {
    const busy = ["starting", "up", "ending"].flatMap((phase) => this.#among(phase as Phase));
    return busy.filter((thing) => thing.isAlive || thing.phase === "ending" && !thing.died).length;
  }

  /** Waits for a place. Places are assigned in order. */
  async #placed(thing: Thing): Promise<void> {
    this.queue.push(thing);
    thing.since = this.clock.now();
    thing.place = await this.#semaphore.acquire(thing.key);
    if (this.queue.shift() !== thing) this.wrong ??= `${thing.key} was served before its turn`;
  }

  /** Returns whether one more call would keep a place from overdue callers. */
  #isInTheWay(thing: Thing): boolean {
    const overdue = this.queue.filter(({ since }) => since + 1_000 <= this.clock.now());
    const draining = this.things.filter(({ drains, isAlive: alive, phase }) =>
      drains && alive && phase === "up"
    );
    return thing.phase === "up" && thing.uses.size > 0 && draining.length < overdue.length;
  }

  #released(use: Use, isGood: boolean): void {
    const { thing } = use;
    thing.uses.delete(use);
    if (isGood) {
      thing.good = true;
      if (this.current(thing.key) === thing) this.#deaths.forget(thing.key);
    }
    if (thing.uses.size > 0) return;
    const rest = thing.pending > 0 ? 30_000 : IDLE_MS;
    thing.looked = thing.pending > 0 && !thing.drains;
    thing.due = this.clock.now() + (thing.drains ? 1_000 : rest);
  }

  /** Asserts that at most one thing of a key accepts calls. Another may only finish its own. */
  #assertAlone(thing: Thing): void {
    for (const other of this.things) {
      if (other === thing || other.key !== thing.key) continue;
      if (other.phase === "waiting" || other.phase === "over") continue;
      assert.ok(other.drains && other.phase !== "ending", "two of one key live at a time");
    }
  }
}

/** Ends everything, and asserts that nothing is left. */
export async function assertEnds(stage: Stage): Promise<void> {
  stage.disposing = true;
  let isOver = false;
  const closing = stage.pool[Symbol.asyncDispose]().then(() => isOver = true);
  await settled();
  for (let more = true; more;) {
    more = false;
    for (const thing of stage.things) {
      if (thing.phase !== "starting" && thing.phase !== "ending") continue;
      if (thing.phase === "starting") await stage.started(thing);
      await stage.ended(thing);
      more = true;
    }
  }
  assert.ok(isOver, "the pool does not end");
  await closing;
  assert.deepEqual(stage.things.filter(({ phase }) => phase === "up"), [], "left alive");
  for (const { told } of stage.uses) assert.equal(told.length, 1, "a call was lost");
  const late = stage.pool.use("a", {
    name: "a",
    start: () => assert.fail("started after the end"),
    use: () => Promise.resolve(),
  });
  await assert.rejects(late, /PML is ending/);
}

/** Asserts that the next start of a key whose things died in a row is refused. */
async function assertRefused(
  pool: Pool<Thing>,
  { key, version, refusedFor }: {
    readonly key: string;
    readonly version: string;
    readonly refusedFor: number;
  },
): Promise<void> {
  const start = () => assert.fail("started while it has to wait");
  const asked = pool.use(key, { name: key, version, start, use: () => Promise.resolve() });
  await assert.rejects(asked, (error) => {
    assert.ok(error instanceof PmlError);
    assert.equal(error.code, "UPSTREAM_DOWN");
    assert.match(error.message, new RegExp(`Cannot start "${key}": it ended \\d+ times`));
    assert.equal(error.detail?.retry_after_ms, refusedFor);
    return true;
  });
}

/**
 * Compares the pool with a model of it: for starts, deaths, hangs, cancellations and changes in any
 * order.
 *
 * @module
 */

import fc from "fast-check";
import { settled } from "./_fake_clock_test.ts";
import {
  assertEnds,
  IDLE_MS,
  type Phase,
  Stage,
  type Thing,
  type Use,
} from "./_pool_model_test.ts";

const KEYS = ["a", "b", "c"];

/** One step: its precondition and its action. */
class Step implements fc.AsyncCommand<object, Stage> {
  readonly #name: string;
  readonly #run: (stage: Stage) => Promise<void>;

  constructor(name: string, run: (stage: Stage) => Promise<void>) {
    this.#name = name;
    this.#run = run;
  }

  check(): boolean {
    return true;
  }

  async run(_: object, stage: Stage): Promise<void> {
    await this.#run(stage);
    await settled();
    stage.assertSound();
  }

  toString(): string {
    return this.#name;
  }
}

/** Returns the element that a random number selects. */
function picked<T>(all: readonly T[], at: number): T | undefined {
  return all[at % Math.max(all.length, 1)];
}

function keyAt(at: number): string {
  return picked(KEYS, at) ?? "a";
}

function among(stage: Stage, phase: Phase): readonly Thing[] {
  return stage.things.filter((thing) => thing.phase === phase);
}

/** Makes a call and starts its thing; undefined if the call has to wait. */
async function startedCall(stage: Stage, key: string): Promise<Use | undefined> {
  const before = stage.uses.length;
  await stage.call(key);
  const use = stage.uses[before];
  if (use?.thing.phase === "starting") await stage.started(use.thing);
  return use;
}

const STEPS: Readonly<Record<string, (stage: Stage, at: number) => Promise<void> | void>> = {
  call: (stage, at) => stage.call(keyAt(at)),
  "a served call": async (stage, at) => {
    const use = await startedCall(stage, keyAt(at));
    if (use?.running) await stage.end(use, { wanted: "answer", stops: true });
  },
  "deaths in calls": async (stage, at) => {
    for (let count = 0; count < at % 7; count++) {
      const use = await startedCall(stage, keyAt(at));
      if (use?.running) stage.die(use.thing, "died");
      await settled();
      if (use === undefined || use.thing.phase !== "ending") continue;
      await stage.ended(use.thing);
    }
  },
  "a hundred calls": async (stage, at) => {
    for (let count = 0; count < 100; count++) await stage.call(keyAt(at));
  },
  "start succeeds": async (stage, at) => {
    const thing = picked(among(stage, "starting"), at);
    if (thing !== undefined) await stage.started(thing);
  },
  "start fails": async (stage, at) => {
    const thing = picked(among(stage, "starting"), at);
    if (thing !== undefined) await stage.startFails(thing);
  },
  answer: async (stage, at) => {
    const use = picked(stage.uses.filter(({ running }) => running), at);
    if (use !== undefined) await stage.end(use, { wanted: "answer", stops: true });
  },
  "give up": async (stage, at) => {
    const use = picked(stage.uses.filter(({ running }) => running), at);
    if (use !== undefined) await stage.end(use, { wanted: "given up", stops: false });
  },
  "stop late": (stage, at) => {
    const running = (thing: Thing) => [...thing.uses].filter((use) => use.running).length;
    const late = among(stage, "up").filter((thing) => thing.pending > running(thing));
    const thing = picked(late, at);
    if (thing === undefined) return;
    thing.pending--;
    if (thing.pending > 0 || !thing.looked || thing.uses.size > 0) return;
    // Checked when its short time ends, and then kept for the long time.
    thing.looked = false;
    thing.due += IDLE_MS;
  },
  crash: (stage, at) => {
    const thing = picked(among(stage, "up").filter(({ isAlive: alive }) => alive), at);
    if (thing !== undefined) stage.die(thing, "died");
  },
  hang: (stage, at) => {
    const thing = picked(among(stage, "up"), at);
    if (thing !== undefined) thing.isHung = true;
  },
  "end is over": async (stage, at) => {
    const thing = picked(among(stage, "ending"), at);
    if (thing !== undefined) await stage.ended(thing);
  },
  "cancel": async (stage, at) => {
    const waiting = stage.uses.filter(({ thing, wanted }) =>
      stage.queue.includes(thing) && wanted === undefined
    );
    const use = picked(waiting, at);
    if (use !== undefined) await stage.cancel(use);
  },
  "time passes": (stage, at) => stage.clock.pass(at * 13),
  "the idle time passes": (stage) => stage.clock.pass(IDLE_MS),
  "definition changes": (stage, at) => {
    // With places, a key contains the whole definition.
    if (stage.most < Infinity) return;
    const key = keyAt(at);
    stage.versions.set(key, (stage.versions.get(key) ?? 0) + 1);
  },
};

Deno.test("the pool loses no call, starts nothing twice and leaves nothing behind (SP6, SP7, SP10)", async () => {
  const steps = Object.entries(STEPS).map(([name, run]) =>
    fc.nat(2_000).map((at) => new Step(`${name} ${at}`, async (stage) => await run(stage, at)))
  );
  await fc.assert(
    fc.asyncProperty(
      fc.commands(steps, { maxCommands: 60, size: "max" }),
      fc.constantFrom(1, 2, 3, Infinity),
      async (commands, places) => {
        const stage = new Stage(places);
        await fc.asyncModelRun(() => ({ model: {}, real: stage }), commands);
        await assertEnds(stage);
      },
    ),
    { numRuns: 1_500 },
  );
});

/**
 * Modules that would use all time, memory and attention: they lose their child, and calls of
 * another module are not affected.
 *
 * @module
 */

import assert from "node:assert/strict";
import { processes, rssOf } from "../kit/procwatch.ts";
import { waitUntil } from "../kit/wait.ts";
import { assertRefused, attack, type CallSummary, type House } from "./evilmod/house.ts";

const MODULES = { evil: "bombs.ts", good: "good.ts" };
const MB = 1024 * 1024;

/** Measurements of the gateway during an attack. */
interface Watched {
  readonly told: CallSummary;
  readonly ms: number;
  /** The 95th percentile of the times of the other module's calls. */
  readonly p95: number;
  readonly grownBy: number;
}

Deno.test("a call that never ends is ended by its deadline, and others do not wait", async (t) => {
  const limit = 800;
  await attack(
    // The test measures its memory and its time.
    { ownProcess: true, modules: MODULES, limits: { call_ms: limit } },
    async (house) => {
      await house.call("good:ping");
      for (const how of ["loop", "regex", "atomics", "pending", "microtasks", "getter", "stdin"]) {
        const isEnded = await t.step(how, async () => {
          const tookMs = limit + 4_000;
          await suffered(house, { tool: "hang", how, waitMs: 400, tookMs }, ({ told, ms }) => {
            assertRefused(told, { code: "TIMED_OUT", like: /limits\.call_ms/ });
            assert.ok(ms >= limit - 20, `it took ${ms} ms`);
          });
        });
        if (!isEnded) return; // each of the others would take its minute
      }
    },
  );
});

Deno.test("a memory bomb ends its child, and the gateway's memory stays flat", async (t) => {
  await attack({
    // The test measures its memory and its time.
    ownProcess: true,
    modules: MODULES,
    limits: { call_ms: 20_000, rss_mb: 400, heap_mb: 128 },
  }, (
    house,
  ) => eatAll(house, t));
});

async function eatAll(house: House, t: Deno.TestContext): Promise<void> {
  await house.call("good:ping");
  for (const how of ["heap", "buffers", "strings", "timers", "wasm", "shared"]) {
    await t.step(how, async () => {
      await suffered(house, { tool: "eat", how, waitMs: 400 }, ({ told, grownBy }) => {
        const { detail } = assertRefused(told, { code: "SANDBOX_CRASHED", like: /memory/ });
        assert.equal(detail?.reason as unknown, "memory");
        assert.ok(grownBy < 50 * MB, `the gateway grew by ${grownBy}`);
      });
    });
  }
}

Deno.test("a flood of messages ends its child, and others are hardly delayed", async (t) => {
  // Enough memory and time for the message count to end it, also where the gateway reads slowly.
  const bounds = { frame_bytes: 16 * MB, frames: 2_000, rss_mb: 1_500 };
  await attack(
    // The test measures its memory and its time.
    { ownProcess: true, modules: MODULES, limits: { ...bounds, call_ms: 30_000 } },
    async (house) => {
      await house.call("good:ping");
      for (const how of COUNTED) {
        await t.step(how, async () => {
          await suffered(house, { tool: "flood", how, waitMs: 500 }, ({ told, grownBy }) => {
            const { detail } = assertRefused(told, { code: "SANDBOX_CRASHED", like: /./ });
            assert.equal(detail?.reason as unknown, "frames");
            assert.ok(grownBy < 120 * MB, `the gateway grew by ${grownBy}`);
          });
        });
      }
    },
  );
  await attack(
    // The test measures its memory and its time.
    { ownProcess: true, modules: MODULES, limits: { ...bounds, call_ms: 1_000 } },
    async (house) => {
      await house.call("good:ping");
      for (const how of FLOODS) {
        await t.step(how, async () => {
          await suffered(house, { tool: "flood", how, waitMs: 500 }, ({ told, grownBy }) => {
            // Messages that never leave the child may also reach its memory limit or the deadline.
            const ended = ["SANDBOX_CRASHED", "TIMED_OUT"].includes(told.code ?? "");
            assert.ok(ended, `${told.code}: ${told.text.slice(0, 200)}`);
            assert.ok(grownBy < 120 * MB, `the gateway grew by ${grownBy}`);
          });
        });
      }
    },
  );
});

const COUNTED = [
  "log_big",
  "log_tiny",
  "progress_big",
  "progress_tiny",
  "console_big",
  "console_tiny",
  "stderr",
  "no_newline",
];
const FLOODS = ["post_big", "post_tiny", "result_of_none", "no_frame", "file"];

Deno.test("a module that still sends after its answer loses its child", async (t) => {
  const limits = { frame_bytes: 4 * MB, frames: 200, rss_mb: 400 };
  // The test counts the children that PML has ended.
  await attack({ ownProcess: true, modules: MODULES, limits }, async (house) => {
    for (const how of ["log_of_none", "result_of_none", "failed_of_none", "ready_again"]) {
      await t.step(how, async () => {
        const pid = Number((await house.call("evil:drip", { how })).text);
        assert.ok(pid > 0);
        const gone = async () => !(await processes()).some((one) => one.pid === pid);
        assert.ok(await waitUntil(gone), "it sends for ever");
      });
    }
  });
});

Deno.test("an oversized result is reported with its size, never cut", async () => {
  const limits = { result_bytes: 1 * MB, inline_bytes: 0 };
  await attack({ modules: { good: "good.ts", odd: "odd.ts" }, limits }, async ({ call }) => {
    const fits = "x".repeat(900_000);
    assert.equal((await call("good:give", { value: fits })).text, fits);
    const large = "x".repeat(1_100_000);
    assertRefused(await call("good:give", { value: large }), {
      code: "RESULT_TOO_LARGE",
      like: /11000\d\d/,
    });
    const wide = "ä".repeat(700_000);
    assertRefused(await call("good:give", { value: wide }), {
      code: "RESULT_TOO_LARGE",
      like: /14000\d\d|7000\d\d/,
    });
    assertRefused(await call("odd:odd", { kind: "large" }), {
      code: "RESULT_TOO_LARGE",
      like: /4194\d{4}/,
    });
  });
});

/**
 * Runs an attack of a module that works before, and asserts that it ended in time and that others
 * hardly waited. If they did wait, it is repeated, up to eight runs: an attack that delays the
 * gateway does so each time, and other programs on the machine do not.
 */
async function suffered(
  house: House,
  { tool, how, waitMs, tookMs = Infinity }: {
    readonly tool: string;
    readonly how: string;
    readonly waitMs: number;
    readonly tookMs?: number;
  },
  check: (seen: Watched) => void,
): Promise<void> {
  const waits: number[] = [];
  const took: number[] = [];
  const isLate = () => Math.min(...waits) >= waitMs || Math.min(...took) >= tookMs;
  do {
    assert.deepEqual((await house.call("evil:ping", { how })).structured, { how });
    const seen = await watched(house, () => house.call(`evil:${tool}`, { how }));
    check(seen);
    waits.push(seen.p95);
    took.push(seen.ms);
  } while (isLate() && waits.length < 8);
  assert.ok(!isLate(), `the others waited ${waits} ms, and it took ${took} ms`);
}

/**
 * Runs an attack during calls of another module, and returns measurements of these calls and the
 * gateway.
 */
async function watched({ call, pml }: House, run: () => Promise<CallSummary>): Promise<Watched> {
  const before = await rssOf(pml.pid);
  const state = { over: false, most: before };
  const times: number[] = [];
  const pinging = (async () => {
    while (!state.over) {
      const since = performance.now();
      assert.equal((await call("good:ping")).text, "pong");
      times.push(performance.now() - since);
      state.most = Math.max(state.most, await rssOf(pml.pid));
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  })();
  const since = performance.now();
  const summary = await run();
  const ms = performance.now() - since;
  state.over = true;
  await pinging;
  const sorted = times.toSorted((one, other) => one - other);
  const p95 = sorted[Math.ceil(sorted.length * 0.95) - 1] ?? 0;
  return { told: summary, ms, p95, grownBy: state.most - before };
}

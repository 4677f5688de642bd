/**
 * Measures the sandbox: a warm and a cold call, relative to a direct call of the function.
 *
 * @module
 */

import protectedPaths from "../config/protected-paths.json" with { type: "json" };
import { limitsOf } from "../src/config/limits.ts";
import { Sandbox } from "../src/sandbox/sandbox.ts";
import { median } from "./measure.ts";

const WARM_RUNS = 500;
const LARGE_RUNS = 30;
const COLD_RUNS = 11;

const MODULE = `
export async function read(args: { path: string }): Promise<string> {
  return await Deno.readTextFile(args.path);
}
export function readSync(args: { path: string }): string {
  return Deno.readTextFileSync(args.path);
}`;

/** Medians in milliseconds (memory in megabytes), and the number of runs of each. */
export interface SandboxFigures {
  readonly runs: { readonly warm: number; readonly large: number; readonly cold: number };
  readonly direct_ms: number;
  readonly warm_ms: number;
  readonly warm_sync_ms: number;
  readonly warm_over_direct_ms: number;
  /** The start of a child, the load of the module, and a call. */
  readonly cold_start_and_call_ms: number;
  /** The load of the module in a child that has started without a module, and a call. */
  readonly blank_load_and_call_ms: number;
  readonly direct_1mb_ms: number;
  readonly warm_1mb_ms: number;
  readonly child_rss_mb: number;
}

/** Runs the measurements in a temporary workspace. */
export async function benchSandbox(): Promise<SandboxFigures> {
  const root = await Deno.realPath(await Deno.makeTempDir({ prefix: "pml-bench-" }));
  try {
    return await measure(root);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

async function measure(root: string): Promise<SandboxFigures> {
  const ws = `${root}/ws`;
  await Deno.mkdir(ws);
  await Deno.mkdir(`${root}/home`, { mode: 0o700 });
  await Deno.writeTextFile(`${ws}/small.txt`, "a small file\n".repeat(20));
  await Deno.writeTextFile(`${ws}/large.txt`, "x".repeat(1 << 20));
  const child = {
    ...{ workspace: ws, read: [ws], write: [], net: [], run: [], env: {}, environment: {} },
    protection: { ...protectedPaths, paths: [], granted: [] },
    home: `${root}/home`,
    limits: limitsOf({}),
  };
  const module = { name: "bench", code: new TextEncoder().encode(MODULE), onLog: () => {} };
  const start = async () => await (await Sandbox.open(child)).load(module);
  const signal = new AbortController().signal;
  const cold = await medianTime(COLD_RUNS, async () => {
    const sandbox = await start();
    await sandbox.call({ fn: "read", arguments: { path: "small.txt" }, signal });
    return () => sandbox[Symbol.asyncDispose]();
  });
  const blanks = await Promise.all(
    Array.from({ length: COLD_RUNS + 2 }, () => Sandbox.open(child)),
  );
  const blank = await medianTime(COLD_RUNS, async () => {
    const sandbox = await blanks.pop()?.load(module) ?? await start();
    await sandbox.call({ fn: "read", arguments: { path: "small.txt" }, signal });
    return () => sandbox[Symbol.asyncDispose]();
  });
  await Promise.all(blanks.map((sandbox) => sandbox[Symbol.asyncDispose]()));
  await using sandbox = await start();
  const call = (fn: string, path: string) => () =>
    sandbox.call({ fn, arguments: { path }, signal }).then(() => undefined);
  const read = (path: string) => () => Deno.readTextFile(`${ws}/${path}`).then(() => undefined);
  const direct = await medianTime(WARM_RUNS, read("small.txt"));
  const warm = await medianTime(WARM_RUNS, call("read", "small.txt"));
  return {
    runs: { warm: WARM_RUNS, large: LARGE_RUNS, cold: COLD_RUNS },
    direct_ms: direct,
    warm_ms: warm,
    warm_sync_ms: await medianTime(WARM_RUNS, call("readSync", "small.txt")),
    warm_over_direct_ms: warm - direct,
    blank_load_and_call_ms: blank,
    cold_start_and_call_ms: cold,
    direct_1mb_ms: await medianTime(LARGE_RUNS, read("large.txt")),
    warm_1mb_ms: await medianTime(LARGE_RUNS, call("read", "large.txt")),
    child_rss_mb: sandbox.rss() / 1024 / 1024,
  };
}

/** Returns the median time of a step. The function that the step returns is not measured. */
async function medianTime(
  runs: number,
  step: () => Promise<(() => Promise<void>) | undefined | void>,
): Promise<number> {
  const times: number[] = [];
  for (let run = 0; run < runs; run++) {
    const start = performance.now();
    const after = await step();
    times.push(performance.now() - start);
    await after?.();
  }
  return median(times);
}

if (import.meta.main) {
  const figures = await benchSandbox();
  console.log(JSON.stringify({ bench: "sandbox", deno: Deno.version.deno, ...figures }));
  const { runs, ...medians } = figures;
  console.log(`\nmedians of ${runs.warm} warm, ${runs.large} large and ${runs.cold} cold runs`);
  for (const [name, value] of Object.entries(medians)) {
    console.log(`${name.padEnd(24)} ${value.toFixed(3).padStart(10)}`);
  }
}

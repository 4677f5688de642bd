/**
 * Runs as many jobs at once as keep the processors busy. Tests wait for processes and timers for more
 * than half of their time: with four jobs, two processors were idle for half of a run.
 *
 * @module
 */

import { cpus } from "node:os";

/** The limits on the number of jobs that run at once. */
export interface JobLimits {
  /** The number at the start. */
  readonly least: number;
  /** The maximum number. */
  readonly most: number;
  /** The time between two checks of the processors, in milliseconds: loading a module takes 0.5 s. */
  readonly intervalMs?: number;
}

const INTERVAL_MS = 3_000;
/** The share of idle time above which another job starts. */
const IDLE_SHARE = 0.2;
/** The free memory that another job needs, in bytes. A job, a module of tests, uses at most 1 GB. */
const FREE_BYTES = 3 * 1_024 ** 3;

/** Runs a job `least` times at once, and starts more, up to `most`, while `isIdle` returns true. */
export async function runJobs(
  job: () => Promise<void>,
  { least, most, intervalMs = INTERVAL_MS }: JobLimits,
  isIdle: () => boolean = processorsIdle(),
): Promise<void> {
  const jobs = Array.from({ length: least }, job);
  const timer = setInterval(() => {
    if (jobs.length < most && isIdle()) jobs.push(job());
  }, intervalMs);
  try {
    // The loop also waits for jobs that are added while it runs.
    for (const running of jobs) await running;
  } finally {
    clearInterval(timer);
  }
}

/** Returns a function that checks the idle time of the processors since its last call. */
function processorsIdle(): () => boolean {
  let last = processorTimes();
  return () => {
    const now = processorTimes();
    const share = (now.idle - last.idle) / Math.max(now.all - last.all, 1);
    last = now;
    return share > IDLE_SHARE && Deno.systemMemoryInfo().available > FREE_BYTES;
  };
}

function processorTimes(): { readonly idle: number; readonly all: number } {
  const times = cpus().map(({ times }) => times);
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  return {
    idle: sum(times.map(({ idle }) => idle)),
    all: sum(times.flatMap(({ idle, user, nice, sys, irq }) => [idle, user, nice, sys, irq])),
  };
}

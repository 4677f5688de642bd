import assert from "node:assert/strict";
import { runJobs } from "./jobs.ts";

/** Runs jobs that take parts of the work. Returns how many of them ran at the same time at most. */
async function jobsAtOnce(isIdle: () => boolean): Promise<number> {
  let [parts, running, most] = [60, 0, 0];
  await runJobs(
    async () => {
      running++;
      most = Math.max(most, running);
      while (parts-- > 0) await new Promise((resolve) => setTimeout(resolve, 5));
      running--;
    },
    { least: 2, most: 4, intervalMs: 2 },
    isIdle,
  );
  assert.ok(parts < 0, "all work is done");
  return most;
}

Deno.test("further jobs begin while processors are idle, up to a limit", async () => {
  assert.equal(await jobsAtOnce(() => true), 4);
});

Deno.test("no further job begins while processors are busy", async () => {
  assert.equal(await jobsAtOnce(() => false), 2);
});

import assert from "node:assert/strict";
import {
  onAbort,
  pause,
  retryWhileBusy,
  retryWhileBusySync,
  settlesWithin,
  turnTime,
  unlessAborted,
} from "./waiting.ts";

Deno.test("onAbort() acts once, at once if the signal has aborted, and never after it is disposed", () => {
  const [early, later, never] = [1, 2, 3].map(() => new AbortController());
  const acted: string[] = [];
  early?.abort();
  using _early = onAbort(early!.signal, () => acted.push("early"));
  using _later = onAbort(later!.signal, () => acted.push("later"));
  onAbort(never!.signal, () => acted.push("never"))[Symbol.dispose]();
  assert.deepEqual(acted, ["early"]);
  later?.abort();
  never?.abort();
  assert.deepEqual(acted, ["early", "later"]);
});

Deno.test("unlessAborted() returns the result of the work, or throws the reason of the abort", async () => {
  const { signal } = new AbortController();
  assert.equal(await unlessAborted(Promise.resolve(1), signal), 1);
  await assert.rejects(unlessAborted(Promise.reject(new Error("broken")), signal), /broken/);
  const over = AbortSignal.abort(new Error("over"));
  const { promise, reject } = Promise.withResolvers();
  await assert.rejects(unlessAborted(promise, over), /over/);
  await assert.rejects(unlessAborted(promise, over, () => new Error("other")), /other/);
  reject(new Error("told to nobody"));
});

Deno.test("settlesWithin() and pause() end by their time, or before it", async () => {
  const never = new Promise(() => {});
  assert.equal(await settlesWithin(never, 1), false);
  assert.equal(await settlesWithin(Promise.reject(new Error("broken")), 60_000), true);
  await pause(1, new AbortController().signal);
  await pause(60_000, AbortSignal.abort());
});

/** Returns a step that fails with a code some times, and counts its runs. */
function failing(times: number, code: string) {
  const runs = { count: 0 };
  const step = () => {
    if (++runs.count <= times) throw Object.assign(new Error(code), { code });
    return "done";
  };
  return { runs, step };
}

Deno.test("a step on a file that another program keeps busy is repeated on Windows only", async () => {
  const waited: number[] = [];
  const on = (os: "windows" | "linux") => ({ os, wait: (ms: number) => void waited.push(ms) });
  const both = [
    async (step: () => string, os: "windows" | "linux") =>
      await retryWhileBusy(() => Promise.try(step), on(os)),
    (step: () => string, os: "windows" | "linux") =>
      Promise.try(() => retryWhileBusySync(step, on(os))),
  ];
  for (const run of both) {
    for (const code of ["EBUSY", "EPERM", "EACCES"]) {
      assert.equal(await run(failing(3, code).step, "windows"), "done");
      assert.deepEqual(waited.splice(0), [10, 20, 40]);
    }
    for (const [code, os] of [["EBUSY", "linux"], ["ENOENT", "windows"]] as const) {
      const { runs, step } = failing(1, code);
      await assert.rejects(run(step, os), { code });
      assert.equal(runs.count, 1);
    }
    const never = failing(Infinity, "EBUSY");
    await assert.rejects(run(never.step, "windows"), { code: "EBUSY" });
    assert.equal(never.runs.count, waited.splice(0).length + 1);
  }
});

Deno.test("turnTime() is the same during a turn, and later in the next one", async () => {
  const first = turnTime();
  const until = performance.now() + 2;
  while (performance.now() < until);
  assert.equal(turnTime(), first);
  await Promise.resolve();
  const second = turnTime();
  assert.ok(second >= until && second <= performance.now());
});

import assert from "node:assert/strict";
import type { CallClient, Outcome, ProgressReport } from "../protocol/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { PmlError } from "../core/errors.ts";
import { ownProgress } from "../protocol/progress.ts";
import { toolId } from "../core/tool_id.ts";
import { DONE, newCall, newPipeline } from "./_context_test.ts";
import type { CallContext } from "./context.ts";
import { type DeadlineLimits, Deadlines, type TimedCall } from "./deadline.ts";

/** A call of a pipeline whose calls have a deadline. */
async function callWith(
  limits: () => DeadlineLimits,
  run: (call: CallContext) => Promise<Outcome>,
  { client = {}, cancellation = new Cancellation() }: {
    readonly client?: CallClient;
    readonly cancellation?: Cancellation;
  } = {},
): Promise<Outcome> {
  using pipeline = newPipeline({ deadlines: new Deadlines(limits), run });
  return await pipeline.callTool(newCall({ client, cancellation }));
}

/** Returns a call that is cancelled by `end`, and gets no reports unless a test has some sent. */
function timedCall(
  id: TimedCall["id"],
  end: (error: PmlError) => void,
  report?: TimedCall["report"],
): TimedCall {
  return { id, wantsReports: report !== undefined, report: report ?? (() => {}), cancel: end };
}

const never = new AbortController().signal;
const hanging = () => new Promise<Outcome>(() => {});

function isCode(code: string): (error: unknown) => boolean {
  return (error) => error instanceof PmlError && error.code === code;
}

Deno.test("a call ends at the time limit that its server has", async () => {
  const limits = (id: string) => id === "slow:tool" ? 10_000 : 20;
  using deadlines = new Deadlines((id) => ({ callMs: limits(id), capMs: 20_000 }));
  const over = Promise.withResolvers<PmlError>();
  const slow = deadlines.begin(timedCall(toolId("slow", "tool"), () => assert.fail()));
  deadlines.begin(timedCall(toolId("quick", "tool"), over.resolve));
  assert.equal((await over.promise).code, "TIMED_OUT");
  deadlines.end(slow);
});

Deno.test("a call ends at its deadline although its server ignores the signal", async () => {
  const call = callWith(() => ({ callMs: 20, capMs: 1_000 }), hanging);
  await assert.rejects(call, isCode("TIMED_OUT"));
});

Deno.test("a deadline aborts the signal of the call with TIMED_OUT", async () => {
  let reason: unknown;
  const call = callWith(() => ({ callMs: 20, capMs: 1_000 }), ({ cancellation: { signal } }) => {
    signal.addEventListener("abort", () => reason = signal.reason);
    return hanging();
  });
  await assert.rejects(call, isCode("TIMED_OUT"));
  assert.ok(isCode("TIMED_OUT")(reason));
});

Deno.test("progress extends the deadline of a call, and the cap ends it", async () => {
  const started = Date.now();
  let beat: ReturnType<typeof setInterval> | undefined;
  const call = callWith(() => ({ callMs: 60, capMs: 200 }), ({ client }) => {
    beat = setInterval(() => client.onProgress?.({ progress: 1 }), 10);
    return hanging();
  });
  await assert.rejects(call, isCode("TIMED_OUT"));
  clearInterval(beat);
  assert.ok(Date.now() - started >= 190);
});

Deno.test("a cancelled call ends with CANCELLED, also one cancelled before", async () => {
  const abort = new AbortController();
  const cancellation = Cancellation.of(abort.signal);
  const limits = () => ({ callMs: 1_000, capMs: 1_000 });
  const started = Promise.withResolvers<void>();
  const running = callWith(limits, () => {
    started.resolve();
    return hanging();
  }, { cancellation });
  await started.promise;
  abort.abort();
  await assert.rejects(running, isCode("CANCELLED"));
  let ran = false;
  const late = callWith(limits, () => {
    ran = true;
    return Promise.resolve(DONE);
  }, { cancellation });
  await assert.rejects(late, isCode("CANCELLED"));
  assert.ok(!ran);
});

Deno.test("a call that ends before its deadline returns its result", async () => {
  const call = callWith(() => ({ callMs: 1_000, capMs: 1_000 }), () => Promise.resolve(DONE));
  assert.deepEqual(await call, DONE);
});

Deno.test("the time in which the user is asked does not count", async () => {
  const answered = Promise.withResolvers<{ readonly said: string }>();
  const params = { method: "elicitation/create", params: {}, server: "s", signal: never } as const;
  let aborted = false;
  const call = callWith(() => ({ callMs: 40, capMs: 60 }), async ({ client, cancellation }) => {
    cancellation.signal.addEventListener("abort", () => aborted = true);
    const said = await Promise.all([
      client.onServerRequest?.(params),
      client.onServerRequest?.(params),
    ]);
    assert.deepEqual(said, [{ said: "yes" }, { said: "yes" }]);
    assert.equal(aborted, false);
    // From here on the time counts again.
    return await hanging();
  }, { client: { onServerRequest: () => answered.promise } });
  setTimeout(() => answered.resolve({ said: "yes" }), 150);
  const since = performance.now();
  await assert.rejects(call, isCode("TIMED_OUT"));
  assert.ok(performance.now() - since >= 180);
  assert.equal(aborted, true);
});

Deno.test("questions that are open at the end of a call are withdrawn", async () => {
  let reason: unknown;
  const call = callWith(() => ({ callMs: 1_000, capMs: 1_000 }), ({ client, cancellation }) => {
    const { signal } = cancellation;
    signal.addEventListener("abort", () => reason = signal.reason);
    void client.onServerRequest?.({
      method: "elicitation/create",
      params: {},
      server: "s",
      signal,
    });
    return Promise.resolve(DONE);
  }, { client: { onServerRequest: () => new Promise(() => {}) } });
  assert.deepEqual(await call, DONE);
  assert.ok(isCode("CANCELLED")(reason));
});

Deno.test("the time in which the client had to read first does not count, also if that is over", async () => {
  let pausedMs = 30;
  const done = Promise.withResolvers<void>();
  const call = callWith(() => ({ callMs: 150, capMs: 200, pausedMs }), async () => {
    await done.promise;
    return DONE;
  });
  // It ends before the deadline is looked at, and after that nothing holds the call any more.
  setTimeout(() => pausedMs += 140, 20);
  setTimeout(done.resolve, 240);
  assert.deepEqual(await call, DONE);
  const since = performance.now();
  const hung = callWith(() => ({ callMs: 50, capMs: 90, pausedMs }), hanging);
  await assert.rejects(hung, isCode("TIMED_OUT"));
  assert.ok(performance.now() - since >= 45);
});

Deno.test("Deadlines ends each call at its own time, with one timer for all", async () => {
  let callMs = 60;
  using deadlines = new Deadlines(() => ({ callMs, capMs: 1_000 }));
  const ended: string[] = [];
  const begin = (id: string) =>
    deadlines.begin(timedCall(toolId("s", id), ({ code }) => ended.push(`${id} ${code}`)));
  const [, second, asking] = ["first", "second", "asking"].map(begin);
  assert.ok(second !== undefined && asking !== undefined);
  const answer = Promise.withResolvers<undefined>();
  void asking.whileAsking(() => answer.promise);
  deadlines.end(second);
  await new Promise((resolve) => setTimeout(resolve, 150));
  assert.deepEqual(ended, ["first TIMED_OUT"]);
  assert.ok(asking.isAsking);
  answer.resolve(undefined);
  await new Promise((resolve) => setTimeout(resolve, 150));
  assert.deepEqual(ended, ["first TIMED_OUT", "asking TIMED_OUT"]);
  callMs = 1_000;
  begin("late");
});

Deno.test("calls with the same deadline expire in the order in which they began", async () => {
  const limitsOf = (id: string) => {
    const end = performance.now() + (id === "s:slow" ? 30 : 0);
    while (performance.now() < end);
    return { callMs: id === "s:early" ? 60 : 80, capMs: 1_000 };
  };
  using deadlines = new Deadlines(limitsOf);
  const ended: string[] = [];
  for (const id of ["early", "first", "slow"]) {
    deadlines.begin(timedCall(toolId("s", id), () => ended.push(id)));
  }
  await until(() => ended.length === 3);
  assert.deepEqual(ended, ["early", "first", "slow"]);
});

/** Begins a call that reports every 10 ms, and returns its reports. */
function reporting(callMs: number) {
  const deadlines = new Deadlines(() => ({ callMs, capMs: 10_000 }), 10);
  const reports: ProgressReport[] = [];
  const ended = Promise.withResolvers<PmlError>();
  const onProgress = (progress: ProgressReport) => void reports.push(progress);
  const running = deadlines.begin(timedCall(toolId("s", "t"), ended.resolve, onProgress));
  return { deadlines, reports, running, ended: ended.promise };
}

function kinds(reports: readonly ProgressReport[]): readonly (string | undefined)[] {
  return reports.map(({ ownReport }) => ownReport);
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 1));
}

Deno.test("reports of a call without progress do not extend its deadline", async () => {
  const { deadlines, reports, ended } = reporting(80);
  using _ = deadlines;
  assert.equal((await ended).code, "TIMED_OUT");
  assert.ok(reports.length >= 2, `${reports.length} reports`);
  assert.ok(kinds(reports).every((own) => own === "waiting"));
  assert.equal(reports[0]?.message, "s:t has been running for 0 s");
});

Deno.test("no report is sent while a server is unresponsive, the user is asked, or after the end", async () => {
  const { deadlines, reports, running } = reporting(60_000);
  using _ = deadlines;
  assert.equal(running.handleProgress(ownProgress("unresponsive", "")), true);
  const answer = Promise.withResolvers<undefined>();
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.deepEqual(reports, []);
  assert.equal(running.handleProgress(ownProgress("responsive", "")), false);
  const asked = running.whileAsking(() => answer.promise);
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.deepEqual(reports, []);
  answer.resolve(undefined);
  await asked;
  await until(() => reports.length >= 2);
  deadlines.end(running);
  const { length } = reports;
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(reports.length, length);
});

Deno.test("a call that ends because another one has expired is not cancelled by its own deadline", async () => {
  using deadlines = new Deadlines(() => ({ callMs: 20, capMs: 20 }));
  const cancelled: string[] = [];
  const timed = (name: string, onCancel: () => void) => ({
    ...{ id: toolId("s", "t"), wantsReports: false, report: () => {} },
    cancel: () => {
      cancelled.push(name);
      onCancel();
    },
  });
  const endsSecond = () => void Promise.resolve().then(() => deadlines.end(second));
  deadlines.begin(timed("first", endsSecond));
  const second = deadlines.begin(timed("second", () => {}));
  await until(() => cancelled.length > 0);
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.deepEqual(cancelled, ["first"]);
});

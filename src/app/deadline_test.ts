import assert from "node:assert/strict";
import { type Call, type ProgressReport, textResult } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { ownProgress } from "../core/progress.ts";
import { toolId } from "../core/tool_id.ts";
import { deadlineGate, Deadlines } from "./deadline.ts";

function callWith(signal: AbortSignal): Call {
  return {
    id: toolId("s", "t"),
    arguments: {},
    via: "test",
    actor: "local",
    signal,
    callId: "1",
  };
}

const never = new AbortController().signal;

function isCode(code: string): (error: unknown) => boolean {
  return (error) => error instanceof PmlError && error.code === code;
}

Deno.test("a call ends at the time limit that its server has", async () => {
  const limits = (id: string) => id === "slow:tool" ? 10_000 : 20;
  using deadlines = new Deadlines((id) => ({ callMs: limits(id), capMs: 20_000 }));
  const over = Promise.withResolvers<PmlError>();
  const slow = deadlines.begin({ id: toolId("slow", "tool") }, assert.fail);
  deadlines.begin({ id: toolId("quick", "tool") }, over.resolve);
  assert.equal((await over.promise).code, "TIMED_OUT");
  deadlines.end(slow);
});

Deno.test("deadlineGate() frees the caller although the tool ignores its signal", async () => {
  const call = deadlineGate(new Deadlines(() => ({ callMs: 20, capMs: 1_000 })))(() =>
    new Promise(() => {})
  );
  await assert.rejects(call(callWith(never)), isCode("TIMED_OUT"));
});

Deno.test("deadlineGate() aborts the tool's signal with TIMED_OUT", async () => {
  let reason: unknown;
  const gate = deadlineGate(new Deadlines(() => ({ callMs: 20, capMs: 1_000 })));
  const call = gate(({ signal }) =>
    new Promise(() => signal.addEventListener("abort", () => reason = signal.reason))
  );
  await assert.rejects(call(callWith(never)), isCode("TIMED_OUT"));
  assert.ok(isCode("TIMED_OUT")(reason));
});

Deno.test("deadlineGate() lets progress extend the deadline, and the cap end it", async () => {
  const started = Date.now();
  const gate = deadlineGate(new Deadlines(() => ({ callMs: 60, capMs: 200 })));
  let beat: ReturnType<typeof setInterval> | undefined;
  const call = gate(({ onProgress }) => {
    beat = setInterval(() => onProgress?.({ progress: 1 }), 10);
    return new Promise(() => {});
  });
  await assert.rejects(call(callWith(never)), isCode("TIMED_OUT"));
  clearInterval(beat);
  assert.ok(Date.now() - started >= 190);
});

Deno.test("deadlineGate() answers a cancelled call with CANCELLED, also one cancelled before", async () => {
  const abort = new AbortController();
  const gate = deadlineGate(new Deadlines(() => ({ callMs: 1_000, capMs: 1_000 })));
  const running = gate(() => new Promise(() => {}))(callWith(abort.signal));
  abort.abort();
  await assert.rejects(running, isCode("CANCELLED"));
  let ran = false;
  const late = gate(() => {
    ran = true;
    return Promise.resolve({ kind: "result", result: textResult("") });
  });
  await assert.rejects(late(callWith(abort.signal)), isCode("CANCELLED"));
  assert.ok(!ran);
});

Deno.test("deadlineGate() gives the result back", async () => {
  const gate = deadlineGate(new Deadlines(() => ({ callMs: 1_000, capMs: 1_000 })));
  const call = gate(() => Promise.resolve({ kind: "result", result: textResult("x") }));
  assert.deepEqual(await call(callWith(never)), { kind: "result", result: textResult("x") });
});

Deno.test("deadlineGate() counts no time in which a person is asked", async () => {
  const gate = deadlineGate(new Deadlines(() => ({ callMs: 40, capMs: 60 })));
  const answered = Promise.withResolvers<{ readonly said: string }>();
  const params = { method: "elicitation/create", params: {}, server: "s", signal: never } as const;
  let aborted = false;
  const call = gate(async ({ onAsk, signal }) => {
    signal.addEventListener("abort", () => aborted = true);
    const said = await Promise.all([onAsk?.(params), onAsk?.(params)]);
    assert.deepEqual(said, [{ said: "yes" }, { said: "yes" }]);
    assert.equal(aborted, false);
    // From here on the time counts again.
    return await new Promise(() => {});
  });
  setTimeout(() => answered.resolve({ said: "yes" }), 150);
  const since = performance.now();
  await assert.rejects(
    call({ ...callWith(never), onAsk: () => answered.promise }),
    isCode("TIMED_OUT"),
  );
  assert.ok(performance.now() - since >= 180);
  assert.equal(aborted, true);
});

Deno.test("deadlineGate() counts no time in which the client had to read first, also if that is over", async () => {
  let heldMs = 30;
  const done = Promise.withResolvers<void>();
  const gate = deadlineGate(new Deadlines(() => ({ callMs: 150, capMs: 200, heldMs })));
  const call = gate(async () => {
    await done.promise;
    return { kind: "result", result: textResult("late") };
  });
  // It ends before the deadline is looked at, and after that nothing holds the call any more.
  setTimeout(() => heldMs += 140, 20);
  setTimeout(done.resolve, 240);
  assert.deepEqual(await call(callWith(never)), { kind: "result", result: textResult("late") });
  const since = performance.now();
  const hung = deadlineGate(new Deadlines(() => ({ callMs: 50, capMs: 90, heldMs })))(() =>
    new Promise(() => {})
  );
  await assert.rejects(hung(callWith(never)), isCode("TIMED_OUT"));
  assert.ok(performance.now() - since >= 45);
});

Deno.test("Deadlines ends each call at its own time, with one timer for all", async () => {
  let callMs = 60;
  using deadlines = new Deadlines(() => ({ callMs, capMs: 1_000 }));
  const ended: string[] = [];
  const begin = (id: string) =>
    deadlines.begin({ id: toolId("s", id) }, ({ code }) => ended.push(`${id} ${code}`));
  const [, second, asking] = ["first", "second", "asking"].map(begin);
  assert.ok(second !== undefined && asking !== undefined);
  const answer = Promise.withResolvers<undefined>();
  void asking.held({ onQuestion: () => answer.promise }).onQuestion?.(
    {} as never,
    never,
  );
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

/** Begins a call that reports every 10 ms, and returns its reports. */
function reporting(callMs: number) {
  const deadlines = new Deadlines(() => ({ callMs, capMs: 10_000 }), 10);
  const reports: ProgressReport[] = [];
  const ended = Promise.withResolvers<PmlError>();
  const onProgress = (progress: ProgressReport) => void reports.push(progress);
  const running = deadlines.begin({ id: toolId("s", "t"), onProgress }, ended.resolve);
  return { deadlines, reports, running, ended: ended.promise };
}

function kinds(reports: readonly ProgressReport[]): readonly (string | undefined)[] {
  return reports.map(({ own }) => own);
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
  assert.equal(running.notes(ownProgress("unresponsive", "")), true);
  const answer = Promise.withResolvers<undefined>();
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.deepEqual(reports, []);
  assert.equal(running.notes(ownProgress("responsive", "")), false);
  const asked = running.held({ onQuestion: () => answer.promise }).onQuestion?.({} as never, never);
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

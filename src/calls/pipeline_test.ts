import assert from "node:assert/strict";
import type { Records } from "../audit/records.ts";
import { serverDouble } from "../servers/_server_double_test.ts";
import { type Call, NO_CLIENT, type Outcome, textResult } from "../protocol/call.ts";
import { Cancellation, type CancelListener } from "../core/cancellation.ts";
import { PmlError } from "../core/errors.ts";
import type { Maybe } from "../core/maybe.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { ToolId } from "../core/tool_id.ts";
import { yieldTurn } from "../io/waiting.ts";
import { Capacity } from "./capacity.ts";
import type { Check, CheckResult } from "./checks/check.ts";
import type { CallContext } from "./context.ts";
import { Deadlines } from "./deadline.ts";
import { CallPipeline, type CallRunner, type PipelineHost } from "./pipeline.ts";

const ID = "s:t" as ToolId;
const DEFINITION: ToolDefinition = { name: "t", inputSchema: {} };
const DONE: Outcome = { kind: "result", result: textResult("done") };
const HOUR = 3_600_000;

/** A pipeline whose steps are noted, and where something can happen at each of them. */
class Stage implements CallRunner {
  readonly steps: string[] = [];
  /** What happens at a step, by its name. */
  readonly at = new Map<string, () => unknown>();
  readonly pipeline: CallPipeline;
  version = 1;
  outcome: () => Promise<Outcome> = () => Promise.resolve(DONE);
  result: CheckResult;
  readonly #deadlines = new Deadlines(() => ({ callMs: HOUR, capMs: HOUR }));

  constructor(limits = { concurrentCalls: 1, queuedCalls: 10 }) {
    const host: PipelineHost = {
      capacity: new Capacity(() => limits, () => {}),
      resolver: { resolve: (call) => this.#resolve(call) },
      records: this.#records(),
      deadlines: this.#deadlines,
      runner: this,
      isCurrent: (version) => version === this.version,
      loadDefinition: () => this.#step("definition", DEFINITION),
      withSampling: (_, client) => client,
      redactor: { clean: (value) => value, cleanError: (error) => error },
      mayRunUnrecorded: () => Promise.resolve(false),
      errorFor: (_, error) => error,
    };
    const checks = [this.#check("first check"), this.#check("second check")];
    this.pipeline = new CallPipeline(host, checks);
  }

  run(call: CallContext): Promise<Outcome> {
    this.#step("server", undefined);
    call.assertCurrent();
    call.sentAt = performance.now();
    return this.outcome();
  }

  signIn(): Promise<boolean> {
    return Promise.resolve(false);
  }

  checkResult(_: CallContext, outcome: Outcome): Outcome {
    void this.#step("result check", undefined);
    return outcome;
  }

  call(cancellation = new Cancellation()): Promise<Outcome> {
    return this.pipeline.call(requestOf(cancellation));
  }

  [Symbol.dispose](): void {
    this.#deadlines[Symbol.dispose]();
  }

  /** Notes a step. What happens at it may take its time. */
  #step<T>(name: string, value: T): Maybe<T> {
    this.steps.push(name);
    const happened = this.at.get(name)?.();
    return happened instanceof Promise ? happened.then(() => value) : value;
  }

  #resolve(call: CallContext): Promise<void> | undefined {
    call.resolve({ server: serverDouble("s"), version: this.version, isBlocked: false });
    const resolved = this.#step("resolve", undefined);
    return resolved instanceof Promise ? resolved.then(() => {}) : undefined;
  }

  #check(name: string): Check {
    return (call) => {
      if (name === "second check") call.definition();
      const passed = this.#step(name, undefined);
      return passed instanceof Promise ? passed.then(() => this.result) : undefined;
    };
  }

  #records(): Records {
    const records: Pick<Records, "start" | "end" | "note" | "runAfterAnswer"> = {
      start: async () => {
        await this.#step("start record", undefined);
        return undefined;
      },
      end: () => void this.steps.push("end record"),
      note: () => void this.steps.push("end record"),
      runAfterAnswer: (work) => work(),
    };
    return records as Records;
  }
}

function requestOf(cancellation: Cancellation): Call {
  return {
    ...{ id: ID, arguments: {}, via: "tools/call", actor: "local", cancellation },
    client: NO_CLIENT,
    callId: crypto.randomUUID(),
  };
}

const STEPS = [
  "resolve",
  "start record",
  "first check",
  "definition",
  "second check",
  "server",
  "result check",
  "end record",
];

Deno.test("the steps of a call run once and in their order", async () => {
  using stage = new Stage();
  assert.deepEqual(await stage.call(), DONE);
  assert.deepEqual(stage.steps, STEPS);
});

for (const seam of ["start record", "first check", "second check", "definition", "server"]) {
  Deno.test(`a change of the rules at the step "${seam}" begins the checks again`, async () => {
    using stage = new Stage();
    stage.at.set(seam, () => {
      stage.at.delete(seam);
      stage.version++;
    });
    assert.deepEqual(await stage.call(), DONE);
    const again = STEPS.filter((step) => step !== "start record").slice(0, -2);
    const isSent = seam === "server";
    const first = STEPS.slice(0, isSent ? 6 : 5);
    assert.deepEqual(stage.steps, [...first, ...again, "result check", "end record"]);
  });
}

Deno.test("a change of the rules while a call waits for its turn is seen by its first pass", async () => {
  using stage = new Stage();
  const gate = Promise.withResolvers<Outcome>();
  stage.outcome = () => gate.promise;
  const first = stage.call();
  const second = stage.call();
  while (!stage.steps.includes("server")) await Promise.resolve();
  stage.version++;
  stage.outcome = () => Promise.resolve(DONE);
  gate.resolve(DONE);
  await Promise.all([first, second]);
  // The first was sent before the change, the second was resolved after it: each has one pass.
  assert.equal(stage.steps.filter((step) => step === "resolve").length, 2);
});

Deno.test("a change of the definition at the server begins the checks again", async () => {
  using stage = new Stage();
  let listed: ToolDefinition = { ...DEFINITION, description: "another one" };
  const run = stage.run.bind(stage);
  stage.run = (call) => {
    const now = listed;
    listed = DEFINITION;
    stage.steps.push("compared");
    call.assertListed(now);
    return run(call);
  };
  assert.deepEqual(await stage.call(), DONE);
  assert.equal(stage.steps.filter((step) => step === "compared").length, 2);
  assert.equal(stage.steps.filter((step) => step === "server").length, 1);
});

Deno.test("a call whose rules change each time is refused after twenty passes", async () => {
  using stage = new Stage();
  stage.at.set("second check", () => void stage.version++);
  await assert.rejects(() => stage.call(), { code: "OVERLOADED" });
  assert.equal(stage.steps.filter((step) => step === "resolve").length, 20);
  assert.ok(!stage.steps.includes("server"));
  assert.equal(stage.steps.at(-1), "end record");
});

Deno.test("a check that waits is followed by the next one, not by the first", async () => {
  using stage = new Stage();
  stage.at.set("first check", () => Promise.resolve());
  await stage.call();
  assert.deepEqual(stage.steps, STEPS);
});

for (const seam of ["resolve", "start record", "first check", "second check"]) {
  Deno.test(`a call that is cancelled at the step "${seam}" does not reach its server`, async () => {
    using stage = new Stage();
    const cancellation = new Cancellation();
    stage.at.set(seam, () => {
      cancellation.cancel(undefined);
      return Promise.resolve();
    });
    await assert.rejects(() => stage.call(cancellation), { code: "CANCELLED" });
    assert.ok(!stage.steps.includes("server"));
    assert.equal(stage.steps.at(-1), "end record");
  });
}

Deno.test("a check that fails after its call was cancelled is not reported", async () => {
  using stage = new Stage();
  const cancellation = new Cancellation();
  stage.at.set("first check", () => {
    cancellation.cancel(undefined);
    return yieldTurn().then(() => Promise.reject(new Error("too late")));
  });
  await assert.rejects(() => stage.call(cancellation), { code: "CANCELLED" });
  await yieldTurn();
});

Deno.test("a cancelled call ends, even if its server ignores the cancellation", async () => {
  using stage = new Stage();
  const cancellation = new Cancellation();
  stage.outcome = () => new Promise(() => {});
  const call = stage.call(cancellation);
  while (!stage.steps.includes("server")) await Promise.resolve();
  cancellation.cancel(undefined);
  await assert.rejects(call, { code: "CANCELLED" });
  // Its place is free.
  stage.outcome = () => Promise.resolve(DONE);
  assert.deepEqual(await stage.call(), DONE);
});

Deno.test("a call that is cancelled while a check waits ends at once, and its place is free", async () => {
  for (const seam of ["first check", "second check"]) {
    using stage = new Stage();
    const cancellation = new Cancellation();
    stage.at.set(seam, () => new Promise(() => {}));
    const call = stage.call(cancellation);
    while (!stage.steps.includes(seam)) await Promise.resolve();
    cancellation.cancel(undefined);
    await assert.rejects(call, { code: "CANCELLED" });
    assert.equal(stage.steps.at(-1), "end record");
    stage.at.delete(seam);
    assert.deepEqual(await stage.call(), DONE);
  }
});

Deno.test("a call that is cancelled in the queue keeps the order of the others", async () => {
  using stage = new Stage();
  const gate = Promise.withResolvers<Outcome>();
  stage.outcome = () => gate.promise;
  const cancellation = new Cancellation();
  const calls = [stage.call(), stage.call(cancellation), stage.call()];
  cancellation.cancel(undefined);
  gate.resolve(DONE);
  const ends = await Promise.allSettled(calls);
  assert.deepEqual(ends.map(({ status }) => status), ["fulfilled", "rejected", "fulfilled"]);
});

Deno.test("a call that is cancelled in the queue ends at once, and another one may wait", async () => {
  using stage = new Stage({ concurrentCalls: 1, queuedCalls: 1 });
  const gate = Promise.withResolvers<Outcome>();
  stage.outcome = () => gate.promise;
  const cancellation = new Cancellation();
  const [first, second] = [stage.call(), stage.call(cancellation)];
  const refused = assert.rejects(second, { code: "CANCELLED" });
  cancellation.cancel(undefined);
  await refused;
  const third = stage.call();
  gate.resolve(DONE);
  assert.deepEqual(await Promise.all([first, third]), [DONE, DONE]);
  assert.equal(stage.steps.filter((step) => step === "resolve").length, 2);
});

Deno.test("a check that throws ends the call, also if it throws after it waited", async () => {
  for (const isLate of [false, true]) {
    using stage = new Stage();
    stage.at.set("first check", () => {
      const error = new PmlError("PERMISSION_DENIED", "no");
      if (isLate) return Promise.reject(error);
      throw error;
    });
    await assert.rejects(() => stage.call(), { code: "PERMISSION_DENIED" });
    assert.deepEqual(stage.steps, ["resolve", "start record", "first check", "end record"]);
  }
});

Deno.test("a server that throws before it returns a promise ends its call", async () => {
  using stage = new Stage();
  stage.outcome = () => {
    throw new PmlError("UPSTREAM_DOWN", "gone");
  };
  await assert.rejects(() => stage.call(), { code: "UPSTREAM_DOWN" });
});

Deno.test("ten thousand calls leave no listener on a cancellation", async () => {
  using stage = new Stage({ concurrentCalls: 64, queuedCalls: 100 });
  class Counting extends Cancellation {
    count = 0;
    override add(listener: CancelListener): void {
      this.count++;
      super.add(listener);
    }
    override remove(listener: CancelListener): void {
      this.count--;
      super.remove(listener);
    }
  }
  const cancellation = new Counting();
  for (let count = 0; count < 10_000; count++) await stage.call(cancellation);
  assert.equal(cancellation.count, 0);
});

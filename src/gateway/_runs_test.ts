import assert from "node:assert/strict";
import { Cancellation } from "../core/cancellation.ts";
import type { JsonObject } from "../core/json.ts";
import { type Pause, type Run, Runs, type Visit } from "./_runs.ts";

const PARTY = {};

function visit(more: Partial<Visit<string>> = {}): Visit<string> {
  return {
    of: () => "it",
    party: PARTY,
    context: "first",
    cancellation: new Cancellation(),
    state: undefined,
    responses: {},
    ...more,
  };
}

/** Asks once, and gives what came with the context that it came in. */
async function work({ ask, latest, cancellation }: Run<string>): Promise<unknown> {
  const { signal } = cancellation;
  const said = await ask({ method: "elicitation/create", params: { message: "?" }, signal });
  return { said, in: latest() };
}

function asPause(value: unknown): Pause & { readonly key: string } {
  const pause = value as Pause;
  assert.equal(pause.resultType, "input_required");
  const [key = ""] = Object.keys(pause.inputRequests);
  return { ...pause, key };
}

Deno.test("Runs goes on with the work when the client comes again with an answer", async () => {
  using runs = new Runs<string>(() => 1_000);
  let begun = 0;
  const counted = (run: Run<string>) => (begun++, work(run));
  const { requestState, key } = asPause(await runs.visit(visit(), counted));
  const again = visit({
    context: "second",
    state: requestState,
    responses: { [key]: { action: "accept" } },
  });
  assert.deepEqual(await runs.visit(again, counted), {
    said: { action: "accept" },
    in: "second",
  });
  assert.equal(begun, 1);
});

Deno.test("Runs takes a handle once, and only for the request that it was given for", async () => {
  using runs = new Runs<string>(() => 1_000);
  const first = asPause(await runs.visit(visit(), work));
  const other = visit({ of: () => "another", state: first.requestState });
  await assert.rejects(runs.visit(other, work), /another request than before/);
  // Work that was begun is never begun again for who comes too late.
  const late = visit({ state: first.requestState, responses: { [first.key]: {} } });
  await assert.rejects(runs.visit(late, () => assert.fail("it ran again")), /is over/);
  const second = asPause(await runs.visit(visit(), work));
  const answer = visit({ state: second.requestState, responses: { [second.key]: {} } });
  await runs.visit(answer, work);
  await assert.rejects(runs.visit(answer, () => assert.fail("it ran again")), /is over/);
  // The handle of a question of PML's is looked at elsewhere.
  const own = asPause(await runs.visit(visit({ state: "of a question" }), work));
  assert.notEqual(own.requestState, "of a question");
});

Deno.test("Runs tells the work that the client came without an answer", async () => {
  using runs = new Runs<string>(() => 1_000);
  const { requestState } = asPause(await runs.visit(visit(), work));
  await assert.rejects(runs.visit(visit({ state: requestState }), work), /without an answer/);
});

Deno.test("Runs asks several things at once, and again where one leads to another", async () => {
  using runs = new Runs<string>(() => 1_000);
  const both = async ({ ask, cancellation: { signal } }: Run<string>) => {
    const one = (message: string) =>
      ask({ method: "elicitation/create", params: { message }, signal });
    return [...await Promise.all([one("a"), one("b")]), await one("c")];
  };
  const first = asPause(await runs.visit(visit(), both));
  assert.equal(Object.keys(first.inputRequests).length, 2);
  const responses = Object.fromEntries(
    Object.entries(first.inputRequests).map(([key, asked]) => [key, (asked as JsonObject).params]),
  );
  const second = asPause(
    await runs.visit(visit({ state: first.requestState, responses }), both),
  );
  const last = visit({ state: second.requestState, responses: { [second.key]: { message: "d" } } });
  assert.deepEqual(await runs.visit(last, both), [
    { message: "a" },
    { message: "b" },
    { message: "d" },
  ]);
});

Deno.test("Runs gives up what nobody comes back to, and everything at the end", async () => {
  const ended: unknown[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const noting = async (run: Run<string>) => {
    const { signal } = run.cancellation;
    signal.addEventListener("abort", () => {
      ended.push(signal.reason.code);
      resolve();
    });
    return await work(run);
  };
  {
    using runs = new Runs<string>(() => 5);
    asPause(await runs.visit(visit(), noting));
    const alive = setTimeout(() => {}, 5_000);
    await promise;
    clearTimeout(alive);
  }
  {
    using runs = new Runs<string>(() => 1_000);
    asPause(await runs.visit(visit(), noting));
  }
  assert.deepEqual(ended, ["TIMED_OUT", "CANCELLED"]);
});

Deno.test("Runs ends the work when the request that waits for it is cancelled", async () => {
  using runs = new Runs<string>(() => 1_000);
  const cancellation = new Cancellation();
  const hanging = ({ cancellation: { signal } }: Run<string>) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const begun = Promise.withResolvers<void>();
  const waiting = runs.visit(visit({ cancellation }), (run) => {
    begun.resolve();
    return hanging(run);
  });
  await begun.promise;
  cancellation.cancel(new Error("cancelled"));
  await assert.rejects(waiting, /cancelled/);
});

Deno.test("Runs shows what was asked while the client was away, before it counts as answered", async () => {
  using runs = new Runs<string>(() => 1_000);
  const later = Promise.withResolvers<void>();
  const both = async ({ ask, cancellation: { signal } }: Run<string>) => {
    const one = (message: string) =>
      ask({ method: "elicitation/create", params: { message }, signal });
    const first = one("a");
    await later.promise;
    return await Promise.all([first, one("b")]);
  };
  const first = asPause(await runs.visit(visit(), both));
  later.resolve();
  await new Promise((resolve) => setTimeout(resolve));
  const responses = { [first.key]: { said: 1 } };
  const second = asPause(
    await runs.visit(visit({ state: first.requestState, responses }), both),
  );
  assert.deepEqual(second.inputRequests[second.key], {
    method: "elicitation/create",
    params: { message: "b" },
  });
  const last = visit({ state: second.requestState, responses: { [second.key]: { said: 2 } } });
  assert.deepEqual(await runs.visit(last, both), [{ said: 1 }, { said: 2 }]);
});

Deno.test("Runs keeps only so much waiting", async () => {
  using runs = new Runs<string>(() => 1_000);
  for (let at = 0; at < 32; at++) asPause(await runs.visit(visit(), work));
  await assert.rejects(runs.visit(visit(), work), /32 requests wait for answers already/);
});

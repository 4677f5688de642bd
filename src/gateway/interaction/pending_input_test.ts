import assert from "node:assert/strict";
import { Cancellation } from "../../core/cancellation.ts";
import type { JsonObject } from "../../core/json.ts";
import type { ClientRequest } from "./request_client.ts";
import { yieldTurn } from "../../io/waiting.ts";
import { type InputRequired, type PendingInput, PendingInputs } from "./pending_input.ts";

const CLIENT = { owner: {} };

/** The parts of a request that a test chooses. */
interface Parts {
  readonly idText?: string;
  readonly method?: string;
  readonly cancellation?: Cancellation;
  readonly requestState?: string;
  readonly inputResponses?: JsonObject;
  readonly client?: { readonly owner: object };
}

function requestOf({ client = CLIENT, ...context }: Parts = {}): ClientRequest {
  const all = { idText: "1", method: "tools/call", cancellation: new Cancellation(), ...context };
  return { client, context: all, params: {} } as unknown as ClientRequest; // nothing else is read
}

/** Requests input once. Returns the response, and the id of the request that got the result. */
async function work(pending: PendingInput): Promise<JsonObject> {
  const { signal } = pending.cancellation;
  const request = { method: "elicitation/create", params: { message: "?" }, signal } as const;
  const response = await pending.requestInput(request);
  return { response, id: pending.current?.idText ?? "none" };
}

async function serve(
  inputs: PendingInputs,
  request: ClientRequest,
  work: (pending: PendingInput) => Promise<JsonObject>,
): Promise<JsonObject> {
  return await (inputs.resume(request) ?? inputs.begin(request, work));
}

function inputRequiredIn(result: JsonObject): InputRequired & { readonly key: string } {
  const required = result as InputRequired;
  assert.equal(required.resultType, "input_required");
  const [key = ""] = Object.keys(required.inputRequests);
  return { ...required, key };
}

Deno.test("work goes on when its client sends the request again with the response", async () => {
  using inputs = new PendingInputs(() => 1_000);
  let count = 0;
  const counted = (pending: PendingInput) => (count++, work(pending));
  const { requestState, key } = inputRequiredIn(await serve(inputs, requestOf(), counted));
  const response = { action: "accept" };
  const again = requestOf({ idText: "2", requestState, inputResponses: { [key]: response } });
  assert.deepEqual(await serve(inputs, again, counted), { response, id: "2" });
  assert.equal(count, 1);
});

Deno.test("a state resumes work once, and only for the same request of the same owner", async () => {
  using inputs = new PendingInputs(() => 1_000);
  const never = () => assert.fail("the work began again");
  const begin = async () => inputRequiredIn(await serve(inputs, requestOf(), work));
  const first = await begin();
  const stranger = requestOf({ client: { owner: {} }, requestState: first.requestState });
  await assert.rejects(serve(inputs, stranger, never), /is over/);
  const other = requestOf({ method: "prompts/get", requestState: first.requestState });
  await assert.rejects(serve(inputs, other, never), /another request than before/);
  const inputResponses = { [first.key]: {} };
  const late = requestOf({ requestState: first.requestState, inputResponses });
  await assert.rejects(serve(inputs, late, never), /is over/);
  const second = await begin();
  const answer = requestOf({
    requestState: second.requestState,
    inputResponses: { [second.key]: {} },
  });
  await serve(inputs, answer, never);
  await assert.rejects(serve(inputs, answer, never), /is over/);
  // The state of an approval request belongs to no work.
  const approval = requestOf({ requestState: "handle" });
  assert.notEqual(inputRequiredIn(await serve(inputs, approval, work)).requestState, "handle");
});

Deno.test("work fails if its client sends the request again without a response", async () => {
  using inputs = new PendingInputs(() => 1_000);
  const { requestState } = inputRequiredIn(await serve(inputs, requestOf(), work));
  await assert.rejects(serve(inputs, requestOf({ requestState }), work), /without an answer/);
});

Deno.test("work can request several inputs at once, and more after the responses", async () => {
  using inputs = new PendingInputs(() => 1_000);
  const both = async (pending: PendingInput) => {
    const { signal } = pending.cancellation;
    const one = (message: string) =>
      pending.requestInput({ method: "elicitation/create", params: { message }, signal });
    return { all: [...await Promise.all([one("a"), one("b")]), await one("c")] };
  };
  const first = inputRequiredIn(await serve(inputs, requestOf(), both));
  assert.equal(Object.keys(first.inputRequests).length, 2);
  const inputResponses = Object.fromEntries(
    Object.entries(first.inputRequests).map(([key, one]) => [key, (one as JsonObject).params]),
  ) as JsonObject;
  const { requestState } = first;
  const second = inputRequiredIn(
    await serve(inputs, requestOf({ requestState, inputResponses }), both),
  );
  const last = requestOf({
    requestState: second.requestState,
    inputResponses: { [second.key]: { message: "d" } },
  });
  assert.deepEqual(await serve(inputs, last, both), {
    all: [{ message: "a" }, { message: "b" }, { message: "d" }],
  });
});

Deno.test("work is cancelled if its client does not come back, and when PML ends", async () => {
  const codes: unknown[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const recorded = async (pending: PendingInput) => {
    const { signal } = pending.cancellation;
    signal.addEventListener("abort", () => {
      codes.push(signal.reason.code);
      resolve();
    });
    return await work(pending);
  };
  {
    using inputs = new PendingInputs(() => 5);
    inputRequiredIn(await serve(inputs, requestOf(), recorded));
    const alive = setTimeout(() => {}, 5_000);
    await promise;
    clearTimeout(alive);
  }
  {
    using inputs = new PendingInputs(() => 1_000);
    inputRequiredIn(await serve(inputs, requestOf(), recorded));
  }
  assert.deepEqual(codes, ["TIMED_OUT", "CANCELLED"]);
});

Deno.test("work is cancelled with the request that waits for it", async () => {
  using inputs = new PendingInputs(() => 1_000);
  const cancellation = new Cancellation();
  const result = serve(
    inputs,
    requestOf({ cancellation }),
    ({ cancellation: { signal } }) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  );
  cancellation.cancel(new Error("cancelled"));
  await assert.rejects(result, /cancelled/);
});

Deno.test("input requested while the client is away is sent before it counts as answered", async () => {
  using inputs = new PendingInputs(() => 1_000);
  const later = Promise.withResolvers<void>();
  const both = async (pending: PendingInput) => {
    const { signal } = pending.cancellation;
    const one = (message: string) =>
      pending.requestInput({ method: "elicitation/create", params: { message }, signal });
    const first = one("a");
    await later.promise;
    return { all: await Promise.all([first, one("b")]) };
  };
  const first = inputRequiredIn(await serve(inputs, requestOf(), both));
  later.resolve();
  await new Promise((resolve) => setTimeout(resolve));
  const second = inputRequiredIn(
    await serve(
      inputs,
      requestOf({ requestState: first.requestState, inputResponses: { [first.key]: { at: 1 } } }),
      both,
    ),
  );
  assert.deepEqual(second.inputRequests[second.key], {
    method: "elicitation/create",
    params: { message: "b" },
  });
  const last = requestOf({
    requestState: second.requestState,
    inputResponses: { [second.key]: { at: 2 } },
  });
  assert.deepEqual(await serve(inputs, last, both), { all: [{ at: 1 }, { at: 2 }] });
});

Deno.test("at most 32 requests wait for input", async () => {
  using inputs = new PendingInputs(() => 1_000);
  for (let at = 0; at < 32; at++) inputRequiredIn(await serve(inputs, requestOf(), work));
  await assert.rejects(
    serve(inputs, requestOf(), work),
    { code: "OVERLOADED", message: /32 requests/ },
  );
});

Deno.test("work is cancelled when the owner that it waits for has disconnected", async () => {
  using inputs = new PendingInputs(() => 60_000);
  const other = { owner: {} };
  const ends: string[] = [];
  const workOf = (name: string) => (pending: PendingInput) =>
    work(pending).catch((error) => {
      ends.push(name);
      throw error;
    });
  await serve(inputs, requestOf(), workOf("one"));
  const { requestState, key } = inputRequiredIn(
    await serve(inputs, requestOf({ client: other }), workOf("other")),
  );
  inputs.leave(CLIENT.owner);
  await yieldTurn();
  assert.deepEqual(ends, ["one"]);
  const again = { client: other, idText: "2", requestState, inputResponses: { [key]: {} } };
  assert.deepEqual(await serve(inputs, requestOf(again), work), { response: {}, id: "2" });
});

import assert from "node:assert/strict";
import {
  call,
  codeOf,
  errorOf,
  isGone,
  SANDBOX_LIMITS,
  Yard,
} from "../../tests/fixtures/modules/yard.ts";
import { PmlError } from "../core/errors.ts";
import type { Json } from "../core/json.ts";
import { settlesWithin, whenAborted } from "../io/waiting.ts";
import type { OnRequest, Sandbox } from "./sandbox.ts";

/** Sends valid and forged requests to PML. */
const ASKER = `
let kept;
export async function ask({ name = "echo", args }, host, request) {
  kept = request;
  try { return { gave: await request(name, args) }; }
  catch (error) { return { name: error.name, message: error.message, code: error.code }; }
}
export const many = ({ count }, _, request) =>
  Promise.all(Array.from({ length: count }, (_, at) => request("echo", at)));
export async function late() {
  try { return await kept("echo", 1); } catch (error) { return error.code; }
}
export async function hang(_, host, request) { await request("hang", null); }
export async function leave(_, host, request) {
  const stop = new AbortController();
  const asked = request("hang", null, stop.signal);
  setTimeout(() => stop.abort(new Error("left")), 1);
  try { return await asked; } catch (error) { return error.message; }
}
export const wait = (_, host) =>
  new Promise((resolve) => host.signal.addEventListener("abort", () => resolve("stopped")));
export const exit = () => Deno.exit(3);
let port;
const post = MessagePort.prototype.postMessage;
MessagePort.prototype.postMessage = function (...said) { port = this; return post.apply(this, said); };
/** Sends its own messages past the boot code. */
export async function forge({ messages, text }, host) {
  host.log("finds the port");
  for (const message of messages) post.call(port, message);
  if (text) Deno.stdout.writeSync(new TextEncoder().encode(text));
  await new Promise((resolve) => setTimeout(resolve, 20));
  return "forged";
}
`;

/** A handler that records its requests and their signals. */
class Desk {
  readonly asked: [string, Json][] = [];
  readonly stopped: AbortSignal[] = [];
  readonly #waiting: (() => void)[] = [];

  readonly answer: OnRequest = async (name, args, signal) => {
    this.asked.push([name, args]);
    this.#waiting.shift()?.();
    if (name === "refuse") throw new PmlError("PERMISSION_DENIED", "Cannot do it: no");
    if (name !== "hang") return args;
    await whenAborted(signal);
    this.stopped.push(signal);
    throw signal.reason;
  };

  /** Waits for a request. */
  busy(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (this.asked.length > 0) resolve();
    this.#waiting.push(resolve);
    return promise;
  }
}

function ask(sandbox: Sandbox, fn: string, { desk, args = {}, signal, graceMs = 0 }: {
  readonly desk: Desk;
  readonly args?: Readonly<Record<string, Json>>;
  readonly signal?: AbortSignal;
  readonly graceMs?: number;
}): Promise<Json> {
  return sandbox.call({
    ...{ fn, arguments: args, graceMs, onRequest: desk.answer },
    signal: signal ?? AbortSignal.timeout(20_000),
  });
}

Deno.test("Sandbox answers the requests of a call, also many at once", async () => {
  await using yard = new Yard();
  const sandbox = await yard.start(ASKER);
  const desk = new Desk();
  const args = { args: { deep: [1, "é", null], long: "x".repeat(40_000) } };
  assert.deepEqual(await ask(sandbox, "ask", { desk, args }), { gave: args.args });
  const expected = Array.from({ length: 200 }, (_, at) => at);
  assert.deepEqual(await ask(sandbox, "many", { desk, args: { count: 200 } }), expected);
  assert.deepEqual(await ask(sandbox, "ask", { desk, args: { name: "refuse" } }), {
    name: "Error",
    message: "Cannot do it: no",
    code: "PERMISSION_DENIED",
  });
});

Deno.test("Sandbox refuses requests of calls without the right, or that have ended", async () => {
  await using yard = new Yard();
  const sandbox = await yard.start(ASKER);
  const desk = new Desk();
  const refused = await call(sandbox, "ask");
  assert.equal((refused as { code?: string }).code, "SANDBOX_DENIED");
  await ask(sandbox, "ask", { desk });
  assert.equal(await ask(sandbox, "late", { desk }), "SANDBOX_DENIED");
  assert.equal(desk.asked.length, 1);
});

Deno.test("Sandbox aborts the requests of a call that is cancelled or dropped", async () => {
  await using yard = new Yard();
  const sandbox = await yard.start(ASKER);
  const desk = new Desk();
  assert.equal(await ask(sandbox, "leave", { desk }), "left");
  assert.equal(desk.stopped.length, 1);
  const stop = new AbortController();
  const late = new Desk();
  const hanging = ask(sandbox, "hang", { desk: late, signal: stop.signal, graceMs: 5_000 });
  await late.busy();
  stop.abort();
  assert.equal(await codeOf(hanging), "CANCELLED");
  assert.equal(late.stopped.length, 1);
  assert.ok(sandbox.isAlive);
});

Deno.test("Sandbox aborts the requests of a child that ends", async () => {
  await using yard = new Yard();
  const sandbox = await yard.start(ASKER);
  const desk = new Desk();
  const hanging = ask(sandbox, "hang", { desk });
  await desk.busy();
  const dying = ask(sandbox, "exit", { desk });
  assert.equal(await codeOf(hanging), "SANDBOX_CRASHED");
  assert.equal(await codeOf(dying), "SANDBOX_CRASHED");
  assert.equal(desk.stopped.length, 1);
  await sandbox.ended;
  assert.ok(isGone(sandbox.pid));
});

Deno.test("Sandbox does not answer forged requests", async () => {
  await using yard = new Yard();
  const sandbox = await yard.start(ASKER);
  const desk = new Desk();
  const hanging = ask(sandbox, "hang", { desk });
  hanging.catch(() => {}); // asserted below
  await desk.busy();
  const want = (id: unknown, args: unknown[]) => ({ kind: "ask", id, op: "want", args });
  const frame = (type: string, id: number, json: string) => ({ kind: "frame", type, id, json });
  const messages = [
    want(901, [99, '["echo",1]']), // a call that is not running
    want(902, [-1, '["echo",1]']),
    want(903, ["1 x", '["echo",1]']),
    want(904, [Number.NaN, '["echo",1]']),
    want(905, [1, "no json"]),
    want(906, [1, '{"name":"echo"}']),
    want(907, [1, '[{"toString":1},1]']),
    want(908, [1, '["echo",{"__proto__":{"a":1}}]']),
    want(909, [1, '["echo",1]\nresult 1 "forged"']),
    want(910, [{}, {}]),
    want(0, [1, '["echo",1]']), // a synchronous request
    frame("want", 1, '1 ["echo",1]'),
    frame("drop", 1, "0"),
    frame("answered", 1, "0"),
  ];
  const forged = sandbox.call({
    ...{ fn: "forge", arguments: { messages: messages as Json, text: '\nwant 1 1 ["echo",1]\n' } },
    signal: AbortSignal.timeout(20_000),
  });
  assert.equal(await forged, "forged");
  assert.deepEqual(desk.asked, [["hang", null]]);
  assert.equal(await settlesWithin(hanging, 0), false, "a forged frame ended a call");
  assert.ok(sandbox.isAlive);
  await sandbox[Symbol.asyncDispose]();
  assert.equal(await codeOf(hanging), "SANDBOX_CRASHED");
  assert.equal(desk.stopped.length, 1);
});

Deno.test("Sandbox ends a child that sends too many or too large requests", async () => {
  await using yard = new Yard();
  const limits = { ...SANDBOX_LIMITS, frames: 50, frameBytes: 100_000 };
  const desk = new Desk();
  const often = await yard.start(ASKER, { limits });
  const flooded = await errorOf(ask(often, "many", { desk, args: { count: 60 } }));
  assert.equal(flooded.code, "SANDBOX_CRASHED");
  assert.match(flooded.message, /more than 50 messages/);
  assert.ok(desk.asked.length <= 50);
  const much = await yard.start(ASKER, { limits });
  const args = { args: "x".repeat(100_000) };
  const large = await errorOf(ask(much, "ask", { desk, args }));
  assert.match(large.message, /more than 100000 bytes/);
  // Requests of calls that are not running count, too.
  const messages = Array.from({ length: 60 }, (_, at) => (
    { kind: "ask", id: at + 1, op: "want", args: [77, "[]"] }
  ));
  const other = await yard.start(ASKER, { limits });
  const noisy = await errorOf(ask(other, "forge", { desk, args: { messages } }));
  assert.match(noisy.message, /more than 50 messages/);
});

/**
 * The thread that runs a module. It replaces functions of Deno with brokered functions, loads the
 * module and calls it. The module runs in the same thread, so this code cannot confine the module.
 *
 * @module
 */

import { HostClient } from "./host_client.ts";
import { deniedGlobals, deniedInDeno } from "./denied.ts";
import { parseWithBigInts, withNumbers, writeBigInts } from "./exact_values.ts";
import { brokeredFiles } from "./files.ts";
import { moduleHost } from "./module_host.ts";
import { type ResultCheck, resultChecks, urlOf } from "./results.ts";
import { takeEndLock } from "./life.ts";
import type { ResultSchemas, SentError, ToWorker, WorkerStart } from "./message.ts";
import { allowedActions } from "./probe.ts";
import { StandardSchemas } from "./standard_schemas.ts";
import { brokeredSqlite } from "./module_sqlite.ts";

/** Longer texts are sent as bytes, which are transferred and not copied. */
const TRANSFER_MIN = 1 << 14;

/** A request of the module to PML: its name, its arguments, and a signal that stops waiting. */
type ModuleRequest = readonly [name: string, args: unknown, signal?: AbortSignal];

/** Waits for the host thread's first message. */
export function bootWorker(): void {
  globalThis.addEventListener("message", (event) => {
    if (event instanceof MessageEvent) void new ModuleThread(event.data).open();
  }, { once: true });
}

/** Loads one module and runs its calls. */
class ModuleThread {
  readonly #start: WorkerStart;
  readonly #client: HostClient;
  readonly #running = new Map<number, AbortController>();
  // The original function, because a module may replace globals.
  readonly #json = JSON.stringify;
  #module: Readonly<Record<string, unknown>> = {};
  #standard = new StandardSchemas(undefined);
  #results: ResultSchemas | undefined;
  #checks: Promise<ReadonlyMap<string, ResultCheck>> | undefined;

  constructor(start: WorkerStart) {
    const post = start.port.postMessage.bind(start.port);
    this.#start = start;
    this.#client = new HostClient(start, post);
    start.port.onmessage = (event: MessageEvent<ToWorker>) => this.#receive(event.data);
  }

  async open(): Promise<void> {
    await takeEndLock();
    const problems = await allowedActions(this.#start.closed);
    this.#send("tested", 0, problems);
  }

  #receive(message: ToWorker): void {
    switch (message.kind) {
      case "load":
        return void this.#load(message);
      case "said":
        return this.#client.forward(message.id, message.value);
      case "reply":
        return this.#client.settle(message.id, message.reply);
      case "cancel":
        return this.#running.get(message.id)?.abort();
      case "call":
        return void this.#call(message);
    }
  }

  async #load({ code, results }: ToWorker & { kind: "load" }): Promise<void> {
    const { denied, workspace } = this.#start;
    defineAll(Deno, {
      ...brokeredFiles(this.#client),
      ...deniedInDeno(denied),
      cwd: () => workspace,
    });
    defineAll(globalThis, deniedGlobals(denied));
    try {
      this.#results = results;
      this.#module = await import(urlOf(code));
      const names = Object.keys(this.#module);
      const exports = names.filter((name) => typeof this.#module[name] === "function");
      this.#standard = new StandardSchemas(this.#module.__meta__);
      this.#send("ready", 0, { exports, meta: this.#standard.meta });
      // Only after the metadata, in which a BigInt is an error.
      writeBigInts();
    } catch (error) {
      this.#send("unloaded", 0, toSentError(error));
    }
  }

  async #call(call: ToWorker & { kind: "call" }): Promise<void> {
    const { id, fn } = call;
    const controller = new AbortController();
    this.#running.set(id, controller);
    try {
      const value = await this.#run(call, controller.signal);
      const check = await this.#findCheck(fn);
      this.#sendResult(id, check === undefined ? value : checkedResult(this.#toJson(value), check));
    } catch (error) {
      this.#send("failed", id, toSentError(error));
    }
    this.#running.delete(id);
  }

  /** Returns the check for the result of a function. The first call loads the code. */
  async #findCheck(fn: string): Promise<ResultCheck | undefined> {
    const results = this.#results;
    if (results === undefined || !Object.hasOwn(results.schemas, fn)) return undefined;
    return (await (this.#checks ??= resultChecks(results))).get(fn);
  }

  async #run(
    { id, fn, arguments: args }: ToWorker & { kind: "call" },
    signal: AbortSignal,
  ): Promise<unknown> {
    const run = this.#module[fn];
    if (typeof run !== "function") throw new TypeError(`The module exports no function "${fn}"`);
    const { workspace, env } = this.#start;
    // Databases that the call opened are closed before its result is sent.
    await using sqlite = brokeredSqlite((op, sent) => this.#client.request(op, sent));
    const send = (type: string, value: unknown) => this.#send(type, id, value);
    const want = (...request: ModuleRequest) => this.#request(id, request);
    const parts = { signal, workspace, env, sqlite, send };
    const sampled = (name: string, args: unknown) => want(name, args, signal);
    const input = await this.#standard.input(fn, args);
    const value = await run(input, moduleHost(this.#client, { ...parts, want: sampled }), want);
    await this.#standard.assertOutput(fn, value);
    return value;
  }

  /** Sends a request to PML. PML answers it only while the call runs and has the right to ask. */
  #request(id: number, [name, args, signal]: ModuleRequest): Promise<unknown> {
    const json = this.#json([name, args ?? null]);
    const sent = json.length > TRANSFER_MIN ? new TextEncoder().encode(json) : json;
    return this.#client.request("want", [id, sent], { signal });
  }

  #sendResult(id: number, value: unknown): void {
    if (typeof value === "string" && value.length > TRANSFER_MIN) return this.#sendText(id, value);
    const json = this.#toJson(value);
    if (json.length <= this.#start.resultBytes) return this.#post("result", id, json);
    this.#send("failed", id, tooLarge(`${json.length} characters`));
  }

  /** Sends a long text unencoded. JSON would need two more scans of it on each side. */
  #sendText(id: number, text: string): void {
    const bytes = text.length > this.#start.resultBytes
      ? undefined
      : new TextEncoder().encode(text);
    if (bytes !== undefined) return this.#transfer("text", id, bytes);
    this.#send("failed", id, tooLarge(`${text.length} characters`));
  }

  #toJson(value: unknown): string {
    if (typeof value === "function" || typeof value === "symbol") {
      throw notJson(`it is a ${typeof value}`);
    }
    try {
      return this.#json(value) ?? "null";
    } catch (error) {
      const { message } = toSentError(error);
      throw /string length/i.test(message)
        ? tooLarge("more than a string can hold")
        : notJson(message);
    }
  }

  #send(type: string, id: number, value: unknown): void {
    this.#post(type, id, this.#json(value) ?? "null");
  }

  #post(type: string, id: number, json: string): void {
    if (json.length > TRANSFER_MIN) return this.#transfer(type, id, new TextEncoder().encode(json));
    this.#start.port.postMessage({ kind: "frame", type, id, json });
  }

  /** Sends JSON as bytes, which are transferred. A text would be copied. */
  #transfer(type: string, id: number, json: Uint8Array<ArrayBuffer>): void {
    this.#start.port.postMessage({ kind: "frame", type, id, json }, [json.buffer]);
  }
}

/** Returns a result as plain JSON that matches the schema of its tool. */
function checkedResult(json: string, check: ResultCheck): unknown {
  const value: unknown = parseWithBigInts(json);
  const wrong = check(withNumbers(value));
  if (wrong === undefined) return value;
  throw resultError("OUTPUT_INVALID", `it does not match outputSchema: ${wrong}`);
}

function defineAll(target: object, values: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(values)) {
    Object.defineProperty(target, name, { value, writable: true, configurable: true });
  }
}

function tooLarge(size: string): SentError {
  return resultError("RESULT_TOO_LARGE", `it has ${size}`);
}

function notJson(why: string): SentError {
  return resultError("OUTPUT_INVALID", `it is not JSON: ${why}`);
}

function resultError(code: string, why: string): SentError {
  return { name: "Error", message: `Cannot return the result: ${why}`, code };
}

/** Returns the line and the column in the module where an error was created. */
function placeOf(error: unknown): Pick<SentError, "at"> {
  if (!(error instanceof Error)) return {};
  const [, at] = /\bblob:null\/[\w-]+:(\d+:\d+)/.exec(String(error.stack)) ?? [];
  return at === undefined ? {} : { at };
}

/** Returns a failure for any value that a module throws. */
function toSentError(error: unknown): SentError {
  try {
    if (Object(error) !== error) return { name: "Error", message: String(error) };
    const { name = "Error", message = "", code } = error as Partial<SentError>; // read as text below
    const failure = { name: String(name), message: String(message), ...placeOf(error) };
    return typeof code === "string" ? { ...failure, code } : failure;
  } catch {
    return { name: "Error", message: "the module threw something that cannot be read" };
  }
}

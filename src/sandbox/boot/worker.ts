/**
 * The thread that a module runs on. It replaces functions of Deno with brokered ones, loads the
 * module and calls it. The module runs in the same thread, so this code cannot confine it.
 *
 * @module
 */

import { HostClient } from "./host_client.ts";
import { deniedGlobals, deniedInDeno } from "./denied.ts";
import { parsedWithBigInts, withNumbers, writeBigInts } from "./exact_values.ts";
import { brokeredFiles } from "./files.ts";
import { moduleHost } from "./module_host.ts";
import { type ResultCheck, resultChecks, urlOf } from "./results.ts";
import { holdLife } from "./life.ts";
import type { ResultSchemas, SentError, ToWorker, WorkerStart } from "./message.ts";
import { allowedActions } from "./probe.ts";
import { StandardSchemas } from "./standard_schemas.ts";
import { brokeredSqlite } from "./module_sqlite.ts";

const LONG = 1 << 14;

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
  // Saved here, because a module may replace globals, which must not break this code.
  readonly #json = JSON.stringify;
  #module: Readonly<Record<string, unknown>> = {};
  #standard = new StandardSchemas(undefined);
  #results: ResultSchemas | undefined;
  #checks: Promise<ReadonlyMap<string, ResultCheck>> | undefined;

  constructor(start: WorkerStart) {
    const post = start.port.postMessage.bind(start.port);
    this.#start = start;
    this.#client = new HostClient(start, post);
    start.port.onmessage = (event: MessageEvent<ToWorker>) => this.#take(event.data);
  }

  async open(): Promise<void> {
    await holdLife();
    const open = await allowedActions(this.#start.closed);
    this.#send("tested", 0, open);
  }

  #take(message: ToWorker): void {
    switch (message.kind) {
      case "load":
        return void this.#load(message);
      case "said":
        return this.#client.hear(message.id, message.value);
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
    replaceIn(Deno, {
      ...brokeredFiles(this.#client),
      ...deniedInDeno(denied),
      cwd: () => workspace,
    });
    replaceIn(globalThis, deniedGlobals(denied));
    try {
      this.#results = results;
      this.#module = await import(urlOf(code));
      const names = Object.keys(this.#module);
      const exports = names.filter((name) => typeof this.#module[name] === "function");
      this.#standard = new StandardSchemas(this.#module.__meta__);
      this.#send("ready", 0, { exports, meta: this.#standard.meta });
      // Only after the metadata, which has no BigInts.
      writeBigInts();
    } catch (error) {
      this.#send("unloaded", 0, failed(error));
    }
  }

  async #call(call: ToWorker & { kind: "call" }): Promise<void> {
    const { id, fn } = call;
    const controller = new AbortController();
    this.#running.set(id, controller);
    try {
      const value = await this.#run(call, controller.signal);
      const check = await this.#checkOf(fn);
      this.#give(id, check === undefined ? value : checked(this.#plain(value), check));
    } catch (error) {
      this.#send("failed", id, failed(error));
    }
    this.#running.delete(id);
  }

  /** Returns the check for the result of a function. The first call loads the code. */
  async #checkOf(fn: string): Promise<ResultCheck | undefined> {
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
    await using sqlite = brokeredSqlite((op, sent) => this.#client.later(op, sent));
    const send = (type: string, value: unknown) => this.#send(type, id, value);
    const want = (...request: ModuleRequest) => this.#want(id, request);
    const parts = { signal, workspace, env, sqlite, send };
    const sampled = (name: string, args: unknown) => want(name, args, signal);
    const input = await this.#standard.input(fn, args);
    const value = await run(input, moduleHost(this.#client, { ...parts, want: sampled }), want);
    await this.#standard.assertOutput(fn, value);
    return value;
  }

  /** Sends a request to PML. PML answers it only while the call runs and has the right to ask. */
  #want(id: number, [name, args, signal]: ModuleRequest): Promise<unknown> {
    const json = this.#json([name, args ?? null]);
    const sent = json.length > LONG ? new TextEncoder().encode(json) : json;
    return this.#client.later("want", [id, sent], { signal });
  }

  #give(id: number, value: unknown): void {
    if (typeof value === "string" && value.length > LONG) return this.#giveText(id, value);
    const json = this.#plain(value);
    if (json.length <= this.#start.resultBytes) return this.#post("result", id, json);
    this.#send("failed", id, tooLarge(`${json.length} characters`));
  }

  /** Sends a long text unencoded. JSON would need two more scans of it on each side. */
  #giveText(id: number, text: string): void {
    const bytes = text.length > this.#start.resultBytes
      ? undefined
      : new TextEncoder().encode(text);
    if (bytes !== undefined) return this.#hand("text", id, bytes);
    this.#send("failed", id, tooLarge(`${text.length} characters`));
  }

  #plain(value: unknown): string {
    if (typeof value === "function" || typeof value === "symbol") {
      throw notJson(`it is a ${typeof value}`);
    }
    try {
      return this.#json(value) ?? "null";
    } catch (error) {
      const { message } = failed(error);
      throw /string length/i.test(message)
        ? tooLarge("more than a string can hold")
        : notJson(message);
    }
  }

  #send(type: string, id: number, value: unknown): void {
    this.#post(type, id, this.#json(value) ?? "null");
  }

  #post(type: string, id: number, json: string): void {
    if (json.length > LONG) return this.#hand(type, id, new TextEncoder().encode(json));
    this.#start.port.postMessage({ kind: "frame", type, id, json });
  }

  // Bytes are transferred; a long text would be copied.
  #hand(type: string, id: number, json: Uint8Array<ArrayBuffer>): void {
    this.#start.port.postMessage({ kind: "frame", type, id, json }, [json.buffer]);
  }
}

/** Returns a result as plain JSON that matches the schema of its tool. */
function checked(json: string, check: ResultCheck): unknown {
  const value: unknown = parsedWithBigInts(json);
  const wrong = check(withNumbers(value));
  if (wrong === undefined) return value;
  throw noResult("OUTPUT_INVALID", `it does not match outputSchema: ${wrong}`);
}

function replaceIn(target: object, values: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(values)) {
    Object.defineProperty(target, name, { value, writable: true, configurable: true });
  }
}

function tooLarge(size: string): SentError {
  return noResult("RESULT_TOO_LARGE", `it has ${size}`);
}

function notJson(why: string): SentError {
  return noResult("OUTPUT_INVALID", `it is not JSON: ${why}`);
}

function noResult(code: string, why: string): SentError {
  return { name: "Error", message: `Cannot return the result: ${why}`, code };
}

/** Returns the place in the module where an error was created. */
function placeOf(error: unknown): Pick<SentError, "at"> {
  if (!(error instanceof Error)) return {};
  const [, at] = /\bblob:null\/[\w-]+:(\d+:\d+)/.exec(String(error.stack)) ?? [];
  return at === undefined ? {} : { at };
}

/** Returns a failure for any value that a module throws. */
function failed(error: unknown): SentError {
  try {
    if (Object(error) !== error) return { name: "Error", message: String(error) };
    const { name = "Error", message = "", code } = error as Partial<SentError>; // read as text below
    const failure = { name: String(name), message: String(message), ...placeOf(error) };
    return typeof code === "string" ? { ...failure, code } : failure;
  } catch {
    return { name: "Error", message: "the module threw something that cannot be read" };
  }
}

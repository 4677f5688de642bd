/**
 * Runs one module in one child process that can do no more than its grants say.
 *
 * @module
 */

import type { Progress } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { defined, isObject, type Json, type JsonObject, quoted } from "../core/json.ts";
import { type Child, startChild } from "./_child.ts";
import { failure, failureFrom, ModuleFailure } from "./_failure.ts";
import { assertDenoFloor } from "./_floor.ts";
import { levelOf, type LogEntry, type LogLevel, LogTap, Meter } from "./_meter.ts";
import { osChecks } from "./_os_checks.ts";
import { heldBy, type OsLayerChoice, OsLayers } from "./_os_layer.ts";
import { SANDBOX_LIMITS, type SandboxLimits, type SandboxOptions } from "./_options.ts";
import { plainJson } from "./_plain.ts";
import { type Frame, frameOf, type Line, LineReader } from "./_wire.ts";
import type { Protection } from "./boot/message.ts";

export { assertDenoFloor, ModuleFailure, osChecks, OsLayers, SANDBOX_LIMITS };
export type { LogEntry, LogLevel, OsLayerChoice, Protection, SandboxLimits, SandboxOptions };

const GRACE_MS = 250;
const STDERR_MAX = 4_096;
const WATCH_BUSY_MS = 50;
const WATCH_IDLE_MS = 1_000;

/** One call of a function of the module. */
export interface SandboxCall {
  readonly fn: string;
  readonly arguments: JsonObject;
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
  /** How long a cancelled call may take to stop before its child is killed; 0 is at once. */
  readonly graceMs?: number;
}

interface Pending {
  readonly meter: Meter;
  readonly onProgress: ((progress: Progress) => void) | undefined;
  readonly answer: PromiseWithResolvers<Json>;
  /** Lets go of the signal and of the timer that would kill. */
  release(): void;
}

/** A module in its child process. */
export class Sandbox implements AsyncDisposable {
  readonly #child: Child;
  readonly #options: SandboxOptions;
  readonly #logs: LogTap;
  readonly #calls = new Map<number, Pending>();
  readonly #booted = Promise.withResolvers<void>();
  readonly #ended: Promise<void>;
  #phase: "testing" | "loading" | "ready" = "testing";
  #exports: readonly string[] = [];
  #meta: unknown;
  #last = 0;
  #noise: Meter;
  #stderr = "";
  #dead: PmlError | undefined;
  /** What the system holds it with: `landlock 7`, `bubblewrap 0.8.0`, or why nothing. */
  confined = "";
  #watch: ReturnType<typeof setTimeout> | undefined;

  private constructor(options: SandboxOptions, child: Child) {
    this.#options = options;
    this.#child = child;
    this.#logs = new LogTap(options.onLog);
    this.#noise = new Meter(options.limits);
    this.#booted.promise.catch(() => {}); // told by start(), which may have given up before
    this.#ended = this.#follow();
    this.#rearm();
  }

  /**
   * Starts a child, lets it prove that it is closed, and loads the module. `flags` changes the
   * child's flags, so that tests can see the proof fail.
   */
  static async start(
    options: SandboxOptions,
    flags?: (given: readonly string[]) => readonly string[],
  ): Promise<Sandbox> {
    assertDenoFloor();
    options.signal?.throwIfAborted();
    const sandbox = new Sandbox(options, startChild(options, flags));
    try {
      await sandbox.#boot();
      return sandbox;
    } catch (error) {
      await sandbox[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The names of the functions that the module exports. */
  exports(): readonly string[] {
    return this.#exports;
  }

  /** What the module says of itself in `__meta__`, as plain JSON; undefined if nothing. */
  meta(): unknown {
    return this.#meta;
  }

  /** The process id of the child, which is its group's too. */
  get pid(): number {
    return this.#child.running.pid;
  }

  /** Whether it takes calls; one that died never does again. */
  get alive(): boolean {
    return !this.#dead;
  }

  /** How many calls have not stopped yet. */
  get pending(): number {
    return this.#calls.size;
  }

  /** The resident memory of the child in bytes; 0 where the system does not tell. */
  rss(): number {
    return this.#child.rss();
  }

  /** Calls a function of the module and gives what it returned, as plain JSON. */
  call(request: SandboxCall): Promise<Json> {
    const { signal, fn } = request;
    if (signal.aborted) return Promise.reject(reasonOf(signal));
    if (this.#dead) return Promise.reject(this.#dead);
    const id = ++this.#last;
    const answer = Promise.withResolvers<Json>();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const onAbort = () => {
      answer.reject(reasonOf(signal));
      timer = this.#cancel(id, request.graceMs ?? GRACE_MS);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    this.#calls.set(id, {
      meter: new Meter(this.#options.limits),
      onProgress: request.onProgress,
      answer,
      release: () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
      },
    });
    if (this.#calls.size === 1) this.#rearm();
    this.#child.send({ kind: "call", id, fn, arguments: request.arguments });
    return answer.promise;
  }

  /** Kills the child with its group and removes what it kept. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#kill("closed", "it was closed");
    await this.#child[Symbol.asyncDispose]();
    await this.#ended;
  }

  async #boot(): Promise<void> {
    const { limits, signal = new AbortController().signal } = this.#options;
    const onAbort = () => this.#booted.reject(reasonOf(signal));
    const timer = setTimeout(() => this.#kill("start", "it did not load in time"), limits.startMs);
    signal.addEventListener("abort", onAbort);
    try {
      await this.#booted.promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    }
  }

  #cancel(id: number, graceMs: number): ReturnType<typeof setTimeout> | undefined {
    if (graceMs <= 0) return void this.#kill("cancelled", "a cancelled call had to stop at once");
    this.#child.send({ kind: "cancel", id });
    const late = () => this.#kill("cancelled", "a cancelled call did not stop");
    return setTimeout(late, graceMs);
  }

  async #follow(): Promise<void> {
    const { running, nonce } = this.#child;
    const { frameBytes, resultBytes } = this.#options.limits;
    const lineMax = Math.max(frameBytes, resultBytes) + (1 << 20);
    const [status] = await Promise.all([
      running.status,
      this.#read(running.stdout, new LineReader(nonce, lineMax)),
      this.#read(running.stderr, new LineReader("", lineMax), true),
    ]);
    clearTimeout(this.#watch);
    const isMemory = /out of memory|heap limit/i.test(this.#stderr);
    const how = status.signal ? `signal ${status.signal}` : `exit code ${status.code}`;
    const why = isMemory ? "it used too much memory" : `its process ended with ${how}`;
    this.#kill(isMemory ? "memory" : "exit", why, {
      exit_code: status.code,
      signal: status.signal,
    });
  }

  async #read(
    stream: ReadableStream<Uint8Array>,
    reader: LineReader,
    isStderr = false,
  ): Promise<void> {
    try {
      for await (const chunk of stream) {
        for (const line of reader.push(chunk)) this.#take(line, isStderr);
      }
      this.#take(reader.end(), isStderr);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.#kill("frames", error.message);
    }
  }

  #take(line: Line, isStderr: boolean): void {
    if (this.#dead && !isStderr) return;
    if (line.kind === "frame") {
      const frame = frameOf(line.bytes);
      return frame ? this.#frame(frame) : this.#charge(this.#noise, line.bytes.length);
    }
    if (line.size === 0) return;
    if (isStderr) this.#stderr = `${this.#stderr}${line.text}\n`.slice(-STDERR_MAX);
    this.#logs.say(isStderr ? "warn" : "info", line.text);
    this.#charge(this.#noise, line.size);
  }

  #frame(frame: Frame): void {
    switch (frame.type) {
      case "result":
      case "failed":
        return this.#settle(frame);
      case "progress":
      case "log":
        return this.#report(frame);
      case "crashed":
        return this.#kill("crashed", textOf(frame));
      default:
        if (this.#phase !== "ready") return this.#step(frame);
        return this.#charge(this.#noise, frame.json.length);
    }
  }

  #settle(frame: Frame): void {
    const call = this.#calls.get(frame.id);
    // No call has this id: only a module can have sent it.
    if (call === undefined) return this.#charge(this.#noise, frame.json.length);
    const isOldest = this.#calls.keys().next().value === frame.id;
    call.release();
    this.#calls.delete(frame.id);
    if (isOldest) this.#noise = new Meter(this.#options.limits);
    try {
      if (frame.type === "failed") throw failureFrom(plainJson(frame.json, "the error"));
      const { resultBytes } = this.#options.limits;
      const size = frame.json.length;
      if (size > resultBytes) {
        const message = `Cannot return the result: it has ${size} bytes, more than ${resultBytes}`;
        throw failure("RESULT_TOO_LARGE", message, { detail: { size, max: resultBytes } });
      }
      call.answer.resolve(plainJson(frame.json, `the result of ${quoted(this.#options.name)}`));
    } catch (error) {
      call.answer.reject(error);
    }
  }

  #report(frame: Frame): void {
    const call = this.#calls.get(frame.id);
    this.#charge(call?.meter ?? this.#noise, frame.json.length);
    if (this.#dead) return;
    const said = valueOf(frame);
    if (!isObject(said)) return;
    if (frame.type === "log") this.#logs.say(levelOf(said.level), String(said.text));
    else if (typeof said.progress === "number") call?.onProgress?.(progressOf(said));
  }

  #charge(meter: Meter, bytes: number): void {
    const excess = meter.add(bytes);
    if (excess !== undefined) this.#kill("frames", excess);
  }

  /** Goes on with the start: the proof first, then the module. */
  #step(frame: Frame): void {
    const value = valueOf(frame);
    if (frame.type === "confined") return this.#confine(heldBy(this.#options, String(value)));
    if (frame.type === "refused") return this.#refuse(String(value));
    if (frame.type === "tested" && this.#phase === "testing") {
      if (!Array.isArray(value) || value.length > 0) {
        return this.#refuse(`its module thread is open: ${String(value)}`);
      }
      this.#phase = "loading";
      return this.#child.send({ kind: "load" });
    }
    if (this.#phase !== "loading") return;
    if (frame.type === "unloaded") return this.#booted.reject(this.#unloaded(frame));
    if (frame.type === "ready") this.#ready(frame);
  }

  #confine(held: string | PmlError): void {
    if (typeof held === "string") this.confined = held;
    else this.#refuse(held.message, held);
  }

  #ready(frame: Frame): void {
    try {
      const said = plainJson(frame.json, `"__meta__" of ${quoted(this.#options.name)}`);
      const { exports, meta } = isObject(said) ? said : {};
      this.#exports = Array.isArray(exports) ? exports.map(String) : [];
      this.#meta = meta;
      this.#phase = "ready";
      this.#booted.resolve();
    } catch (error) {
      this.#booted.reject(error);
    }
  }

  #unloaded(frame: Frame): PmlError {
    const found = failureFrom(valueOf(frame) as Json); // parsed JSON
    if (found instanceof PmlError) return found;
    return new PmlError(
      "SANDBOX_CRASHED",
      `Cannot load the module ${quoted(this.#options.name)}: ${found.name}: ${found.message}`,
      { hint: "Mend the module, then call again", detail: { reason: "load" } },
    );
  }

  #refuse(why: string, error = unusable(why)): void {
    this.#booted.reject(error);
    this.#kill("refused", why);
  }

  #kill(reason: string, why: string, detail: Record<string, unknown> = {}): void {
    if (this.#dead) return;
    const facts = { ...detail, stderr: this.#stderr.trim() };
    if (this.#phase === "testing" && reason !== "closed") {
      this.#booted.reject(unusable(`the sandbox did not start: ${why}`, facts));
    }
    this.#dead = new PmlError(
      "SANDBOX_CRASHED",
      `Cannot finish the call: the sandbox of ${quoted(this.#options.name)} was stopped: ${why}`,
      { hint: "Call again: the module is started anew", detail: { ...facts, reason } },
    );
    this.#child.kill();
    clearTimeout(this.#watch);
    this.#booted.reject(this.#dead);
    for (const call of this.#calls.values()) {
      call.release();
      call.answer.reject(this.#dead);
    }
    this.#calls.clear();
  }

  #rearm(): void {
    clearTimeout(this.#watch);
    if (this.#dead) return;
    const look = () => {
      const { rssMb } = this.#options.limits;
      if (this.rss() <= rssMb * 1024 * 1024) this.#rearm();
      else this.#kill("memory", `it used more than ${rssMb} MB of memory`);
    };
    const busy = this.#calls.size > 0 || this.#phase !== "ready";
    this.#watch = setTimeout(look, busy ? WATCH_BUSY_MS : WATCH_IDLE_MS);
    Deno.unrefTimer(Number(this.#watch));
  }
}

function unusable(why: string, detail?: Record<string, unknown>): PmlError {
  return new PmlError("SANDBOX_DENIED", `Cannot run modules: ${why}`, {
    hint: "Check that this Deno is 2.9.6 or newer and unchanged",
    detail,
  });
}

function reasonOf(signal: AbortSignal): PmlError {
  if (signal.reason instanceof PmlError) return signal.reason;
  return new PmlError("CANCELLED", "Cannot finish the call: it was cancelled", {
    cause: signal.reason,
  });
}

function progressOf(said: Record<string, unknown>): Progress {
  const { progress, total, message } = said;
  return {
    progress: Number(progress),
    ...defined({
      total: typeof total === "number" ? total : undefined,
      message: typeof message === "string" ? message.slice(0, 4_096) : undefined,
    }),
  };
}

function valueOf(frame: Frame): unknown {
  try {
    return plainJson(frame.json, "a message");
  } catch {
    return undefined; // a message that a module forged badly is no message
  }
}

function textOf(frame: Frame): string {
  return String(valueOf(frame) ?? "it broke").slice(0, 2_000);
}

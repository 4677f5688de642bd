/**
 * Runs one module in one child process that can do no more than its grants say.
 *
 * @module
 */

import type { Progress } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { isObject, type Json, type JsonObject, quoted } from "../core/json.ts";
import { after, onAbort } from "../io/waiting.ts";
import { type Child, type ChildStart, startChild } from "./_child.ts";
import { failure, failureFrom, ModuleFailure } from "./_failure.ts";
import { assertDenoFloor } from "./_floor.ts";
import { levelOf, type LogEntry, type LogLevel, LogTap, Meter } from "./_meter.ts";
import {
  type ChildOptions,
  type Groups,
  type ModuleOptions,
  SANDBOX_LIMITS,
  type SandboxLimits,
  type SandboxOptions,
} from "./_options.ts";
import { osChecks } from "./_os_checks.ts";
import { heldBy, type Layer, type OsLayerChoice, OsLayers } from "./_os_layer.ts";
import { plainJson } from "./_plain.ts";
import { progressOf, reasonOf, textOf, unusable, valueOf } from "./_said.ts";
import { eachPiece, type Frame, frameOf, type Line, LineReader } from "./_wire.ts";
import type { Protection } from "./boot/message.ts";

export { assertDenoFloor, ModuleFailure, osChecks, OsLayers, SANDBOX_LIMITS };
export type { ChildOptions, ChildStart, Groups, LogEntry, LogLevel, ModuleOptions };
export type { Layer, OsLayerChoice, Protection, SandboxLimits, SandboxOptions };

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
  readonly #limits: SandboxLimits;
  readonly #layer: Layer | undefined;
  readonly #calls = new Map<number, Pending>();
  /** Resolves when its process is over. */
  readonly ended: Promise<void>;
  #next = Promise.withResolvers<void>();
  #phase: "testing" | "blank" | "loading" | "ready" = "testing";
  #name = "a module";
  #logs = new LogTap(() => {});
  #exports: readonly string[] = [];
  #meta: unknown;
  #last = 0;
  #noise: Meter;
  #stderr = "";
  #dead: PmlError | undefined;
  /** What the system holds it with: `landlock 7`, `bubblewrap 0.8.0`, or why nothing. */
  confined = "";
  #watch: ReturnType<typeof setTimeout> | undefined;

  private constructor(limits: SandboxLimits, child: Child, layer: Layer | undefined) {
    this.#limits = limits;
    this.#child = child;
    this.#layer = layer;
    this.#noise = new Meter(limits);
    this.ended = this.#follow();
    this.#rearm();
  }

  /** Starts a child that proves that it is closed, and that has no module yet. */
  static async open(
    options: ChildOptions,
    { signal, ...start }: ChildStart & { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<Sandbox> {
    assertDenoFloor();
    signal?.throwIfAborted();
    const sandbox = new Sandbox(options.limits, await startChild(options, start), start.layer);
    return await sandbox.#come("blank", signal);
  }

  /** Starts a child and loads its module. */
  static async start({ groups, layer, ...options }: SandboxOptions): Promise<Sandbox> {
    const { signal, name, code, onLog, ...child } = options;
    const sandbox = await Sandbox.open(child, { groups, layer, signal });
    return await sandbox.load({ name, code, onLog, ...(signal && { signal }) });
  }

  /** Loads the module; a child has one in its life. A child that cannot load it is ended. */
  load({ name, code, onLog, signal }: ModuleOptions): Promise<Sandbox> {
    this.#name = name;
    this.#logs = new LogTap(onLog);
    this.#phase = "loading";
    this.#next = Promise.withResolvers<void>();
    this.#child.send({ kind: "load", code: new TextDecoder("utf-8").decode(code) });
    return this.#come("ready", signal);
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
    return this.#child.pid;
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
    const aborting = onAbort(signal, () => {
      answer.reject(reasonOf(signal));
      timer = this.#cancel(id, request.graceMs ?? GRACE_MS);
    });
    this.#calls.set(id, {
      meter: new Meter(this.#limits),
      onProgress: request.onProgress,
      answer,
      release: () => {
        clearTimeout(timer);
        aborting[Symbol.dispose]();
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
    await this.ended;
  }

  /** Waits for the next phase, and ends the child where it does not come. */
  async #come(phase: "blank" | "ready", signal: AbortSignal | undefined): Promise<Sandbox> {
    const { promise, reject } = this.#next;
    const late = () => this.#kill("start", "it did not load in time");
    using _late = after(this.#limits.startMs, late);
    using _ = signal && onAbort(signal, () => reject(reasonOf(signal)));
    if (this.#dead) reject(this.#dead);
    try {
      await promise;
      this.#phase = phase;
      this.#rearm();
      return this;
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  #cancel(id: number, graceMs: number): ReturnType<typeof setTimeout> {
    this.#child.send({ kind: "cancel", id });
    return setTimeout(() => this.#kill("cancelled", "a cancelled call did not stop"), graceMs);
  }

  async #follow(): Promise<void> {
    const { running, nonce } = this.#child;
    const { frameBytes, resultBytes } = this.#limits;
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
      await eachPiece(stream, (piece) => {
        for (const line of reader.push(piece)) this.#take(line, isStderr);
      });
      this.#take(reader.end(), isStderr);
    } catch (error) {
      // Whatever a module found that breaks its reader ends its child, and nothing else.
      this.#kill(
        "frames",
        error instanceof RangeError ? error.message : `reading it broke: ${error}`,
      );
    }
  }

  #take(line: Line, isStderr: boolean): void {
    const frame = line.kind === "frame" ? frameOf(line.bytes) : undefined;
    // What a dead child started in its last moment must end too; the rest is nobody's.
    if (this.#dead && !isStderr && frame?.type !== "group") return;
    if (frame) return this.#frame(frame);
    if (line.kind === "frame") return this.#charge(this.#noise, line.bytes.length);
    if (line.size === 0) return;
    if (isStderr) this.#stderr = `${this.#stderr}${line.text}\n`.slice(-STDERR_MAX);
    this.#logs.say(isStderr ? "warn" : "info", line.text);
    this.#charge(this.#noise, line.size);
  }

  #frame(frame: Frame): void {
    switch (frame.type) {
      case "result":
      case "text":
      case "failed":
        return this.#settle(frame);
      case "progress":
      case "log":
        return this.#report(frame);
      case "crashed":
        return this.#kill("crashed", textOf(frame));
      case "group":
      case "kill":
      case "gone":
        return this.#child.group(frame.type, Number(valueOf(frame)));
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
    if (isOldest) this.#noise = new Meter(this.#limits);
    try {
      if (frame.type === "failed") throw failureFrom(plainJson(frame.json, "the error"));
      const { resultBytes } = this.#limits;
      const size = frame.json.length;
      if (size > resultBytes) {
        const message = `Cannot return the result: it has ${size} bytes, more than ${resultBytes}`;
        throw failure("RESULT_TOO_LARGE", message, { detail: { size, max: resultBytes } });
      }
      const what = `the result of ${quoted(this.#name)}`;
      call.answer.resolve(
        frame.type === "text"
          ? new TextDecoder("utf-8", { ignoreBOM: true }).decode(frame.json)
          : plainJson(frame.json, what),
      );
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
    if (frame.type === "confined") return this.#confine(heldBy(this.#layer, String(value)));
    if (frame.type === "refused") return this.#refuse(String(value));
    if (frame.type === "tested" && this.#phase === "testing") {
      if (Array.isArray(value) && value.length === 0) return this.#next.resolve();
      return this.#refuse(`its module thread is open: ${String(value)}`);
    }
    if (this.#phase !== "loading") return;
    if (frame.type === "unloaded") return this.#next.reject(this.#unloaded(frame));
    if (frame.type === "ready") this.#ready(frame);
  }

  #confine(held: string | PmlError): void {
    if (typeof held === "string") this.confined = held;
    else this.#refuse(held.message, held);
  }

  #ready(frame: Frame): void {
    try {
      const said = plainJson(frame.json, `"__meta__" of ${quoted(this.#name)}`);
      const { exports, meta } = isObject(said) ? said : {};
      this.#exports = Array.isArray(exports) ? exports.map(String) : [];
      this.#meta = meta;
      this.#next.resolve();
    } catch (error) {
      this.#next.reject(error);
    }
  }

  #unloaded(frame: Frame): PmlError {
    const found = failureFrom(valueOf(frame) as Json); // parsed JSON
    if (found instanceof PmlError) return found;
    return new PmlError(
      "SANDBOX_CRASHED",
      `Cannot load the module ${quoted(this.#name)}: ${found.name}: ${found.message}`,
      { hint: "Mend the module, then call again", detail: { reason: "load" } },
    );
  }

  #refuse(why: string, error = unusable(why)): void {
    this.#next.reject(error);
    this.#kill("refused", why);
  }

  #kill(reason: string, why: string, detail: Record<string, unknown> = {}): void {
    if (this.#dead) return;
    const facts = { ...detail, stderr: this.#stderr.trim() };
    if (this.#phase === "testing" && reason !== "closed") {
      this.#next.reject(unusable(`the sandbox did not start: ${why}`, facts));
    }
    this.#dead = new PmlError(
      "SANDBOX_CRASHED",
      `Cannot finish the call: the sandbox of ${quoted(this.#name)} was stopped: ${why}`,
      { hint: "Call again: the module is started anew", detail: { ...facts, reason } },
    );
    this.#child.kill();
    clearTimeout(this.#watch);
    this.#next.reject(this.#dead);
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
      const { rssMb } = this.#limits;
      if (this.rss() <= rssMb * 1024 * 1024) this.#rearm();
      else this.#kill("memory", `it used more than ${rssMb} MB of memory`);
    };
    const busy = this.#calls.size > 0 || this.#phase === "testing" || this.#phase === "loading";
    this.#watch = setTimeout(look, busy ? WATCH_BUSY_MS : WATCH_IDLE_MS);
    Deno.unrefTimer(Number(this.#watch));
  }
}

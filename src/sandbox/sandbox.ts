/**
 * Runs one module in one child process, which can do only what its grants allow.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { isObject, type Json, quoted } from "../core/json.ts";
import { putErrorFirst, withoutColours } from "../core/program_output.ts";
import { callAfter } from "../io/waiting.ts";
import { ChildCalls, type SandboxCall } from "./_calls.ts";
import { type Child, type ChildStart, startChild } from "./_child.ts";
import { ModuleFailure } from "./_failure.ts";
import { levelOf, type LogEntry, type LogLevel, LogTap } from "./_meter.ts";
import type { ChildOptions, Groups, ModuleOptions, SandboxLimits } from "./_options.ts";
import { osChecks } from "./_os_checks.ts";
import { type OsLayerChoice, OsLayers } from "./_os_layer.ts";
import type { Layer } from "./layer.ts";
import { ChildRequests, type OnRequest } from "./_requests.ts";
import { frameText, reasonOf, sandboxUnusable, valueOf } from "./_child_frames.ts";
import { Startup } from "./_startup.ts";
import { type ChildLine, ChildLineReader, eachPiece, type Frame, parseFrame } from "./_wire.ts";
import type { HostReply, Protection } from "./boot/message.ts";

export { assertDenoVersion, ModuleFailure, osChecks, OsLayers };
export type { ChildOptions, ChildStart, Groups, LogEntry, LogLevel, ModuleOptions };
export type { Layer, OnRequest, OsLayerChoice, Protection, SandboxCall, SandboxLimits };

/** How long a cancelled call may take to stop before its child is killed, by default. */
const GRACE_MS = 250;
/** The number of characters at the end of stderr that are kept for errors. */
const STDERR_MAX = 4_096;
/** The intervals of the memory checks of a busy child and of an idle child. */
const WATCH_BUSY_MS = 50;
const WATCH_IDLE_MS = 1_000;

/** A module in its child process. */
export class Sandbox implements AsyncDisposable {
  readonly #child: Child;
  readonly #limits: SandboxLimits;
  readonly #calls: ChildCalls;
  readonly #startup: Startup;
  /** Resolves when the process of the child has ended. */
  readonly ended: Promise<void>;
  #logs = new LogTap(() => {});
  #stderr = "";
  #deathError: PmlError | undefined;
  #memoryTimer: ReturnType<typeof setTimeout> | undefined;
  /** Whether the next memory check uses the short interval of a busy child. */
  #isWatchedOften = false;

  private constructor(limits: SandboxLimits, child: Child, layer: Layer | undefined) {
    this.#limits = limits;
    this.#child = child;
    const answer = (id: number, reply: HostReply) => child.send({ kind: "answered", id, reply });
    this.#calls = new ChildCalls(
      limits,
      new ChildRequests(answer),
      (id, { graceMs = GRACE_MS }) => {
        child.send({ kind: "cancel", id });
        return setTimeout(() => this.#kill("cancelled", "a cancelled call did not stop"), graceMs);
      },
    );
    this.#startup = new Startup(layer);
    this.ended = this.#readOutputs();
    this.#scheduleMemoryCheck();
  }

  /**
   * Starts a child without a module. Throws if a forbidden access works in the child's self-test.
   */
  static async open(
    options: ChildOptions,
    { signal, ...start }: ChildStart & { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<Sandbox> {
    assertDenoVersion();
    signal?.throwIfAborted();
    const sandbox = new Sandbox(options.limits, await startChild(options, start), start.layer);
    return await sandbox.#waitForPhase("blank", signal);
  }

  /** Loads the module. A child loads only one module. If loading fails, the child is ended. */
  load({ code, results, onLog, signal, ...names }: ModuleOptions): Promise<Sandbox> {
    this.#logs = new LogTap(onLog);
    this.#startup.load(names);
    this.#child.send({ kind: "load", code: new TextDecoder("utf-8").decode(code), results });
    return this.#waitForPhase("ready", signal);
  }

  /** Returns the names of the functions that the module exports. */
  exports(): readonly string[] {
    return this.#startup.exports;
  }

  /** Returns the module's `__meta__` as plain JSON; undefined if it has none. */
  meta(): unknown {
    return this.#startup.meta;
  }

  /** The layer that confines the child (`landlock 7`, `bubblewrap 0.8.0`), or why there is none. */
  get confined(): string {
    return this.#startup.confined;
  }

  /** The process id of the child, which is also the id of its group. */
  get pid(): number {
    return this.#child.pid;
  }

  /** Whether the child accepts calls. A dead child never accepts calls again. */
  get isAlive(): boolean {
    return !this.#deathError;
  }

  /** The number of calls that have not stopped yet. */
  get pending(): number {
    return this.#calls.size;
  }

  /** Returns the resident memory of the child in bytes; 0 if the system does not report it. */
  rss(): number {
    return this.#child.rss();
  }

  /** Calls a function of the module and returns its result as plain JSON. */
  call(request: SandboxCall): Promise<Json> {
    const { signal, fn } = request;
    if (signal.aborted) return Promise.reject(reasonOf(signal));
    if (this.#deathError) return Promise.reject(this.#deathError);
    const { id, answer } = this.#calls.add(request);
    if (!this.#isWatchedOften) this.#scheduleMemoryCheck();
    this.#child.send({ kind: "call", id, fn, arguments: request.arguments });
    return answer;
  }

  /** Kills the child and its group, and removes its private folder. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#kill("closed", "it was closed");
    await this.#child[Symbol.asyncDispose]();
    await this.ended;
  }

  /** Waits for a phase of the start, and ends the child if it fails. */
  async #waitForPhase(phase: "blank" | "ready", signal: AbortSignal | undefined): Promise<Sandbox> {
    const late = () => this.#kill("start", "it did not load in time");
    using _ = callAfter(this.#limits.startMs, late);
    if (this.#deathError) this.#startup.fail(this.#deathError);
    try {
      await this.#startup.waitFor(phase, signal);
      this.#scheduleMemoryCheck();
      return this;
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #readOutputs(): Promise<void> {
    const { running, nonce } = this.#child;
    const { frameBytes, resultBytes } = this.#limits;
    const lineMax = Math.max(frameBytes, resultBytes) + (1 << 20);
    const [status] = await Promise.all([
      running.status,
      this.#read(running.stdout, new ChildLineReader(nonce, lineMax)),
      this.#read(running.stderr, new ChildLineReader("", lineMax), true),
    ]);
    clearTimeout(this.#memoryTimer);
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
    reader: ChildLineReader,
    isStderr = false,
  ): Promise<void> {
    try {
      await eachPiece(stream, (piece) => {
        for (const line of reader.push(piece)) this.#receiveLine(line, isStderr);
      });
      this.#receiveLine(reader.end(), isStderr);
    } catch (error) {
      // An error of the reader ends only this child.
      this.#kill(
        "frames",
        error instanceof RangeError ? error.message : `reading its output failed: ${error}`,
      );
    }
  }

  #receiveLine(line: ChildLine, isStderr: boolean): void {
    const frame = line.kind === "frame" ? parseFrame(line.bytes) : undefined;
    // Groups that a dead child started just before its end must be killed, too. All other frames of
    // a dead child are ignored.
    if (this.#deathError && !isStderr && frame?.type !== "group") return;
    if (frame) return this.#receiveFrame(frame);
    if (line.kind === "frame") return this.#charge(line.bytes.length);
    if (line.size === 0) return;
    const text = withoutColours(line.text);
    if (isStderr) this.#stderr = `${this.#stderr}${text}\n`.slice(-STDERR_MAX);
    this.#logs.write(isStderr ? "warn" : "info", text);
    this.#charge(line.size);
  }

  #receiveFrame(frame: Frame): void {
    switch (frame.type) {
      case "result":
      case "text":
      case "failed":
        // A result for an unknown call can only be forged by the module.
        if (this.#calls.settle(frame, this.#startup.name)) return;
        return this.#charge(frame.json.length);
      case "progress":
      case "log":
        return this.#report(frame);
      case "want":
      case "drop":
        return this.#killIf("frames", this.#calls.takeRequest(frame));
      case "crashed":
        return this.#kill("crashed", frameText(frame));
      case "group":
      case "kill":
      case "gone":
        return this.#child.handleGroup(frame.type, Number(valueOf(frame)));
      default:
        if (this.#startup.phase === "ready") return this.#charge(frame.json.length);
        // The frames of the self-test come first, then the frames of the module.
        return this.#killIf("refused", this.#startup.handleFrame(frame));
    }
  }

  #report(frame: Frame): void {
    const { type, id } = frame;
    this.#charge(frame.json.length, id);
    if (this.#deathError) return;
    const value = valueOf(frame);
    if (!isObject(value)) return;
    if (type === "log") this.#logs.write(levelOf(value.level), String(value.text));
    else this.#calls.report(id, value);
  }

  #charge(bytes: number, call?: number): void {
    this.#killIf("frames", this.#calls.charge(bytes, call));
  }

  #killIf(reason: string, why: string | undefined): void {
    if (why !== undefined) this.#kill(reason, why);
  }

  #kill(reason: string, why: string, detail: Record<string, unknown> = {}): void {
    if (this.#deathError) return;
    const facts = { ...detail, stderr: putErrorFirst(this.#stderr, STDERR_MAX) };
    if (this.#startup.phase === "testing" && reason !== "closed") {
      this.#startup.fail(sandboxUnusable(`the sandbox did not start: ${why}`, facts));
    }
    this.#deathError = new PmlError(
      "SANDBOX_CRASHED",
      `Cannot finish the call: the sandbox of ${quoted(this.#startup.name)} was stopped: ${why}`,
      { hint: "Call again: PML restarts the module", detail: { ...facts, reason } },
    );
    this.#child.kill();
    clearTimeout(this.#memoryTimer);
    this.#startup.fail(this.#deathError);
    this.#calls.end(this.#deathError);
  }

  /** Schedules the next memory check, sooner for a busy child. */
  #scheduleMemoryCheck(): void {
    clearTimeout(this.#memoryTimer);
    if (this.#deathError) return;
    const checkMemory = () => {
      const { rssMb } = this.#limits;
      if (this.rss() <= rssMb * 1024 * 1024) this.#scheduleMemoryCheck();
      else this.#kill("memory", `it used more than ${rssMb} MB of memory`);
    };
    const isBusy = this.#calls.size > 0 || ["testing", "loading"].includes(this.#startup.phase);
    this.#isWatchedOften = isBusy;
    this.#memoryTimer = setTimeout(checkMemory, isBusy ? WATCH_BUSY_MS : WATCH_IDLE_MS);
    Deno.unrefTimer(Number(this.#memoryTimer));
  }
}

const DENO_MIN = "2.9.6";

/** Throws `SANDBOX_DENIED` if this version of Deno has known permission bypasses. */
function assertDenoVersion(version: string = Deno.version.deno): void {
  const minimum = DENO_MIN.split(".").map(Number);
  const parts = version.split(/[.-]/).map(Number);
  const differs = minimum.findIndex((part, at) => part !== parts[at]);
  if (differs < 0 || (parts[differs] ?? 0) > (minimum[differs] ?? 0)) return;
  const message = `Cannot run modules: Deno ${version} is older than ${DENO_MIN}`;
  throw new PmlError("SANDBOX_DENIED", message, { hint: `Install Deno ${DENO_MIN} or newer` });
}

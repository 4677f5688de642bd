/**
 * Runs one module in one child process, which can do no more than its grants allow.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { isObject, type Json, quoted } from "../core/json.ts";
import { errorFirst, withoutColours } from "../core/program_output.ts";
import { after } from "../io/waiting.ts";
import { ChildCalls, type SandboxCall } from "./_calls.ts";
import { type Child, type ChildStart, startChild } from "./_child.ts";
import { ModuleFailure } from "./_failure.ts";
import { levelOf, type LogEntry, type LogLevel, LogTap } from "./_meter.ts";
import type {
  ChildOptions,
  Groups,
  ModuleOptions,
  SandboxLimits,
  SandboxOptions,
} from "./_options.ts";
import { osChecks } from "./_os_checks.ts";
import { type OsLayerChoice, OsLayers } from "./_os_layer.ts";
import type { Layer } from "./layer.ts";
import { ChildRequests, type OnRequest } from "./_requests.ts";
import { frameText, reasonOf, sandboxUnusable, valueOf } from "./_said.ts";
import { Startup } from "./_startup.ts";
import { type ChildLine, ChildLineReader, eachPiece, type Frame, parseFrame } from "./_wire.ts";
import type { HostReply, Protection } from "./boot/message.ts";

export { assertDenoFloor, ModuleFailure, osChecks, OsLayers };
export type { ChildOptions, ChildStart, Groups, LogEntry, LogLevel, ModuleOptions };
export type {
  Layer,
  OnRequest,
  OsLayerChoice,
  Protection,
  SandboxCall,
  SandboxLimits,
  SandboxOptions,
};

const GRACE_MS = 250;
const STDERR_MAX = 4_096;
const WATCH_BUSY_MS = 50;
const WATCH_IDLE_MS = 1_000;

/** A module in its child process. */
export class Sandbox implements AsyncDisposable {
  readonly #child: Child;
  readonly #limits: SandboxLimits;
  readonly #calls: ChildCalls;
  readonly #startup: Startup;
  /** Resolves when its process has ended. */
  readonly ended: Promise<void>;
  #logs = new LogTap(() => {});
  #stderr = "";
  #dead: PmlError | undefined;
  #watch: ReturnType<typeof setTimeout> | undefined;
  /** Whether the next memory check uses the short interval of a busy child. */
  #looksSoon = false;

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
    this.ended = this.#follow();
    this.#rearm();
  }

  /** Starts a child without a module. Throws if the child's self-test finds something open. */
  static async open(
    options: ChildOptions,
    { signal, ...start }: ChildStart & { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<Sandbox> {
    assertDenoFloor();
    signal?.throwIfAborted();
    const sandbox = new Sandbox(options.limits, await startChild(options, start), start.layer);
    return await sandbox.#reached("blank", signal);
  }

  /** Starts a child and loads its module. */
  static async start({ groups, layer, ...options }: SandboxOptions): Promise<Sandbox> {
    const sandbox = await Sandbox.open(options, { groups, layer, signal: options.signal });
    return await sandbox.load(options);
  }

  /** Loads the module. A child loads only one in its life. If loading fails, the child is ended. */
  load({ code, results, onLog, signal, ...names }: ModuleOptions): Promise<Sandbox> {
    this.#logs = new LogTap(onLog);
    this.#startup.load(names);
    this.#child.send({ kind: "load", code: new TextDecoder("utf-8").decode(code), results });
    return this.#reached("ready", signal);
  }

  /** Returns the names of the functions that the module exports. */
  exports(): readonly string[] {
    return this.#startup.exports;
  }

  /** Returns the module's `__meta__` as plain JSON; undefined if it has none. */
  meta(): unknown {
    return this.#startup.meta;
  }

  /** The layer that confines the child (`landlock 7`, `bubblewrap 0.8.0`), or why none does. */
  get confined(): string {
    return this.#startup.confined;
  }

  /** The process id of the child, which is also that of its group. */
  get pid(): number {
    return this.#child.pid;
  }

  /** Whether it accepts calls. A dead child never does again. */
  get alive(): boolean {
    return !this.#dead;
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
    if (this.#dead) return Promise.reject(this.#dead);
    const { id, answer } = this.#calls.add(request);
    if (!this.#looksSoon) this.#rearm();
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
  async #reached(phase: "blank" | "ready", signal: AbortSignal | undefined): Promise<Sandbox> {
    const late = () => this.#kill("start", "it did not load in time");
    using _ = after(this.#limits.startMs, late);
    if (this.#dead) this.#startup.fail(this.#dead);
    try {
      await this.#startup.reached(phase, signal);
      this.#rearm();
      return this;
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #follow(): Promise<void> {
    const { running, nonce } = this.#child;
    const { frameBytes, resultBytes } = this.#limits;
    const lineMax = Math.max(frameBytes, resultBytes) + (1 << 20);
    const [status] = await Promise.all([
      running.status,
      this.#read(running.stdout, new ChildLineReader(nonce, lineMax)),
      this.#read(running.stderr, new ChildLineReader("", lineMax), true),
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
    reader: ChildLineReader,
    isStderr = false,
  ): Promise<void> {
    try {
      await eachPiece(stream, (piece) => {
        for (const line of reader.push(piece)) this.#take(line, isStderr);
      });
      this.#take(reader.end(), isStderr);
    } catch (error) {
      // An error of the reader ends only this child.
      this.#kill(
        "frames",
        error instanceof RangeError ? error.message : `reading its output failed: ${error}`,
      );
    }
  }

  #take(line: ChildLine, isStderr: boolean): void {
    const frame = line.kind === "frame" ? parseFrame(line.bytes) : undefined;
    // Groups that a dead child started just before its end must be killed, too. Its other frames
    // are ignored.
    if (this.#dead && !isStderr && frame?.type !== "group") return;
    if (frame) return this.#frame(frame);
    if (line.kind === "frame") return this.#charge(line.bytes.length);
    if (line.size === 0) return;
    const text = withoutColours(line.text);
    if (isStderr) this.#stderr = `${this.#stderr}${text}\n`.slice(-STDERR_MAX);
    this.#logs.say(isStderr ? "warn" : "info", text);
    this.#charge(line.size);
  }

  #frame(frame: Frame): void {
    switch (frame.type) {
      case "result":
      case "text":
      case "failed":
        // A result for an unknown call can only come from a module.
        if (this.#calls.settle(frame, this.#startup.name)) return;
        return this.#charge(frame.json.length);
      case "progress":
      case "log":
        return this.#report(frame);
      case "want":
      case "drop":
        return this.#end("frames", this.#calls.want(frame));
      case "crashed":
        return this.#kill("crashed", frameText(frame));
      case "group":
      case "kill":
      case "gone":
        return this.#child.group(frame.type, Number(valueOf(frame)));
      default:
        if (this.#startup.phase === "ready") return this.#charge(frame.json.length);
        // First come the frames of the self-test, then those of the module.
        return this.#end("refused", this.#startup.take(frame));
    }
  }

  #report(frame: Frame): void {
    const { type, id } = frame;
    this.#charge(frame.json.length, id);
    if (this.#dead) return;
    const value = valueOf(frame);
    if (!isObject(value)) return;
    if (type === "log") this.#logs.say(levelOf(value.level), String(value.text));
    else this.#calls.report(id, value);
  }

  #charge(bytes: number, call?: number): void {
    this.#end("frames", this.#calls.charge(bytes, call));
  }

  #end(reason: string, why: string | undefined): void {
    if (why !== undefined) this.#kill(reason, why);
  }

  #kill(reason: string, why: string, detail: Record<string, unknown> = {}): void {
    if (this.#dead) return;
    const facts = { ...detail, stderr: errorFirst(this.#stderr, STDERR_MAX) };
    if (this.#startup.phase === "testing" && reason !== "closed") {
      this.#startup.fail(sandboxUnusable(`the sandbox did not start: ${why}`, facts));
    }
    this.#dead = new PmlError(
      "SANDBOX_CRASHED",
      `Cannot finish the call: the sandbox of ${quoted(this.#startup.name)} was stopped: ${why}`,
      { hint: "Call again: PML restarts the module", detail: { ...facts, reason } },
    );
    this.#child.kill();
    clearTimeout(this.#watch);
    this.#startup.fail(this.#dead);
    this.#calls.end(this.#dead);
  }

  /** Schedules the next memory check, sooner for a busy child. */
  #rearm(): void {
    clearTimeout(this.#watch);
    if (this.#dead) return;
    const look = () => {
      const { rssMb } = this.#limits;
      if (this.rss() <= rssMb * 1024 * 1024) this.#rearm();
      else this.#kill("memory", `it used more than ${rssMb} MB of memory`);
    };
    const isBusy = this.#calls.size > 0 || ["testing", "loading"].includes(this.#startup.phase);
    this.#looksSoon = isBusy;
    this.#watch = setTimeout(look, isBusy ? WATCH_BUSY_MS : WATCH_IDLE_MS);
    Deno.unrefTimer(Number(this.#watch));
  }
}

const FLOOR = "2.9.6";

/** Throws `SANDBOX_DENIED` if this version of Deno has known permission bypasses. */
function assertDenoFloor(version: string = Deno.version.deno): void {
  const floor = FLOOR.split(".").map(Number);
  const parts = version.split(/[.-]/).map(Number);
  const differs = floor.findIndex((part, at) => part !== parts[at]);
  if (differs < 0 || (parts[differs] ?? 0) > (floor[differs] ?? 0)) return;
  const message = `Cannot run modules: Deno ${version} is older than ${FLOOR}`;
  throw new PmlError("SANDBOX_DENIED", message, { hint: `Install Deno ${FLOOR} or newer` });
}

/**
 * Starts and ends processes. Each has its own process group, and no environment except the one that
 * the caller passes. All processes of PML are started here.
 *
 * @module
 */

import { withoutColours } from "../core/program_output.ts";
import { namesInFolder } from "../io/place.ts";
import { onAbort } from "../io/waiting.ts";
import { canKeep, descriptionOf, keeperOf } from "./_keeper.ts";
import type { Groups } from "./_options.ts";
import type { PipedProcess, Start } from "./_pipe_threads.ts";
import type { StartedCommand } from "../core/batch_files.ts";
import type { KeptProgram } from "./boot/keeper.ts";
import type { Program } from "./program.ts";

const IS_WINDOWS = Deno.build.os === "windows";
const spawn: Start = (file, options) => new Deno.Command(file, options).spawn();
/** Only Windows loads this module. */
const windows = IS_WINDOWS
  ? new (await import("./_windows.ts")).WindowsProcesses(spawn)
  : undefined;

/** How long a keeper may take to end all processes below it. */
const KEEPER_MS = 1_000;

/** A running process. */
export type Process = PipedProcess;

/** Options of `runProgram()`. */
export interface ProgramOptions {
  readonly signal?: AbortSignal | undefined;
  /** Time limit in milliseconds. */
  readonly ms: number;
  /** Creates the error of a program that took longer; by default the platform's error. */
  readonly late?: (cause: unknown) => Error;
  /** The number of bytes that are kept from the start of each output. */
  readonly maxBytes: number;
  /** Records the process group, so that it ends with PML, also if PML is killed. */
  readonly groups?: Pick<Groups, "add" | "remove"> | undefined;
  /** The text on stdin; empty by default. */
  readonly input?: string | undefined;
  /** Called with each piece of stderr. */
  readonly onStderr?: (text: string) => void;
}

/** The status of a program that ended, and the start of its outputs; stderr has no colours. */
export interface ProgramResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Starts a program with a pipe for its input, and pipes for its outputs if `heard` is true. On
 * Windows it ends with PML unless `outlives` is true. Throws `UPSTREAM_DOWN` if `cmd.exe` would
 * change an argument of a batch file.
 */
export function startProcess(
  program: Program,
  { heard = true, outlives = false } = {},
): Process {
  const out = heard ? "piped" : "null";
  const command: StartedCommand & Pick<Program, "env"> = windows?.commandOf(program) ?? program;
  const { file, args, env, windowsRawArguments = false } = command;
  const isThreaded = windows !== undefined && heard && !outlives;
  const child = (isThreaded ? windows.threads.spawn : spawn)(file, {
    args: [...args],
    cwd: program.cwd,
    env,
    clearEnv: true,
    windowsRawArguments,
    stdin: "piped",
    stdout: out,
    stderr: out,
    // A separate group can be killed with all its processes. On Windows this would instead make
    // each program that it starts open a console window.
    detached: !IS_WINDOWS || outlives,
  });
  if (windows !== undefined && !outlives) {
    windows.add(child.pid);
    child.status.then(() => windows.ended(child.pid));
  }
  return child;
}

/** Runs a program on PML's own terminal, in PML's own environment. Returns its exit code. */
export async function runOnTerminal(
  { file, args, cwd }: Pick<Program, "file" | "args" | "cwd">,
): Promise<number> {
  return (await new Deno.Command(file, { args: [...args], cwd }).spawn().status).code;
}

/** A program with its process group and, if it has one, its keeper. */
export class StartedProgram {
  /** The program or its keeper, which has the same pipes and ends with the same status. */
  readonly running: Process;
  readonly #isKept: boolean;
  #isOver = false;
  #late: ReturnType<typeof setTimeout> | undefined;

  /**
   * Starts the program, with the spare keeper if there is one. Throws if its file or its folder
   * does not exist.
   */
  constructor(program: Program, spare?: SpareKeeper) {
    this.#isKept = program.kept === true && canKeep();
    const { file, args, cwd, env, reach } = program;
    if (!this.#isKept) {
      if (reach !== undefined) throw new Error("Cannot confine a program without a keeper");
      this.running = startProcess(program);
      this.running.status.then(() => {
        // Processes that it started may still run. Later, its id may belong to another process.
        killGroup(this.running.pid);
        this.#isOver = true;
      });
      return;
    }
    assertThere(program);
    const mark = `${env.PML_RUN ?? ""}${crypto.randomUUID()}.`;
    const marked = { ...env, PML_RUN: mark };
    const keptProgram: KeptProgram = { file, args, cwd, env: marked, reach };
    // A confined program has a keeper with other code.
    this.running = (reach === undefined ? spare?.take() : undefined) ??
      startProcess(keeperOf(reach !== undefined));
    const { stdin, status } = this.running;
    const writer = stdin.getWriter();
    writer.write(descriptionOf(keptProgram)).catch(() => {}); // its exit reports the error
    writer.releaseLock();
    status.then(({ signal }) => {
      this.#isOver = true;
      clearTimeout(this.#late);
      // Another process may have killed the keeper. Its children would then go on.
      if (signal === "SIGKILL") killMarked(`PML_RUN=${mark}`);
    });
  }

  /**
   * The process id of the program, which is also that of its group. Until the program has started,
   * it is the keeper's.
   */
  get pid(): number {
    const { pid } = this.running;
    return this.#isKept ? childrenOf(pid)[0] ?? pid : pid;
  }

  /** Sends a signal to the program and its group, unless it has ended. */
  signal(name: Deno.Signal): void {
    if (!this.#isOver) killGroup(this.pid, name);
  }

  /**
   * Kills the program and its group. If it has a keeper, processes that left the group are killed,
   * too.
   */
  kill(): void {
    if (this.#isOver) return;
    if (!this.#isKept) return killGroup(this.running.pid);
    this.#killBelow();
    // On SIGTERM the keeper ends the rest. SIGCONT wakes a keeper that was stopped.
    for (const signal of ["SIGTERM", "SIGCONT"] as const) kill(this.running.pid, signal);
    this.#late ??= setTimeout(() => {
      this.#killBelow();
      kill(this.running.pid, "SIGKILL");
    }, KEEPER_MS);
  }

  #killBelow(): void {
    for (const pid of allBelow(this.running.pid)) kill(pid, "SIGKILL");
  }
}

/**
 * A keeper that was started in advance, because its start takes longer than that of most programs.
 * It ends when its input is closed, and therefore also with PML.
 */
export class SpareKeeper implements Disposable {
  #running: Process | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Starts a keeper that ends if it is not used within `ms`, if possible and if there is none. */
  start(ms: number): void {
    if (this.#running !== undefined || !canKeep()) return;
    const running = this.#running = startProcess(keeperOf(false));
    // It must not keep PML running.
    running.unref();
    this.#timer = setTimeout(() => this[Symbol.dispose](), ms);
    Deno.unrefTimer(Number(this.#timer));
    running.status.then(() => {
      if (this.#running === running) this.take();
    });
  }

  /** The process id of the keeper; undefined if there is none. */
  get pid(): number | undefined {
    return this.#running?.pid;
  }

  /** Removes and returns the keeper; undefined if there is none. */
  take(): Process | undefined {
    const running = this.#running;
    this.#running = undefined;
    clearTimeout(this.#timer);
    running?.ref();
    return running;
  }

  /** Ends the keeper. */
  [Symbol.dispose](): void {
    const running = this.take();
    if (running !== undefined) kill(running.pid, "SIGTERM");
  }
}

/**
 * Throws the errors that a start of the program would throw, because the start of its keeper does
 * not throw them.
 */
function assertThere({ file, cwd }: Program): void {
  const { isFile, mode } = Deno.statSync(file);
  if (!isFile || ((mode ?? 0) & 0o111) === 0) throw new Deno.errors.PermissionDenied(file);
  if (!Deno.statSync(cwd).isDirectory) throw new Deno.errors.NotADirectory(cwd);
}

/** Runs a program to its end. Throws if it takes too long or the signal aborts first. */
export async function runProgram(
  program: Program,
  { signal, ms, late, maxBytes, groups, input = "", onStderr }: ProgramOptions,
): Promise<ProgramResult> {
  signal?.throwIfAborted();
  const timeout = AbortSignal.timeout(ms);
  const over = AbortSignal.any(signal ? [timeout, signal] : [timeout]);
  const started = new StartedProgram(program);
  const child = started.running;
  groups?.add(child.pid);
  using _ = onAbort(over, () => started.kill());
  try {
    const [{ code }, stdout, stderr] = await Promise.all([
      child.status,
      headOf(child.stdout, { maxBytes }),
      headOf(child.stderr, { maxBytes, onText: onStderr }),
      new Blob([input]).stream().pipeTo(child.stdin).catch(() => {}), // the program ended first
    ]);
    over.throwIfAborted();
    return { code, stdout, stderr: withoutColours(stderr) };
  } catch (error) {
    throw timeout.aborted && late ? late(error) : error;
  } finally {
    // Kills processes that the program started and that still run.
    started.kill();
    groups?.remove(child.pid);
  }
}

/**
 * Sends a signal to a process group. On Windows a process can only be killed; other signals are not
 * sent.
 */
export function killGroup(pid: number, signal: Deno.Signal = "SIGKILL"): void {
  if (windows === undefined) return kill(-pid, signal);
  if (signal === "SIGKILL") windows.end(pid);
}

/**
 * Puts a program into a separate group, on systems where its parent cannot do that. `within` must
 * have started it.
 */
export function adoptGroup(pid: number, within: number): void {
  windows?.add(pid, within);
}

/** Returns whether the system ends all programs when PML is killed, without a reaper. */
export function endsWithPml(): boolean {
  return windows?.hasJobs === true;
}

/**
 * Kills all processes that have a mark in their environment, also those that left their group.
 * Requires /proc.
 */
export function killMarked(mark: string): void {
  for (const name of namesIn("/proc").filter((each) => /^\d+$/.test(each))) {
    if (textIn(`/proc/${name}/environ`).includes(mark)) kill(Number(name), "SIGKILL");
  }
}

/**
 * Returns the resident memory of a process and of all processes below it, in bytes; 0 if the system
 * does not report it.
 */
export function residentBytes(pid: number, { below = true } = {}): number {
  // Without /proc, only the heap flag limits the memory.
  const own = Number(/^VmRSS:\s+(\d+) kB/m.exec(textIn(`/proc/${pid}/status`))?.[1] ?? 0) * 1_024;
  if (!below) return own;
  return childrenOf(pid).reduce((sum, child) => sum + residentBytes(child), own);
}

/** Reads a stream to its end, so that the program never blocks, and keeps the first bytes. */
async function headOf(
  stream: ReadableStream<Uint8Array>,
  { maxBytes, onText }: {
    readonly maxBytes: number;
    readonly onText?: ((text: string) => void) | undefined;
  },
): Promise<string> {
  const decoder = new TextDecoder();
  const whole = new TextDecoder();
  let text = "";
  let remaining = maxBytes;
  for await (const chunk of stream) {
    onText?.(whole.decode(chunk, { stream: true }));
    text += decoder.decode(chunk.subarray(0, remaining), { stream: true });
    remaining = Math.max(0, remaining - chunk.length);
  }
  return text;
}

/**
 * Returns the children of a process, the oldest first. They may include orphans of other processes.
 */
function childrenOf(pid: number): readonly number[] {
  const tasks = namesIn(`/proc/${pid}/task`);
  const texts = tasks.map((task) => textIn(`/proc/${pid}/task/${task}/children`));
  return texts.flatMap((text) => text.match(/\d+/g) ?? []).map(Number);
}

function allBelow(pid: number): readonly number[] {
  return childrenOf(pid).flatMap((child) => [child, ...allBelow(child)]);
}

function namesIn(folder: string): readonly string[] {
  try {
    return namesInFolder(folder);
  } catch {
    return []; // ended, a system without /proc, or too many open files
  }
}

function textIn(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return ""; // ended, or of another user
  }
}

function kill(pid: number, signal: Deno.Signal): void {
  try {
    Deno.kill(pid, signal);
  } catch {
    // It has ended, or runs as another user, as with sudo.
  }
}

/**
 * Starts and ends processes. Each process has its own process group, and only the environment
 * that the caller passes. All processes of PML are started here.
 *
 * @module
 */

import { withoutColours } from "../core/program_output.ts";
import { namesInFolder } from "../io/path_info.ts";
import { onAbort } from "../io/waiting.ts";
import { canRunKeepers, descriptionOf, keeperProgram, openInput, PIPE_BYTES } from "./_keeper.ts";
import type { Groups } from "./_options.ts";
import type { PipedProcess, Start } from "./_pipe_threads.ts";
import type { StartedCommand } from "../core/batch_files.ts";
import type { SupervisedProgram } from "./boot/keeper.ts";
import type { Program } from "./program.ts";

const IS_WINDOWS = Deno.build.os === "windows";
const spawn: Start = (file, options) => new Deno.Command(file, options).spawn();
/** Only Windows loads this module. */
const windows = IS_WINDOWS
  ? new (await import("./_windows.ts")).WindowsProcesses(spawn)
  : undefined;

/** The time in which a keeper must end all processes below it, in milliseconds. */
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
  /** Records the process group, so that it ends with PML, even if PML is killed. */
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
 * Starts a program with a pipe for its input and, unless `hasOutputs` is false, pipes for its
 * outputs. On Windows it ends with PML unless `outlives` is true. If `createsGroup` is true, the
 * program itself creates its group, which saves PML 2 ms. Throws `UPSTREAM_DOWN` if `cmd.exe` would
 * change an argument of a batch file.
 */
export function startProcess(
  program: Program,
  { hasOutputs = true, outlives = false, createsGroup = false } = {},
): Process {
  const out = hasOutputs ? "piped" : "null";
  const command: StartedCommand & Pick<Program, "env"> = windows?.commandOf(program) ?? program;
  const { file, args, env, windowsRawArguments = false } = command;
  const isThreaded = windows !== undefined && hasOutputs && !outlives;
  const child = (isThreaded ? windows.threads.spawn : spawn)(file, {
    args: [...args],
    cwd: program.cwd,
    env,
    clearEnv: true,
    windowsRawArguments,
    stdin: "piped",
    stdout: out,
    stderr: out,
    // A separate group can be killed with all its processes. On Windows, `detached` would instead
    // open a console window for each program that the process starts.
    detached: !IS_WINDOWS && !createsGroup || outlives,
  });
  if (windows !== undefined && !outlives) {
    windows.add(child.pid);
    child.status.then(() => windows.endRest(child.pid));
  }
  return child;
}

/** Runs a program on PML's own terminal, in PML's own environment. Returns its exit code. */
export async function runOnTerminal(
  { file, args, cwd }: Pick<Program, "file" | "args" | "cwd">,
): Promise<number> {
  return (await new Deno.Command(file, { args: [...args], cwd }).spawn().status).code;
}

/**
 * Starts a program on PML's own terminal, without input, in PML's own environment. The program
 * continues when PML ends.
 */
export function startOnTerminal({ file, args, cwd }: Pick<Program, "file" | "args" | "cwd">): void {
  new Deno.Command(file, { args: [...args], cwd, stdin: "null" }).spawn().unref();
}

/** A program with its process group and, if it has one, its keeper. */
export class StartedProgram {
  /** The program or its keeper, which has the same pipes and ends with the same status. */
  readonly running: Process;
  readonly #isKept: boolean;
  #hasEnded = false;
  #killTimer: ReturnType<typeof setTimeout> | undefined;

  /**
   * Starts the program, with the spare keeper if there is one. Throws if its file or its folder
   * does not exist.
   */
  constructor(program: Program, spare?: SpareKeeper) {
    this.#isKept = program.hasKeeper === true && canRunKeepers();
    const { reach } = program;
    if (!this.#isKept) {
      if (reach !== undefined) throw new Error("Cannot confine a program without a keeper");
      this.running = startProcess(program);
      this.running.status.then(() => {
        // Processes that it started may still run. The group is killed now, because another process
        // may get the id later.
        killGroup(this.running.pid);
        this.#hasEnded = true;
      });
      return;
    }
    assertStartable(program);
    // A confined program has a keeper with other code.
    const keeper = (reach === undefined ? spare?.take(program) : undefined) ??
      new Keeper(program.reach !== undefined);
    keeper.run(program);
    this.running = keeper.running;
    this.running.status.then(({ signal }) => {
      this.#hasEnded = true;
      clearTimeout(this.#killTimer);
      // If another process has killed the keeper, its children still run, so they are killed here.
      if (signal === "SIGKILL") killMarked(`PML_RUN=${keeper.mark}`);
    });
  }

  /**
   * The process id of the program, which is also the id of its group. Until the program has
   * started, the process id of the keeper.
   */
  get pid(): number {
    const { pid } = this.running;
    return this.#isKept ? childrenOf(pid)[0] ?? pid : pid;
  }

  /** Sends a signal to the program and its group, unless it has ended. */
  signal(name: Deno.Signal): void {
    if (!this.#hasEnded) killGroup(this.pid, name);
  }

  /**
   * Kills the program and its group. If it has a keeper, processes that left the group are killed,
   * too.
   */
  kill(): void {
    if (this.#hasEnded) return;
    if (!this.#isKept) return killGroup(this.running.pid);
    this.#killBelow();
    // On SIGTERM the keeper ends the remaining processes. SIGCONT continues a stopped keeper.
    for (const signal of ["SIGTERM", "SIGCONT"] as const) kill(this.running.pid, signal);
    this.#killTimer ??= setTimeout(() => {
      this.#killBelow();
      kill(this.running.pid, "SIGKILL");
    }, KEEPER_MS);
  }

  #killBelow(): void {
    for (const pid of descendantsOf(this.running.pid)) kill(pid, "SIGKILL");
  }
}

/** A keeper: a process that runs one program, and ends all its processes when PML ends. */
class Keeper {
  readonly running: Process;
  /** A second handle of its standard input, which is open until the program runs. */
  #input: Deno.FsFile | undefined;
  #mark: string | undefined;
  /** The program as it was passed, without its mark. */
  #program: string | undefined;

  /** Starts a keeper, which waits for its program. */
  constructor(isConfined: boolean) {
    this.running = startProcess(keeperProgram(isConfined), { createsGroup: true });
    this.#input = openInput(this.running.pid);
    this.running.status.then(() => this.#input?.close());
  }

  /** The value of PML_RUN in the environment of the program and all that it starts. */
  get mark(): string {
    return this.#mark ?? "";
  }

  /** Returns whether the keeper runs no program yet, or exactly this program. */
  canRun(program: Program): boolean {
    return this.#program === undefined || this.#program === textOf(program);
  }

  /** Runs the program, unless the keeper runs it already. */
  run(program: Program): void {
    if (this.#program !== undefined) return;
    this.#program = textOf(program);
    const { file, args, cwd, env, reach } = program;
    this.#mark = `${env.PML_RUN ?? ""}${crypto.randomUUID()}.`;
    const markedEnvironment = { ...env, PML_RUN: this.#mark };
    const supervised: SupervisedProgram = { file, args, cwd, env: markedEnvironment, reach };
    this.#describe(descriptionOf(supervised)).catch(() => {}); // its exit reports the error
  }

  /**
   * Writes the description of the program. If every pipe can hold it, it is written at once, because
   * a stream writes only after PML has loaded the code of a first call (80 ms).
   */
  async #describe(description: Uint8Array): Promise<void> {
    using input = this.#input;
    this.#input = undefined;
    if (input !== undefined && description.length <= PIPE_BYTES) {
      input.writeSync(description);
      return;
    }
    const writer = this.running.stdin.getWriter();
    const written = writer.write(description);
    writer.releaseLock();
    await written;
  }
}

/** Returns a text that identifies a program. */
function textOf({ file, args, cwd, env, reach }: Program): string {
  return JSON.stringify([file, args, cwd, Object.entries(env).sort(), reach]);
}

/**
 * A keeper that is started in advance, because it starts more slowly than most programs. It ends
 * when its input is closed, and therefore also when PML ends.
 */
export class SpareKeeper implements Disposable {
  #keeper: Keeper | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Starts a keeper if there is none and the system can run one. It ends if unused for `ms`. */
  start(ms: number): void {
    if (this.#keeper !== undefined || !canRunKeepers()) return;
    const keeper = this.#keeper = new Keeper(false);
    // An unused keeper must not keep PML running.
    keeper.running.unref();
    this.#timer = setTimeout(() => this[Symbol.dispose](), ms);
    Deno.unrefTimer(Number(this.#timer));
    keeper.running.status.then(() => {
      if (this.#keeper === keeper) this.#remove();
    });
  }

  /**
   * Starts a program in the keeper. The output of the program waits until `take()` is called with
   * the same program. The caller must have checked that the program may run.
   */
  begin(program: Program): void {
    assertStartable(program);
    this.#keeper?.run(program);
  }

  /** The process id of the keeper; undefined if there is none. */
  get pid(): number | undefined {
    return this.#keeper?.running.pid;
  }

  /** Removes and returns the keeper; undefined if there is none, or if it runs another program. */
  take(program: Program): Keeper | undefined {
    if (this.#keeper?.canRun(program) !== true) return undefined;
    const keeper = this.#remove();
    keeper?.running.ref();
    return keeper;
  }

  /** Ends the keeper. */
  [Symbol.dispose](): void {
    const keeper = this.#remove();
    if (keeper === undefined) return;
    keeper.running.ref();
    kill(keeper.running.pid, "SIGTERM");
  }

  #remove(): Keeper | undefined {
    const keeper = this.#keeper;
    this.#keeper = undefined;
    clearTimeout(this.#timer);
    return keeper;
  }
}

/**
 * Throws the errors that a start of the program would throw. The start of a keeper does not throw
 * them.
 */
function assertStartable({ file, cwd }: Program): void {
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
  const aborted = AbortSignal.any(signal ? [timeout, signal] : [timeout]);
  const started = new StartedProgram(program);
  const child = started.running;
  groups?.add(child.pid);
  using _ = onAbort(aborted, () => started.kill());
  try {
    const [{ code }, stdout, stderr] = await Promise.all([
      child.status,
      headOf(child.stdout, { maxBytes }),
      headOf(child.stderr, { maxBytes, onText: onStderr }),
      new Blob([input]).stream().pipeTo(child.stdin).catch(() => {}), // the program ended first
    ]);
    aborted.throwIfAborted();
    return { code, stdout, stderr: withoutColours(stderr) };
  } catch (error) {
    throw timeout.aborted && late ? late(error) : error;
  } finally {
    // The program may have ended and left processes that still run.
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
 * Puts a program into a separate group, on systems where its parent cannot do that. The process
 * `within` must have started the program.
 */
export function adoptGroup(pid: number, within: number): void {
  windows?.add(pid, within);
}

/** Returns whether the system itself ends all programs when PML is killed, without a reaper. */
export function systemEndsPrograms(): boolean {
  return windows?.hasJobs === true;
}

/**
 * Kills all processes that have a mark in their environment, even processes that left their group.
 * Requires /proc.
 */
export function killMarked(mark: string): void {
  for (const name of namesInIfAny("/proc").filter((entry) => /^\d+$/.test(entry))) {
    if (textIfReadable(`/proc/${name}/environ`).includes(mark)) kill(Number(name), "SIGKILL");
  }
}

/**
 * Returns the resident memory of a process and of all processes below it, in bytes; 0 if the system
 * does not report it.
 */
export function residentBytes(pid: number, { below = true } = {}): number {
  // Without /proc, only the heap flag limits the memory.
  const ownBytes =
    Number(/^VmRSS:\s+(\d+) kB/m.exec(textIfReadable(`/proc/${pid}/status`))?.[1] ?? 0) *
    1_024;
  if (!below) return ownBytes;
  return childrenOf(pid).reduce((sum, child) => sum + residentBytes(child), ownBytes);
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
  const progressDecoder = new TextDecoder();
  let text = "";
  let remaining = maxBytes;
  for await (const chunk of stream) {
    onText?.(progressDecoder.decode(chunk, { stream: true }));
    text += decoder.decode(chunk.subarray(0, remaining), { stream: true });
    remaining = Math.max(0, remaining - chunk.length);
  }
  return text;
}

/**
 * Returns the children of a process, the oldest first. They may include orphans of other processes.
 */
function childrenOf(pid: number): readonly number[] {
  const tasks = namesInIfAny(`/proc/${pid}/task`);
  const texts = tasks.map((task) => textIfReadable(`/proc/${pid}/task/${task}/children`));
  return texts.flatMap((text) => text.match(/\d+/g) ?? []).map(Number);
}

function descendantsOf(pid: number): readonly number[] {
  return childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);
}

function namesInIfAny(folder: string): readonly string[] {
  try {
    return namesInFolder(folder);
  } catch {
    return []; // the process ended, the system has no /proc, or too many files are open
  }
}

function textIfReadable(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return ""; // the process ended, or belongs to another user
  }
}

function kill(pid: number, signal: Deno.Signal): void {
  try {
    Deno.kill(pid, signal);
  } catch {
    // The process has ended, or runs as another user, as with sudo.
  }
}

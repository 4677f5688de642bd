/**
 * Processes in a group of their own, with the environment that they are given and nothing else, and
 * how they end. All that PML starts is started here.
 *
 * @module
 */

import { defined } from "../core/json.ts";
import { onAbort } from "../io/waiting.ts";
import { canKeep, keeperOf } from "./_keeper.ts";
import type { Groups } from "./_options.ts";
import type { KeptProgram } from "./boot/keeper.ts";
import type { Reach } from "./boot/reach.ts";

/** How long a keeper may take to end all that it keeps. */
const KEEPER_MS = 1_000;

/** A process that this side talks to. */
export type Process = Deno.ChildProcess;

/** A program and how it is started. */
export interface Program {
  /** Its file, absolute, so that no PATH decides what runs. */
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** All of its environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Whether it has a keeper where there can be one, so that nothing of it outlives it or PML. */
  readonly kept?: boolean;
  /** What alone it may read and write, and the code that sees to it; only for one that is kept. */
  readonly confined?: { readonly reach: Reach; readonly code: string };
}

/** How a program is run to its end. */
export interface RunOptions {
  readonly signal: AbortSignal;
  /** How many bytes of each output are kept, from its beginning. */
  readonly maxBytes: number;
  /** Keeps the group, so that it ends with PML however it ends. */
  readonly groups?: Pick<Groups, "add" | "remove"> | undefined;
  /** Told what it writes to stderr, as it comes. */
  readonly onStderr?: (text: string) => void;
}

/** How a program ended, and the beginning of what it wrote. */
export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Starts a program with its input, and with its outputs if they are `heard`. */
export function startProcess({ file, args, cwd, env }: Program, { heard = true } = {}): Process {
  const out = heard ? "piped" : "null";
  return new Deno.Command(file, {
    args: [...args],
    cwd,
    env,
    clearEnv: true,
    stdin: "piped",
    stdout: out,
    stderr: out,
    // A group of its own can be killed with everything that it started.
    detached: true,
  }).spawn();
}

/** A program with its group, and with the keeper above it if it has one. */
export class Started {
  /** The program, or its keeper, which has its pipes and ends as it does. */
  readonly running: Process;
  readonly #isKept: boolean;
  #isOver = false;
  #late: ReturnType<typeof setTimeout> | undefined;

  /** Starts the program; throws where it is no file or its folder is none. */
  constructor(program: Program) {
    this.#isKept = program.kept === true && canKeep();
    const { file, args, cwd, env, confined } = program;
    if (!this.#isKept) {
      if (confined !== undefined) throw new Error("What has no keeper is not confined");
      this.running = startProcess(program);
      return;
    }
    assertThere(program);
    const mark = `${env.PML_RUN ?? ""}${crypto.randomUUID()}.`;
    const marked = { ...env, PML_RUN: mark };
    const kept: KeptProgram = {
      file,
      args,
      cwd,
      env: marked,
      ...defined({ reach: confined?.reach }),
    };
    const told = new TextEncoder().encode(JSON.stringify(kept));
    const { stdin, status } = this.running = startProcess(keeperOf(told.length, confined?.code));
    const writer = stdin.getWriter();
    writer.write(told).catch(() => {}); // its end says why
    writer.releaseLock();
    status.then(({ signal }) => {
      this.#isOver = true;
      clearTimeout(this.#late);
      // Somebody else may have killed the keeper, whose children are nobody's then.
      if (signal === "SIGKILL") killMarked(`PML_RUN=${mark}`);
    });
  }

  /** The process id of the program, which is its group's too; of the keeper before it is there. */
  get pid(): number {
    const { pid } = this.running;
    return this.#isKept ? childrenOf(pid)[0] ?? pid : pid;
  }

  /** Sends a signal to the program and its group. */
  signal(name: Deno.Signal): void {
    killGroup(this.pid, name);
  }

  /** Kills the program with its group and, where it is kept, with all that fled from that. */
  kill(): void {
    if (!this.#isKept) return killGroup(this.running.pid);
    if (this.#isOver) return;
    this.#killBelow();
    // Told to end, the keeper sees to the rest, also one that was stopped.
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

/** Throws what a start would: a keeper is there, whatever it is to keep. */
function assertThere({ file, cwd }: Program): void {
  const { isFile, mode } = Deno.statSync(file);
  if (!isFile || ((mode ?? 0) & 0o111) === 0) throw new Deno.errors.PermissionDenied(file);
  if (!Deno.statSync(cwd).isDirectory) throw new Deno.errors.NotADirectory(cwd);
}

/** Runs a program that reads nothing to its end; throws the signal's reason where that comes first. */
export async function runProgram(
  program: Program,
  { signal, maxBytes, groups, onStderr }: RunOptions,
): Promise<Ran> {
  signal.throwIfAborted();
  const started = new Started(program);
  const child = started.running;
  groups?.add(child.pid);
  using _ = onAbort(signal, () => started.kill());
  try {
    const [{ code }, stdout, stderr] = await Promise.all([
      child.status,
      headOf(child.stdout, { maxBytes }),
      headOf(child.stderr, { maxBytes, onText: onStderr }),
      child.stdin.close().catch(() => {}), // it ended before
    ]);
    signal.throwIfAborted();
    return { code, stdout, stderr };
  } finally {
    // What it started and left behind goes with it.
    started.kill();
    groups?.remove(child.pid);
  }
}

/** Sends a signal to a process group. */
export function killGroup(pid: number, signal: Deno.Signal = "SIGKILL"): void {
  kill(Deno.build.os === "windows" ? pid : -pid, signal);
}

/** Kills what has a mark in its environment, also what left its group; for systems with /proc. */
export function killMarked(mark: string): void {
  for (const name of namesIn("/proc").filter((each) => /^\d+$/.test(each))) {
    if (textIn(`/proc/${name}/environ`).includes(mark)) kill(Number(name), "SIGKILL");
  }
}

/** Gives the resident memory of a process in bytes, and of all below it; 0 where nobody tells. */
export function residentBytes(pid: number, { below = true } = {}): number {
  // Without /proc only the heap flag bounds the memory.
  const own = Number(/^VmRSS:\s+(\d+) kB/m.exec(textIn(`/proc/${pid}/status`))?.[1] ?? 0) * 1_024;
  if (!below) return own;
  return childrenOf(pid).reduce((sum, child) => sum + residentBytes(child), own);
}

/** Reads to the end, so that nothing blocks, and keeps the first bytes. */
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
  let left = maxBytes;
  for await (const chunk of stream) {
    onText?.(whole.decode(chunk, { stream: true }));
    text += decoder.decode(chunk.subarray(0, left), { stream: true });
    left = Math.max(0, left - chunk.length);
  }
  return text;
}

/** Gives the processes that a process has started, or got from others that ended; oldest first. */
function childrenOf(pid: number): readonly number[] {
  const tasks = namesIn(`/proc/${pid}/task`);
  const said = tasks.map((task) => textIn(`/proc/${pid}/task/${task}/children`));
  return said.flatMap((text) => text.match(/\d+/g) ?? []).map(Number);
}

function allBelow(pid: number): readonly number[] {
  return childrenOf(pid).flatMap((child) => [child, ...allBelow(child)]);
}

function namesIn(folder: string): readonly string[] {
  try {
    return [...Deno.readDirSync(folder)].map(({ name }) => name);
  } catch {
    return []; // gone, another system, or no file can be opened now
  }
}

function textIn(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return ""; // gone, or another person's
  }
}

function kill(pid: number, signal: Deno.Signal): void {
  try {
    Deno.kill(pid, signal);
  } catch {
    // Gone already, which is what was wanted; or it became another person's, as by sudo.
  }
}

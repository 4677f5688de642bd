/**
 * Processes in a group of their own, with the environment that they are given and nothing else, and
 * how they end. All that PML starts is started here.
 *
 * @module
 */

import type { Groups } from "./_options.ts";

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

/** Runs a program that reads nothing to its end; throws the signal's reason where that comes first. */
export async function runProgram(
  program: Program,
  { signal, maxBytes, groups, onStderr }: RunOptions,
): Promise<Ran> {
  signal.throwIfAborted();
  const child = startProcess(program);
  groups?.add(child.pid);
  const kill = () => killGroup(child.pid);
  signal.addEventListener("abort", kill);
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
    signal.removeEventListener("abort", kill);
    // What it started and left behind goes with it.
    kill();
    groups?.remove(child.pid);
  }
}

/** Sends a signal to a process group. */
export function killGroup(pid: number, signal: Deno.Signal = "SIGKILL"): void {
  kill(Deno.build.os === "windows" ? pid : -pid, signal);
}

/** Kills what has a mark in its environment, also what left its group; for systems with /proc. */
export function killMarked(mark: string): void {
  for (const name of processes()) {
    if (environmentOf(name).includes(mark)) kill(Number(name), "SIGKILL");
  }
}

/** Gives the resident memory of a process in bytes, and of all below it; 0 where nobody tells. */
export function residentBytes(pid: number, { below = true } = {}): number {
  try {
    const status = Deno.readTextFileSync(`/proc/${pid}/status`);
    const own = Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1_024;
    if (!below) return own;
    const started = Deno.readTextFileSync(`/proc/${pid}/task/${pid}/children`).match(/\d+/g) ?? [];
    return started.reduce((sum, child) => sum + residentBytes(Number(child)), own);
  } catch {
    // Gone, or a system without /proc: there only the heap flag bounds the memory.
    return 0;
  }
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

function processes(): readonly string[] {
  try {
    return [...Deno.readDirSync("/proc")].map(({ name }) => name).filter((name) =>
      /^\d+$/.test(name)
    );
  } catch {
    return []; // another system, or no file can be opened now: the groups are all that is known
  }
}

function environmentOf(pid: string): string {
  try {
    return Deno.readTextFileSync(`/proc/${pid}/environ`);
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

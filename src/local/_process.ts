/**
 * Starts programs outside the sandbox: each in a process group of its own, with the environment
 * that it is given and nothing else.
 *
 * @module
 */

/** A program and how it is started. */
export interface Program {
  /** Its file, absolute, so that no PATH decides what runs. */
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** All of its environment. */
  readonly env: Readonly<Record<string, string>>;
}

/** How a program ended, and the beginning of what it wrote. */
export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Starts a program with its three pipes. */
export function startProgram({ file, args, cwd, env }: Program): Deno.ChildProcess {
  return new Deno.Command(file, {
    args: [...args],
    cwd,
    env,
    clearEnv: true,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
    // A group of its own can be killed with everything that it started.
    detached: true,
  }).spawn();
}

/** Kills a program with everything that it started. */
export function killProgram({ pid }: Deno.ChildProcess): void {
  try {
    Deno.kill(Deno.build.os === "windows" ? pid : -pid, "SIGKILL");
  } catch {
    // It has ended, which its exit status tells.
  }
}

/** Runs a program that reads nothing to its end; throws the signal's reason where that comes first. */
export async function runProgram(
  program: Program,
  { signal, maxBytes }: { readonly signal: AbortSignal; readonly maxBytes: number },
): Promise<Ran> {
  signal.throwIfAborted();
  const child = startProgram(program);
  const kill = () => killProgram(child);
  signal.addEventListener("abort", kill);
  try {
    const [{ code }, stdout, stderr] = await Promise.all([
      child.status,
      headOf(child.stdout, maxBytes),
      headOf(child.stderr, maxBytes),
      child.stdin.close().catch(() => {}), // it ended before
    ]);
    signal.throwIfAborted();
    return { code, stdout, stderr };
  } finally {
    signal.removeEventListener("abort", kill);
    // What it started and left behind goes with it.
    kill();
  }
}

/** Reads to the end, so that nothing blocks, and keeps the first bytes. */
async function headOf(stream: ReadableStream<Uint8Array>, maxBytes: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let left = maxBytes;
  for await (const chunk of stream) {
    text += decoder.decode(chunk.subarray(0, left), { stream: true });
    left = Math.max(0, left - chunk.length);
  }
  return text;
}

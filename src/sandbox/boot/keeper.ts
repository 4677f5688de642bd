/**
 * The two Deno processes that start a kept program. One is replaced by the shell that keeps the
 * program, the other by the program itself. They call the C library, because Deno has no functions
 * for the settings that they need: only a process itself can become a subreaper, and shells change
 * the environment and the signals of a program.
 *
 * @module
 */

import type { Reach } from "./reach.ts";

/**
 * The program that replaces the second process. It is sent on standard input, because other
 * processes can read arguments.
 */
export interface KeptProgram {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The paths that it may read and write, if it is confined. */
  readonly reach: Reach | undefined;
}

/** The global function that confines a program. Code before this one defines it. */
export type Confining = typeof globalThis & { confine: (reach: Reach) => string };

// Numbers from Linux.
const SET_DEATH_SIGNAL = 1;
const SET_CHILD_SUBREAPER = 36;
const TERM = 15n;
/**
 * SIGINT, SIGQUIT and SIGPIPE. Programs inherit whether these are ignored, and shells and runtimes
 * often ignore them.
 */
const IGNORED = [2, 3, 13];

const LIBC = {
  prctl: { parameters: ["i32", "u64", "u64", "u64", "u64"], result: "i32" },
  signal: { parameters: ["i32", "usize"], result: "usize" },
  setsid: { parameters: [], result: "i32" },
  chdir: { parameters: ["buffer"], result: "i32" },
  getppid: { parameters: [], result: "i32" },
  execv: { parameters: ["buffer", "buffer"], result: "i32" },
  execve: { parameters: ["buffer", "buffer", "buffer"], result: "i32" },
} as const;

/**
 * Replaces this process. Without arguments, by the program that standard input describes; otherwise
 * by the keeper, and the arguments are the process id of PML and the keeper's command. A program
 * with a `reach` does not run unless it is confined.
 */
export function runSupervised(): void {
  const { symbols: libc } = Deno.dlopen("libc.so.6", LIBC);
  const [first, ...command] = Deno.args;
  for (const ignored of IGNORED) libc.signal(ignored, 0n);
  if (first === undefined) {
    const program: KeptProgram = JSON.parse(taken(Number(line())));
    const { file, args, cwd, env, reach } = program;
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    libc.setsid();
    const { confine } = globalThis as Confining;
    const confinement = reach && confine(reach);
    if (confinement?.startsWith("landlock ") === false) {
      console.error(confinement);
      Deno.exit(70);
    }
    if (libc.chdir(text(cwd)) === 0) {
      libc.execve(text(file), texts([file, ...args]), texts(variables));
    }
    console.error(`PML cannot run ${file}`);
    Deno.exit(127);
  }
  // A descendant that loses its parent becomes a child of this process.
  libc.prctl(SET_CHILD_SUBREAPER, 1n, 0n, 0n, 0n);
  // Both settings survive `execv()`.
  libc.prctl(SET_DEATH_SIGNAL, TERM, 0n, 0n, 0n);
  // If the parent changed, PML ended before this setting took effect.
  if (libc.getppid() === Number(first)) libc.execv(text(command[0] ?? ""), texts(command));
  Deno.exit(70);
}

/** Reads a line. */
function line(): string {
  let text = "";
  for (let one = taken(1); one !== "\n"; one = taken(1)) text += one;
  return text;
}

/** Reads exactly `length` bytes, because the rest belongs to the program. */
function taken(length: number): string {
  const bytes = new Uint8Array(length);
  for (let have = 0, count: number | null = 0; have < length; have += count) {
    count = Deno.stdin.readSync(bytes.subarray(have));
    if (count === null) Deno.exit(0); // PML cancelled the start
  }
  return new TextDecoder().decode(bytes);
}

const chunks: Uint8Array<ArrayBuffer>[] = [];

/** Returns a text as a C string. Its memory is kept as long as the process runs. */
function text(value: string): Uint8Array<ArrayBuffer> {
  const bytes = new TextEncoder().encode(`${value}\0`);
  chunks.push(bytes);
  return bytes;
}

/** Returns a list of the addresses of texts, with a null at the end. */
function texts(values: readonly string[]): BigUint64Array<ArrayBuffer> {
  const addresses = values.map((each) =>
    Deno.UnsafePointer.value(Deno.UnsafePointer.of(text(each)))
  );
  return new BigUint64Array([...addresses.map(BigInt), 0n]);
}

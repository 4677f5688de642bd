/**
 * The two Deno processes that start a program with a keeper. The keeper, a shell, replaces the
 * first process; the program itself replaces the second. The processes call the C library, because
 * Deno has no functions for the settings that they need: only a process itself can become a
 * subreaper, and shells change the environment and the signals of a program.
 *
 * @module
 */

import type { Reach } from "./reach.ts";

/**
 * The program that replaces the second process. It is sent on standard input, because other
 * processes can read arguments.
 */
export interface SupervisedProgram {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The paths that it may read and write, if it is confined. */
  readonly reach: Reach | undefined;
}

/** The global object with the function that confines a program: see `confined_main.ts`. */
export type Confining = typeof globalThis & { confine: (reach: Reach) => string };

// PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER of Linux.
const SET_DEATH_SIGNAL = 1;
const SET_CHILD_SUBREAPER = 36;
const SIGTERM = 15n;
/**
 * SIGINT, SIGQUIT and SIGPIPE. Programs inherit ignored signals, and shells and runtimes often
 * ignore these signals.
 */
const IGNORED = [2, 3, 13];
/** The signal that `posix_spawn()` ignores in the child. `signal()` refuses it. */
const LIBC_SIGNAL = 32n;
/** The number of `rt_sigaction`, and the sizes of its structures in bytes. */
const SIGACTION = Deno.build.arch === "aarch64" ? 134n : 13n;
const ACTION_BYTES = 32;
const SET_BYTES = 8n;

const LIBC = {
  prctl: { parameters: ["i32", "u64", "u64", "u64", "u64"], result: "i32" },
  signal: { parameters: ["i32", "usize"], result: "usize" },
  syscall: { parameters: ["i64", "i64", "buffer", "usize", "i64"], result: "i64" },
  setsid: { parameters: [], result: "i32" },
  chdir: { parameters: ["buffer"], result: "i32" },
  getppid: { parameters: [], result: "i32" },
  execv: { parameters: ["buffer", "buffer"], result: "i32" },
  execve: { parameters: ["buffer", "buffer", "buffer"], result: "i32" },
} as const;

/**
 * Replaces this process. Without arguments, the program that standard input describes replaces it.
 * Otherwise the keeper replaces it; the arguments are the process id of PML and the keeper's
 * command. A program with a `reach` does not run unless it is confined.
 */
export function runSupervised(): void {
  const { symbols: libc } = Deno.dlopen("libc.so.6", LIBC);
  const [first, ...command] = Deno.args;
  for (const ignored of IGNORED) libc.signal(ignored, 0n);
  libc.syscall(SIGACTION, LIBC_SIGNAL, new Uint8Array(ACTION_BYTES), 0n, SET_BYTES);
  if (first === undefined) {
    const program: SupervisedProgram = JSON.parse(readExactly(Number(readLine())));
    const { file, args, cwd, env, reach } = program;
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    libc.setsid();
    const { confine } = globalThis as Confining;
    const confinement = reach && confine(reach);
    if (confinement?.startsWith("landlock ") === false) {
      console.error(confinement);
      Deno.exit(70);
    }
    if (libc.chdir(cString(cwd)) === 0) {
      libc.execve(cString(file), cStrings([file, ...args]), cStrings(variables));
    }
    console.error(`PML cannot run ${file}`);
    Deno.exit(127);
  }
  // PML does not start this process in a separate group, because that would copy PML's memory.
  libc.setsid();
  // A descendant that loses its parent becomes a child of this process.
  libc.prctl(SET_CHILD_SUBREAPER, 1n, 0n, 0n, 0n);
  // Both settings survive `execv()`.
  libc.prctl(SET_DEATH_SIGNAL, SIGTERM, 0n, 0n, 0n);
  // If the parent changed, PML ended before this setting took effect.
  if (libc.getppid() === Number(first)) libc.execv(cString(command[0] ?? ""), cStrings(command));
  Deno.exit(70);
}

/** Reads a line. */
function readLine(): string {
  let line = "";
  for (let next = readExactly(1); next !== "\n"; next = readExactly(1)) line += next;
  return line;
}

/** Reads exactly `length` bytes, because further bytes belong to the program. */
function readExactly(length: number): string {
  const bytes = new Uint8Array(length);
  for (let read = 0, count: number | null = 0; read < length; read += count) {
    count = Deno.stdin.readSync(bytes.subarray(read));
    if (count === null) Deno.exit(0); // PML cancelled the start
  }
  return new TextDecoder().decode(bytes);
}

const chunks: Uint8Array<ArrayBuffer>[] = [];

/** Returns a text as a C string. Its memory is kept as long as the process runs. */
function cString(value: string): Uint8Array<ArrayBuffer> {
  const bytes = new TextEncoder().encode(`${value}\0`);
  chunks.push(bytes);
  return bytes;
}

/** Returns a list of the addresses of texts, with a null at the end. */
function cStrings(values: readonly string[]): BigUint64Array<ArrayBuffer> {
  const addresses = values.map((each) =>
    Deno.UnsafePointer.value(Deno.UnsafePointer.of(cString(each)))
  );
  return new BigUint64Array([...addresses.map(BigInt), 0n]);
}

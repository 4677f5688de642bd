/**
 * The two steps of Deno between PML and a kept program: one becomes the shell that keeps it, the
 * other becomes the program. Deno has no functions for what they set, so they call the C library.
 *
 * @module
 */

/** What the second step becomes; it comes on standard input, where nobody else can read it. */
export interface KeptProgram {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** How many digits tell the length of a `KeptProgram` in JSON, before it. */
export const LENGTH_DIGITS = 10;

// Numbers of Linux.
const SET_DEATH_SIGNAL = 1;
const SET_CHILD_SUBREAPER = 36;
const TERM = 15;
/** SIGINT, SIGQUIT and SIGPIPE, which shells and runtimes have programs ignore. */
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
 * Becomes the keeper where there are arguments: the process of PML and the command of the keeper.
 * Becomes the program that standard input names where there are none.
 */
export function boot(): void {
  const { symbols: libc } = Deno.dlopen("libc.so.6", LIBC);
  const [parent, ...command] = Deno.args;
  for (const ignored of IGNORED) libc.signal(ignored, 0n);
  if (parent === undefined) {
    const { file, args, cwd, env } = taken();
    libc.setsid();
    if (libc.chdir(text(cwd)) === 0) libc.execve(text(file), texts([file, ...args]), variables(env));
    console.error(`PML cannot run ${file}`);
    Deno.exit(127);
  }
  // What loses its parent below here becomes a child of this process, and of no other.
  libc.prctl(SET_CHILD_SUBREAPER, 1n, 0n, 0n, 0n);
  // Both settings stay when a process becomes another program.
  libc.prctl(SET_DEATH_SIGNAL, BigInt(TERM), 0n, 0n, 0n);
  // Else PML ended before it could be told.
  if (libc.getppid() === Number(parent)) libc.execv(text(command[0] ?? ""), texts(command));
  Deno.exit(70);
}

function taken(): KeptProgram {
  const length = Number(new TextDecoder().decode(read(LENGTH_DIGITS)));
  return JSON.parse(new TextDecoder().decode(read(length)));
}

/** Reads so many bytes and not one more: what follows is the program's own. */
function read(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let have = 0;
  while (have < length) {
    const count = Deno.stdin.readSync(bytes.subarray(have));
    if (count === null) Deno.exit(0); // PML gave it up
    have += count;
  }
  return bytes;
}

function variables(env: Readonly<Record<string, string>>): Uint8Array<ArrayBuffer> {
  return texts(Object.entries(env).map(([name, value]) => `${name}=${value}`));
}

function text(value: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(`${value}\0`);
}

/** Gives addresses of texts and, at their end, none. The memory is held as long as the process. */
function texts(values: readonly string[]): Uint8Array<ArrayBuffer> {
  held.push(...values.map(text));
  const all = held.slice(held.length - values.length);
  const addresses = all.map((one) => Deno.UnsafePointer.value(Deno.UnsafePointer.of(one)));
  return new Uint8Array(new BigUint64Array([...addresses.map(BigInt), 0n]).buffer);
}

const held: Uint8Array<ArrayBuffer>[] = [];

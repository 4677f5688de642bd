/**
 * System calls of Linux for which Deno has no function. The numbers are for x86-64 and ARM.
 *
 * @module
 */

/** The global class that calls the system. It runs before the code of two programs. */
export type WithKernel = typeof globalThis & { Kernel: typeof Kernel };

/** The rights that a ruleset controls. Other rights are not limited. */
export interface RulesetRights {
  readonly files: number;
  readonly network: number;
  readonly scopes: number;
}

const CREATE_RULESET = 444;
const ADD_RULE = 445;
const RESTRICT_SELF = 446;
const OPENAT2 = 437;
const CLOSE_RANGE = 436;
const [PRCTL, PRLIMIT, FCNTL] = Deno.build.arch === "x86_64" ? [157, 302, 72] : [167, 261, 25];
const SET_PIPE_SIZE = 1031; // F_SETPIPE_SZ
const PIPE_BYTES = 1 << 20;
const NO_NEW_PRIVS = 38;
const ALL_THREADS = 8; // LANDLOCK_RESTRICT_SELF_TSYNC
const ERRORS: Readonly<Record<number, string>> = {
  1: "EPERM",
  13: "EACCES",
  38: "ENOSYS",
  40: "ELOOP",
  95: "EOPNOTSUPP",
};
/** Where paths begin in the memory for arguments. Numbers come before. */
const PATH_OFFSET = 64;

/** Makes system calls in this thread, until it is disposed. */
export class Kernel implements Disposable {
  readonly #libc: ReturnType<typeof openLibc>;
  /** Memory for arguments that are passed by address: numbers first, then a path. */
  readonly #memory = new DataView(new ArrayBuffer(1 << 13));
  readonly #address = Number(
    Deno.UnsafePointer.value(Deno.UnsafePointer.of(this.#memory)),
  );

  private constructor(libc: ReturnType<typeof openLibc>) {
    this.#libc = libc;
  }

  /** Opens the C library; returns undefined if it does not exist. */
  static open(): Kernel | undefined {
    try {
      return new Kernel(openLibc());
    } catch {
      // This Linux has another C library.
      return undefined;
    }
  }

  /** Returns the version of Landlock, or why it cannot be used. */
  landlockVersion(): number | string {
    const version = this.#call(CREATE_RULESET, 0, 0, 1);
    if (version <= 0) return this.error();
    // Version 1 denies every move between folders, even if the rules allow it.
    return version < 2 ? `version ${version} is too old` : version;
  }

  /** Creates a ruleset and returns its file descriptor. */
  newRuleset({ files, network, scopes }: RulesetRights): number {
    return this.#callOrThrow(CREATE_RULESET, this.#numbers(files, network, scopes), 24, 0);
  }

  /** Allows rights on an opened path and closes it. A negative descriptor allows nothing. */
  allow(ruleset: number, opened: number, rights: readonly number[]): void {
    if (opened < 0) return;
    // The first rights are for a folder. A file refuses them, so the rights for files follow.
    rights.some((some) => {
      const rule = this.#numbers(some, opened);
      return this.#call(ADD_RULE, ruleset, 1, rule) === 0;
    });
    this.close(opened);
  }

  /**
   * Applies a ruleset to this thread and to all threads and processes that it starts, and to the
   * whole process if the kernel supports that.
   */
  restrict(ruleset: number, version: number): void {
    this.#callOrThrow(PRCTL, NO_NEW_PRIVS, 1);
    this.#callOrThrow(RESTRICT_SELF, ruleset, version < 8 ? 0 : ALL_THREADS);
    this.close(ruleset);
  }

  /** Opens a path and returns its descriptor; negative if that fails. */
  openPath(path: string, flags: number, resolve = 0): number {
    const bytes = new Uint8Array(this.#memory.buffer, PATH_OFFSET);
    const { written } = new TextEncoder().encodeInto(`${path}\0`, bytes);
    // A path that does not fit into this memory is too long for the kernel, too.
    if (bytes[written - 1] !== 0) bytes[bytes.length - 1] = 1;
    const how = this.#numbers(flags, 0, resolve);
    return this.#call(OPENAT2, -100, this.#address + PATH_OFFSET, how, 24);
  }

  /** Closes a descriptor. */
  close(opened: number): void {
    this.#call(CLOSE_RANGE, opened, opened);
  }

  /**
   * Makes the pipe of standard output larger, so that a large frame fits. If the system refuses,
   * nothing changes.
   */
  widenOutput(): void {
    this.#call(FCNTL, 1, SET_PIPE_SIZE, PIPE_BYTES);
  }

  /** Lowers a limit of the process. Never raises it. */
  limit(resource: number, most: number): void {
    this.#callOrThrow(PRLIMIT, 0, resource, 0, this.#numbers());
    const [soft, hard] = [0, 8].map((offset) => Number(this.#memory.getBigUint64(offset, true)));
    const limits = this.#numbers(Math.min(soft ?? 0, most), Math.min(hard ?? 0, most));
    this.#callOrThrow(PRLIMIT, 0, resource, limits);
  }

  /** Returns the name of the error of the last call. */
  error(): string {
    const at = this.#libc.symbols.__errno_location();
    const code = at === null ? 0 : new Deno.UnsafePointerView(at).getInt32();
    return ERRORS[code] ?? `error ${code}`;
  }

  [Symbol.dispose](): void {
    this.#libc.close();
  }

  #numbers(...numbers: readonly number[]): number {
    numbers.forEach((number, index) => this.#memory.setBigUint64(8 * index, BigInt(number), true));
    return this.#address;
  }

  #call(number: number, ...rest: readonly number[]): number {
    // Missing arguments must be 0, because the kernel always reads all registers.
    const [a = 0n, b = 0n, c = 0n, d = 0n, e = 0n] = rest.map(BigInt);
    return Number(this.#libc.symbols.syscall(BigInt(number), a, b, c, d, e));
  }

  #callOrThrow(number: number, ...rest: readonly number[]): number {
    const result = this.#call(number, ...rest);
    if (result >= 0) return result;
    throw new Error(`Landlock broke: call ${number} gave ${this.error()}`);
  }
}

function openLibc() {
  return Deno.dlopen("libc.so.6", {
    syscall: { parameters: ["i64", "i64", "i64", "i64", "i64", "i64"], result: "i64" },
    __errno_location: { parameters: [], result: "pointer" },
  });
}

/**
 * Runs PML inside the test's own process: the same command line, composition, files, sandbox and
 * servers as a separate process, with other variables, working folder and pipes.
 *
 * @module
 */

import { nextTick } from "node:process";
import { setImmediate } from "node:timers";
import { main } from "../../src/cli/cli.ts";
import {
  type CommandProcess,
  runIn,
  TYPING_PAUSES,
  type TypingPauses,
} from "../../src/cli/command_process.ts";
import { openStream, type Output } from "../../src/transport/stdio/_pipes.ts";
import type { HubProcess } from "../../hub/src/cli/hub_process.ts";
import { passThrough } from "./through_door.ts";

/**
 * Whether PML runs in the process of its test by default. Benchmarks measure a separate process.
 */
export const IN_PROCESS: boolean = Deno.mainModule.endsWith("_test.ts");

/** The capacity of a pipe of Linux in bytes. */
const PIPE_BYTES = 65_536;

/** A test types each answer after its question. Answers within 0.3 s would count only once. */
const SHORT_PAUSES: TypingPauses = { shown: 350, quiet: 50, word: 50 };

/** The members of a child process that the kit uses. */
export type Running =
  & Pick<Deno.ChildProcess, "stdin" | "stdout" | "stderr" | "status" | "kill">
  & Partial<Pick<Deno.ChildProcess, "pid">>;

/** Returns the id of a process. Throws if PML runs in the test's process. */
export function pidOf({ pid }: Pick<Running, "pid">): number {
  if (pid !== undefined) return pid;
  throw new Error("PML has no separate process here: pass `ownProcess: true`");
}

/** The options of a run. */
export interface InProcessOptions {
  /** The arguments of `pml`. */
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Whether questions on a terminal take the time that a user needs to see them; false by default. */
  readonly isUnhurried?: boolean;
}

/** Starts PML in this process. It supports only the signals that PML handles itself. */
export function startInProcess(options: InProcessOptions): Running {
  const parts = newParts();
  return runningOf(parts, runIn(processOf(options, parts), () => main(options.args)));
}

/**
 * Starts PML on a terminal in this process: `stdout` is its screen, and keys come at once. The
 * terminal has no width, shows no input, and sends no signals.
 */
export function startOnTerminalInProcess(options: InProcessOptions): Running {
  const parts = newParts();
  const own = processOf(options, parts);
  let isRaw = false;
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  const screen = {
    isTerminal: () => true,
    writeSync: (bytes: Uint8Array) => {
      const text = decoder.decode(bytes, { stream: true });
      parts.stdout.add(encoder.encode(isRaw ? text : text.replaceAll("\n", "\r\n")));
      return bytes.length;
    },
  };
  const onTerminal: CommandProcess = {
    ...own,
    stdin: {
      ...own.stdin,
      isTerminal: () => true,
      setRaw: (mode) => void (isRaw = mode),
    },
    ...{ stdout: screen, stderr: screen },
  };
  return runningOf(parts, runIn(onTerminal, () => main(options.args)));
}

/** The commands of a hub that need a separate process, because they use its working folder. */
const HUB_NEEDS_PROCESS: ReadonlySet<string> = new Set(["backup", "restore"]);

/** Returns whether a command of a hub can run in this process. */
export function canRunHub([first = ""]: readonly string[]): boolean {
  return IN_PROCESS && !HUB_NEEDS_PROCESS.has(first);
}

/** Starts a command of a hub in this process, without input. */
export function startHubInProcess({ args, cwd, env }: InProcessOptions): Running {
  const parts = newParts();
  const { stdout, stderr, signals } = parts;
  const own: HubProcess = {
    cwd,
    stdin: { isTerminal: () => false, read: () => Promise.resolve(null) },
    stdout: writerOf(stdout),
    stderr: writerOf(stderr),
    addSignalListener: (name, listener) => signals.add(name, listener),
    removeSignalListener: (name, listener) => signals.remove(name, listener),
    variable: (name) => env[name],
  };
  const running = async () => {
    // Only tests of hubs load it.
    const [hub, { runWith }] = await Promise.all([
      import("../../hub/src/cli/cli.ts"),
      import("../../hub/src/cli/hub_process.ts"),
    ]);
    return await runWith(own, () => hub.run(args));
  };
  return runningOf(parts, running());
}

function newParts(): Parts {
  return {
    stdin: new Pipe(),
    stdout: new Pipe(),
    stderr: new Pipe(),
    signals: new SignalListeners(),
  };
}

function runningOf({ stdin, stdout, stderr, signals }: Parts, code: Promise<number>): Running {
  const status = code.finally(async () => {
    stdout.close();
    stderr.close();
    await stdin.drop();
    signals.end();
  }).then((code) => ({ code, success: code === 0, signal: null }));
  return {
    stdin: stdin.writable as Running["stdin"],
    stdout: stdout.readable as Running["stdout"],
    stderr: stderr.readable as Running["stderr"],
    status,
    kill: (signal = "SIGTERM") => signals.send(signal),
  };
}

/**
 * Starts `pml serve` in this process, behind a client that writes each message from HTTP as a line.
 */
export function startBehindDoor(options: Omit<InProcessOptions, "args">): Running {
  const served = startInProcess({ ...options, args: ["serve", "--port", "0", "--json"] });
  const stdin = new Pipe();
  const stdout = new Pipe();
  const warnings: string[] = [];
  const passing = async () => {
    const reader = served.stdout.pipeThrough(new TextDecoderStream()).getReader();
    const { value: greeting = "" } = await reader.read();
    if (greeting !== "") {
      await passThrough({
        greeting,
        input: stdin.readable,
        write: (bytes) => stdout.add(bytes),
        warn: (text) => warnings.push(text),
      });
      served.kill("SIGTERM");
    }
    const status = await served.status;
    await reader.cancel();
    stdout.close();
    return status;
  };
  return {
    ...served,
    stdin: stdin.writable as Running["stdin"],
    stdout: stdout.readable as Running["stdout"],
    status: passing(),
  };
}

interface Parts {
  readonly stdin: Pipe;
  readonly stdout: Pipe;
  readonly stderr: Pipe;
  readonly signals: SignalListeners;
}

function processOf(
  { args, cwd, env, isUnhurried = false }: InProcessOptions,
  { stdin, stdout, stderr, signals }: Parts,
): CommandProcess {
  return {
    ...{ args, cwd, variables: env },
    stdin: { readable: stdin.readable, isTerminal: () => false, setRaw: () => {} },
    stdout: writerOf(stdout),
    stderr: writerOf(stderr),
    terminalFile: undefined,
    typingPauses: isUnhurried ? TYPING_PAUSES : SHORT_PAUSES,
    consoleSize: () => {
      throw new Deno.errors.NotSupported("no width");
    },
    pipes: {
      open: (take) => openStream(stdin.readable, inOneBuffer(take)),
      output: stdout,
      discardOutput: () => stdout.close(),
    },
    addSignalListener: (name, listener) => signals.add(name, listener),
    removeSignalListener: (name, listener) => signals.remove(name, listener),
    // A rejection without a handler fails the test.
    listenForRejections: () => ({ [Symbol.dispose]: () => {} }),
  };
}

function writerOf(pipe: Pipe): CommandProcess["stdout"] {
  return {
    isTerminal: () => false,
    writeSync: (bytes) => {
      pipe.add(bytes);
      return bytes.length;
    },
  };
}

/** Returns a receiver that gets all pieces in the same memory, as from a socket. */
function inOneBuffer(take: (piece: Uint8Array) => void): (piece: Uint8Array) => void {
  const buffer = new Uint8Array(PIPE_BYTES);
  return (piece) => {
    buffer.set(piece);
    take(buffer.subarray(0, piece.length));
  };
}

/** A pipe in memory with the same capacity as one of the system. */
class Pipe implements Output {
  readonly readable: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly writable: WritableStream<Uint8Array<ArrayBufferLike>>;
  #controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined;
  #hasRoom = Promise.withResolvers<void>();
  #isOpen = true;

  constructor() {
    this.readable = new ReadableStream({
      start: (controller) => void (this.#controller = controller),
      pull: () => this.#hasRoom.resolve(),
      cancel: () => this.#end(),
    }, { highWaterMark: PIPE_BYTES, size: ({ byteLength }) => byteLength });
    this.writable = new WritableStream({
      write: async (bytes) => {
        // Other work of the process gets its turn, as between two reads of a real pipe.
        await new Promise<void>((resolve) => setImmediate(resolve));
        await this.write(bytes);
      },
      close: () => this.close(),
    });
  }

  /** Adds bytes, beyond the capacity if needed. */
  add(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length && this.#isOpen; at += PIPE_BYTES) {
      this.#controller?.enqueue(bytes.slice(at, at + PIPE_BYTES));
    }
  }

  /** Writes bytes. Resolves when the pipe accepts more. */
  async write(bytes: Uint8Array): Promise<void> {
    if (!this.#isOpen) throw new Deno.errors.BrokenPipe("the pipe is closed");
    this.add(bytes);
    if ((this.#controller?.desiredSize ?? 0) > 0) return;
    this.#hasRoom = Promise.withResolvers();
    await this.#hasRoom.promise;
    if (!this.#isOpen) throw new Deno.errors.BrokenPipe("the pipe is closed");
  }

  /** Resolves when all work of this turn is done, as with the sockets of a process. */
  endOfTurn(): Promise<void> {
    return new Promise((resolve) => nextTick(resolve));
  }

  /** Ends the pipe. Waiting bytes can still be read. */
  close(): void {
    if (!this.#isOpen) return;
    this.#end();
    this.#controller?.close();
  }

  /** Ends the pipe on the side that reads. */
  async drop(): Promise<void> {
    if (this.#isOpen && !this.readable.locked) await this.readable.cancel();
    this.#end();
  }

  #end(): void {
    this.#isOpen = false;
    this.#hasRoom.resolve();
  }
}

/** The signal listeners of one PML. */
class SignalListeners {
  readonly #listeners = new Map<string, Set<() => void>>();
  /** The signal that arrived before its listener. */
  #early: Deno.Signal | undefined;
  #hasEnded = false;

  add(name: Deno.Signal, listener: () => void): void {
    const all = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, all.add(listener));
    if (this.#early === name) nextTick(listener);
  }

  remove(name: Deno.Signal, listener: () => void): void {
    this.#listeners.get(name)?.delete(listener);
  }

  /** Calls the listeners, now or when there are some. Throws if PML has ended. */
  send(name: Deno.Signal | number): void {
    if (name !== "SIGTERM" && name !== "SIGINT" && name !== "SIGHUP") {
      throw new Error(`${name} needs a process: pass \`ownProcess: true\``);
    }
    if (this.#hasEnded) throw new Deno.errors.NotFound("PML has ended");
    const all = [...this.#listeners.get(name) ?? []];
    if (all.length === 0) this.#early = name;
    for (const listener of all) nextTick(listener);
  }

  end(): void {
    this.#hasEnded = true;
  }
}

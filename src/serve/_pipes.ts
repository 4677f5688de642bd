/**
 * The client's two pipes. A socket over an open pipe is told when there is something to do, where
 * `Deno.stdin` and `Deno.stdout` wait in a thread for each piece, which takes three times as long.
 *
 * @module
 */

import { Socket, type SocketConstructorOpts } from "node:net";

/** Where messages come from. */
export interface Input {
  /** Settles when nothing more will come. */
  readonly over: Promise<void>;
  /** Reads nothing until it goes on. */
  pause(): void;
  /** Goes on. */
  resume(): void;
  /** Ends it: a pending read would keep the process. */
  close(): Promise<void>;
}

/** Where messages go to. */
export interface Output {
  /** Settles when the kernel has all of it. */
  write(bytes: Uint8Array): Promise<void>;
}

const PIECE = 1 << 16;

/** Reads the standard input; `take` is given each piece, in memory that the next one takes. */
export function openInput(take: (piece: Uint8Array) => void): Input {
  const { promise: over, resolve, reject } = Promise.withResolvers<void>();
  const onread = {
    // One memory for all: new ones are left behind faster than they are collected.
    buffer: new Uint8Array(PIECE),
    callback: (size: number, memory: Uint8Array) => {
      try {
        take(memory.subarray(0, size));
      } catch (error) {
        reject(error);
      }
      return true;
    },
  };
  const socket = socketOf({ fd: 0, readable: true, writable: false, onread });
  if (socket === undefined) return openFile(take);
  socket.on("error", reject).on("close", resolve).resume();
  return {
    over,
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    close: () => Promise.resolve(void socket.destroy()),
  };
}

/** Opens the standard output. */
export function openOutput(): Output {
  const socket = socketOf({ fd: 1, readable: false, writable: true });
  if (socket === undefined) {
    return {
      write: async (bytes) => {
        for (let at = 0; at < bytes.length;) at += await Deno.stdout.write(bytes.subarray(at));
      },
    };
  }
  // Each write tells of its own failure.
  socket.on("error", () => {});
  return {
    write: (bytes) =>
      new Promise((resolve, reject) =>
        socket.write(
          bytes,
          (error) => error ? reject(new Deno.errors.BrokenPipe(error.message)) : resolve(),
        )
      ),
  };
}

/** Opens the standard error where it is a pipe; it does not keep the process, whoever reads it. */
export function openErrors(): Socket | undefined {
  // Where nobody can read it any more there is nobody to tell.
  return socketOf({ fd: 2, readable: false, writable: true })?.on("error", () => {}).unref();
}

function socketOf(options: SocketConstructorOpts): Socket | undefined {
  try {
    return new Socket(options);
  } catch {
    return undefined; // a file or a terminal
  }
}

function openFile(take: (piece: Uint8Array) => void): Input {
  const reader = Deno.stdin.readable.getReader();
  const readAll = async () => {
    for (let next = await reader.read(); !next.done; next = await reader.read()) take(next.value);
  };
  // A file or a person has no more to ask than there is.
  return { over: readAll(), pause: () => {}, resume: () => {}, close: () => reader.cancel() };
}

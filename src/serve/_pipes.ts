/**
 * The client's two pipes. A socket over an open pipe is told when there is something to do, where
 * `Deno.stdin` and `Deno.stdout` wait in a thread for each piece, which takes three times as long.
 *
 * @module
 */

import { Socket } from "node:net";

/** Where messages come from. */
export interface Input {
  /** Hands on each piece as it comes; settles at the end. */
  read(take: (chunk: Uint8Array) => void): Promise<void>;
  /** Ends it: a pending read would keep the process. */
  close(): Promise<void>;
}

/** Where messages go to. */
export interface Output {
  /** Settles when the kernel has all of it. */
  write(bytes: Uint8Array): Promise<void>;
}

/** Opens the standard input. */
export function openInput(): Input {
  const socket = socketOf(0);
  if (socket !== undefined) {
    return {
      read: (take) => readAll(socket, take),
      close: () => Promise.resolve(void socket.destroy()),
    };
  }
  const reader = Deno.stdin.readable.getReader();
  return {
    read: async (take) => {
      for (let next = await reader.read(); !next.done; next = await reader.read()) take(next.value);
    },
    close: () => reader.cancel(),
  };
}

/** Opens the standard output. */
export function openOutput(): Output {
  const socket = socketOf(1);
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

/** A file or a terminal is no socket. */
function socketOf(fd: 0 | 1): Socket | undefined {
  try {
    return new Socket({ fd, readable: fd === 0, writable: fd === 1 });
  } catch {
    return undefined;
  }
}

function readAll(socket: Socket, take: (chunk: Uint8Array) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.on("error", reject).on("close", () => resolve()).on("data", (chunk) => {
      try {
        take(chunk);
      } catch (error) {
        reject(error);
      }
    });
  });
}

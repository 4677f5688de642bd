/**
 * The client's pipes as sockets. The system notifies a socket when it can read or write.
 *
 * @module
 */

import { Socket, type SocketConstructorOpts } from "node:net";
import type { Duplex } from "node:stream";
import { nextTick } from "node:process";
import type { Input, Output } from "./_pipes.ts";

const BUFFER_BYTES = 1 << 16;

/**
 * Opens standard input; undefined if it is no pipe. `take` receives each piece; the next piece
 * reuses its memory.
 */
export function openInput(take: (piece: Uint8Array) => void): Input | undefined {
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
  const onread = {
    // One buffer serves all pieces: new buffers would be allocated faster than they are collected.
    buffer: new Uint8Array(BUFFER_BYTES),
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
  if (socket === undefined) return undefined;
  socket.on("error", reject).on("close", resolve).resume();
  return inputOf(socket, { whenEnded: ended, close: () => void socket.destroy() });
}

/** Returns the input of a socket. */
export function inputOf(
  socket: Duplex,
  { whenEnded, close }: { readonly whenEnded: Promise<void>; readonly close: () => void },
): Input {
  return {
    whenEnded: whenEnded,
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    close: () => Promise.resolve(close()),
  };
}

/** Opens standard output; undefined if it is no pipe. */
export function openOutput(): Output | undefined {
  const socket = socketOf({ fd: 1, readable: false, writable: true });
  return socket && socketOutput(socket.on("error", () => {}));
}

/** Returns the output of a socket. Each write reports its own failure. */
export function socketOutput(socket: Duplex): Output {
  return {
    endOfTurn,
    write: (bytes) =>
      new Promise((resolve, reject) =>
        socket.write(
          bytes,
          (error) => error ? reject(new Deno.errors.BrokenPipe(error.message)) : resolve(),
        )
      ),
  };
}

/** Resolves after all work of the current turn. */
export function endOfTurn(): Promise<void> {
  return new Promise((resolve) => nextTick(resolve));
}

/** Opens standard error; undefined if it is no pipe. The socket does not keep the process alive. */
export function openErrors(): Socket | undefined {
  // If the other end is closed, the error cannot be reported.
  return socketOf({ fd: 2, readable: false, writable: true })?.on("error", () => {}).unref();
}

function socketOf(options: SocketConstructorOpts): Socket | undefined {
  // On Windows, the socket of a pipe delivers only the first piece, and no end.
  if (Deno.build.os === "windows") return undefined;
  try {
    return new Socket(options);
  } catch {
    return undefined; // a file or a terminal
  }
}

/**
 * The client's two pipes, as sockets. A socket is notified when it can read or write. `Deno.stdin`
 * and `Deno.stdout` wait in a thread for each piece, which takes three times as long.
 *
 * @module
 */

import { Socket, type SocketConstructorOpts } from "node:net";
import type { Duplex } from "node:stream";

/** The source of messages. */
export interface Input {
  /** Resolves when the input has ended. */
  readonly over: Promise<void>;
  /** Stops reading until `resume`. */
  pause(): void;
  /** Reads again. */
  resume(): void;
  /** Closes the input. Otherwise a pending read would keep the process alive. */
  close(): Promise<void>;
}

/** The destination of messages. */
export interface Output {
  /** Writes bytes. Resolves when the kernel has all of them. */
  write(bytes: Uint8Array): Promise<void>;
}

/** Where messages come from and go to. */
export interface Pipes {
  /** Opens the source. `take` gets each piece; the next piece may reuse its memory. */
  readonly open: (take: (piece: Uint8Array) => void) => Input;
  readonly output: Output;
  /** Gives up what cannot be written after the end. */
  readonly giveUp: () => void;
}

const PIECE = 1 << 16;
/** How long writing the last answers may take, in milliseconds. */
export const LAST_WRITE_MS = 1_500;

/** Returns standard input and standard output. */
export function standardPipes(): Pipes {
  // A write to a full pipe cannot be cancelled and would keep the process alive forever.
  const end = () => Deno.kill(Deno.pid, "SIGTERM");
  return {
    open: openInput,
    output: openOutput(),
    giveUp: () => Deno.unrefTimer(setTimeout(end, LAST_WRITE_MS)),
  };
}

/** Opens standard input. `take` gets each piece; the next piece reuses its memory. */
export function openInput(take: (piece: Uint8Array) => void): Input {
  const { promise: over, resolve, reject } = Promise.withResolvers<void>();
  const onread = {
    // One buffer for all pieces, because new ones would be allocated faster than they are
    // collected.
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
  if (socket === undefined) return openStream(Deno.stdin.readable, take);
  socket.on("error", reject).on("close", resolve).resume();
  return inputOf(socket, { over, close: () => void socket.destroy() });
}

/** Returns the input that a socket is. */
export function inputOf(
  socket: Duplex,
  { over, close }: { readonly over: Promise<void>; readonly close: () => void },
): Input {
  return {
    over,
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    close: () => Promise.resolve(close()),
  };
}

/** Opens standard output. */
export function openOutput(): Output {
  const socket = socketOf({ fd: 1, readable: false, writable: true });
  if (socket === undefined) {
    return {
      write: async (bytes) => {
        for (let at = 0; at < bytes.length;) at += await Deno.stdout.write(bytes.subarray(at));
      },
    };
  }
  return outputOf(socket.on("error", () => {}));
}

/** Returns what writes to a socket. Each write reports its own failure. */
export function outputOf(socket: Duplex): Output {
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

/**
 * Opens standard error if it is a pipe; undefined otherwise. It does not keep the process alive.
 */
export function openErrors(): Socket | undefined {
  // If nobody can read it any more, the error cannot be reported.
  return socketOf({ fd: 2, readable: false, writable: true })?.on("error", () => {}).unref();
}

function socketOf(options: SocketConstructorOpts): Socket | undefined {
  // There a socket delivers the first piece of a pipe, and neither the others nor the end.
  if (Deno.build.os === "windows") return undefined;
  try {
    return new Socket(options);
  } catch {
    return undefined; // a file or a terminal
  }
}

/** Returns the input that a stream is: a file, a terminal, or on Windows a pipe. */
export function openStream(
  stream: ReadableStream<Uint8Array>,
  take: (piece: Uint8Array) => void,
): Input {
  const reader = stream.getReader();
  let paused: PromiseWithResolvers<void> | undefined;
  const resume = () => {
    paused?.resolve();
    paused = undefined;
  };
  const readAll = async () => {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      take(next.value);
      await paused?.promise;
    }
  };
  return {
    over: readAll(),
    pause: () => void (paused ??= Promise.withResolvers()),
    resume,
    close: () => {
      resume();
      return reader.cancel();
    },
  };
}

/**
 * The client's two pipes. `Deno.stdin` and `Deno.stdout` block a thread for each piece, which takes
 * three times as long as a socket. Sockets are loaded after the first lists, because loading
 * `node:net` takes as long as the start of Deno.
 *
 * @module
 */

/** The source of messages. */
export interface Input {
  /** Resolves when the input has ended. */
  readonly whenEnded: Promise<void>;
  /** Stops reading until `resume`. */
  pause(): void;
  /** Continues reading. */
  resume(): void;
  /** Closes the input. An open read would keep the process alive. */
  close(): Promise<void>;
}

/** The destination of messages. */
export interface Output {
  /** Writes bytes. Resolves when the kernel has accepted all of them. */
  write(bytes: Uint8Array): Promise<void>;
  /** Resolves after all work of the current turn, so that one write contains all its messages. */
  endOfTurn?(): Promise<void>;
}

/** The input and the output of a client. */
export interface ClientPipes {
  /** Opens the input. `take` receives each piece; the next piece may reuse its memory. */
  readonly open: (take: (piece: Uint8Array) => void) => Input;
  readonly output: Output;
  /** Discards data that is still unwritten a while after the end, as `isUnwritten` states. */
  readonly discardOutput: (isUnwritten: () => boolean) => void;
  /** Loads sockets, and uses them for later pieces. */
  readonly useSockets?: () => Promise<void>;
}

/** How long writing the last answers may take, in milliseconds. */
export const LAST_WRITE_MS = 1_500;

/** Returns standard input and standard output. */
export function standardPipes(): ClientPipes {
  const output = new StandardOutput();
  let sockets: typeof import("./_sockets.ts") | undefined;
  // A write to a full pipe cannot be cancelled and would keep the process alive forever.
  const end = () => Deno.kill(Deno.pid, "SIGTERM");
  return {
    // A socket makes the pipe non-blocking. The write of a waiting thread would then fail.
    open: (take) =>
      openStream(Deno.stdin.readable, take, () => {
        if (output.isWaiting) return undefined;
        const input = sockets?.openInput(take);
        sockets = undefined;
        return input;
      }),
    output,
    discardOutput: (isUnwritten) =>
      Deno.unrefTimer(setTimeout(() => {
        // The end of servers may take longer than the last answers.
        if (isUnwritten()) end();
      }, LAST_WRITE_MS)),
    useSockets: async () => {
      sockets = await import("./_sockets.ts");
      output.use(sockets);
    },
  };
}

/** Writes to standard output, in a thread until a socket is available. */
class StandardOutput implements Output {
  #sockets: typeof import("./_sockets.ts") | undefined;
  #socket: Output | undefined;
  #waitingCount = 0;
  endOfTurn: Output["endOfTurn"];

  /** Whether a thread waits for the client to read. */
  get isWaiting(): boolean {
    return this.#waitingCount > 0;
  }

  /** Writes with a socket as soon as no thread waits, if standard output is a pipe. */
  use(sockets: typeof import("./_sockets.ts")): void {
    this.#sockets = sockets;
    this.endOfTurn = sockets.endOfTurn;
  }

  write(bytes: Uint8Array): Promise<void> {
    // On a pipe that a socket made non-blocking, the write of a thread that waits would fail.
    if (!this.isWaiting) {
      this.#socket ??= this.#sockets?.openOutput();
      this.#sockets = undefined;
    }
    return this.#socket?.write(bytes) ?? this.#writeInThread(bytes);
  }

  async #writeInThread(bytes: Uint8Array): Promise<void> {
    this.#waitingCount++;
    try {
      for (let offset = 0; offset < bytes.length;) {
        offset += await Deno.stdout.write(bytes.subarray(offset));
      }
    } finally {
      this.#waitingCount--;
    }
  }
}

/**
 * Returns the input of a stream: a file, a terminal, or a pipe on Windows. After each piece,
 * `openNext` may return another input, which replaces the stream from then on.
 */
export function openStream(
  stream: ReadableStream<Uint8Array>,
  take: (piece: Uint8Array) => void,
  openNext: () => Input | undefined = () => undefined,
): Input {
  const reader = stream.getReader();
  let paused: PromiseWithResolvers<void> | undefined;
  let isClosed = false;
  let replacement: Input | undefined;
  const resume = () => {
    paused?.resolve();
    paused = undefined;
    replacement?.resume();
  };
  const readAll = async () => {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      take(read.value);
      while (paused !== undefined) await paused.promise;
      replacement = isClosed ? undefined : openNext();
      if (replacement !== undefined) return await replacement.whenEnded;
    }
  };
  return {
    whenEnded: readAll(),
    pause: () =>
      replacement === undefined ? void (paused ??= Promise.withResolvers()) : replacement.pause(),
    resume,
    close: () => {
      isClosed = true;
      resume();
      return replacement === undefined ? reader.cancel() : replacement.close();
    },
  };
}

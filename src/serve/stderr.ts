/**
 * The log's way to stderr while a client is served: nobody may read it, and then nothing may wait.
 *
 * @module
 */

import type { Socket } from "node:net";
import { soon } from "../io/waiting.ts";
import { openErrors } from "./_pipes.ts";

/** How many bytes may wait to be read; lines that come then are dropped and counted. */
const WAITING_MAX = 1_000_000;
/** How long what is left may take at the end. */
const LAST_MS = 500;

/** Opens the way to stderr where that is a pipe; a file or a terminal is written to as it is. */
export function openStderr(): Stderr | undefined {
  const socket = openErrors();
  return socket && new Stderr(socket);
}

/** Lines on their way to who reads stderr. */
export class Stderr implements AsyncDisposable {
  readonly #socket: Pick<Socket, "write" | "writableLength">;
  #dropped = 0;

  /** Takes the pipe, which must not keep the process. */
  constructor(socket: Pick<Socket, "write" | "writableLength">) {
    this.#socket = socket;
  }

  /** Writes a line, or drops it where too much waits; never waits itself. */
  readonly write = (line: string): void => {
    // Not at once again: each gap is told.
    const max = this.#dropped > 0 ? WAITING_MAX / 2 : WAITING_MAX;
    if (this.#socket.writableLength > max) this.#dropped++;
    else this.#socket.write(`${this.#gap()}${line}\n`);
  };

  /** Waits a little for what is left. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#socket.write(this.#gap(), () => resolve());
    await soon(promise, LAST_MS);
  }

  #gap(): string {
    const count = this.#dropped;
    this.#dropped = 0;
    return count === 0 ? "" : `${count} lines were dropped here: nobody read them\n`;
  }
}

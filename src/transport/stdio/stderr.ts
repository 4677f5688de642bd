/**
 * Writes the log to stderr while a client is served. If nobody reads stderr, nothing may wait for
 * it.
 *
 * @module
 */

import type { Socket } from "node:net";
import { soon } from "../../io/waiting.ts";
import { openErrors } from "./_pipes.ts";

/** How many bytes may wait to be read. Later lines are dropped and counted. */
const WAITING_MAX = 1_000_000;
/** How long the last lines may take at the end, in milliseconds. */
const LAST_MS = 500;

/** Opens stderr if it is a pipe; undefined for a file or a terminal, which needs no such care. */
export function openStderr(): Stderr | undefined {
  const socket = openErrors();
  return socket && new Stderr(socket);
}

/** The lines that wait to be read from stderr. */
export class Stderr implements AsyncDisposable {
  readonly #socket: Pick<Socket, "write" | "writableLength">;
  #dropped = 0;

  /** Takes the pipe, which must not keep the process alive. */
  constructor(socket: Pick<Socket, "write" | "writableLength">) {
    this.#socket = socket;
  }

  /** Writes a line, or drops it if too much waits. Never waits itself. */
  readonly write = (line: string): void => {
    // After a drop, writing resumes later, because each gap is reported in a line of its own.
    const max = this.#dropped > 0 ? WAITING_MAX / 2 : WAITING_MAX;
    if (this.#socket.writableLength > max) this.#dropped++;
    else this.#socket.write(`${this.#gap()}${line}\n`);
  };

  /** Waits a short time for the last lines. */
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

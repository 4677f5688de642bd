/**
 * Writes the log to stderr while a client is served. If nobody reads stderr, nothing may wait for
 * it.
 *
 * @module
 */

import { soon } from "../../io/waiting.ts";

/** How many bytes may wait to be read. Later lines are dropped and counted. */
const WAITING_MAX = 1_000_000;
/** How long the last lines may take at the end, in milliseconds. */
const LAST_MS = 500;
/** How long the first lines wait, in milliseconds, so that the first lists do not wait for sockets. */
const FIRST_MS = 250;

/** Where lines are written. */
export interface Sink {
  /** How many bytes wait to be read. */
  readonly writableLength: number;
  write(text: string, done?: () => void): unknown;
}

/**
 * Opens stderr; undefined for a terminal, which needs no such care, and on Windows, which has no
 * sockets for pipes.
 */
export function openStderr(): Stderr | undefined {
  if (Deno.build.os === "windows" || Deno.stderr.isTerminal()) return undefined;
  const open = async () => (await import("./_sockets.ts")).openErrors() ?? FILE;
  return new Stderr(new LateSink(open, FIRST_MS));
}

/** Stderr that is a file. */
const FILE: Sink = {
  writableLength: 0,
  write: (text, done) => {
    Deno.stderr.writeSync(new TextEncoder().encode(text));
    done?.();
  },
};

/** Collects text until another sink is there, which the first text has opened after some time. */
export class LateSink implements Sink {
  readonly #open: () => Promise<Sink>;
  readonly #afterMs: number;
  readonly #isLast = Promise.withResolvers<void>();
  #text = "";
  #sink: Sink | undefined;
  #opening: Promise<Sink> | undefined;

  /** Takes the function that opens the sink; opens nothing yet. */
  constructor(open: () => Promise<Sink>, afterMs: number) {
    this.#open = open;
    this.#afterMs = afterMs;
  }

  get writableLength(): number {
    return this.#sink?.writableLength ?? this.#text.length;
  }

  /** Writes a text. With `done` it is the last one, and the sink is opened at once. */
  write(text: string, done?: () => void): void {
    if (this.#sink !== undefined) return void this.#sink.write(text, done);
    this.#text += text;
    if (this.#text === "") return done?.();
    this.#opening ??= this.#opened();
    if (done === undefined) return;
    this.#isLast.resolve();
    void this.#opening.then((sink) => sink.write("", done));
  }

  async #opened(): Promise<Sink> {
    await soon(this.#isLast.promise, this.#afterMs);
    const sink = await this.#open();
    sink.write(this.#text);
    return this.#sink = sink;
  }
}

/** The lines that wait to be read from stderr. */
export class Stderr implements AsyncDisposable {
  readonly #sink: Sink;
  #dropped = 0;

  /** Takes the pipe, which must not keep the process alive. */
  constructor(sink: Sink) {
    this.#sink = sink;
  }

  /** Writes a line, or drops it if too much waits. Never waits itself. */
  readonly write = (line: string): void => {
    // After a drop, writing resumes later, because each gap is reported in a line of its own.
    const max = this.#dropped > 0 ? WAITING_MAX / 2 : WAITING_MAX;
    if (this.#sink.writableLength > max) this.#dropped++;
    else this.#sink.write(`${this.#gap()}${line}\n`);
  };

  /** Waits a short time for the last lines. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#sink.write(this.#gap(), () => resolve());
    await soon(promise, LAST_MS);
  }

  #gap(): string {
    const count = this.#dropped;
    this.#dropped = 0;
    return count === 0 ? "" : `${count} lines were dropped here: stderr was not read\n`;
  }
}

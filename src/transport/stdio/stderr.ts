/**
 * Writes the log to stderr while PML serves a client. PML must not wait for stderr, because the client
 * may not read it.
 *
 * @module
 */

import { settlesWithin } from "../../io/waiting.ts";

/** The maximum number of bytes that wait. PML drops and counts further lines. */
const WAITING_MAX = 1_000_000;
/** How long writing the last lines may take at the end, in milliseconds. */
const LAST_WRITE_MS = 500;
/**
 * How long the first lines wait, in milliseconds, so that the first lists do not wait for sockets.
 */
const FIRST_WRITE_MS = 250;

/** The destination of lines. */
export interface Sink {
  /** The number of bytes that were not read yet. */
  readonly writableLength: number;
  write(text: string, done?: () => void): unknown;
}

/**
 * Opens stderr. Returns undefined for a terminal, where no buffering is needed, and on Windows,
 * where pipes have no sockets.
 */
export function openStderr(): Stderr | undefined {
  if (Deno.build.os === "windows" || Deno.stderr.isTerminal()) return undefined;
  const open = async () => (await import("./_sockets.ts")).openErrors() ?? FILE_SINK;
  return new Stderr(new LateSink(open, FIRST_WRITE_MS));
}

/** Stderr if it is a file. */
const FILE_SINK: Sink = {
  writableLength: 0,
  write: (text, done) => {
    Deno.stderr.writeSync(new TextEncoder().encode(text));
    done?.();
  },
};

/** Collects text until another sink is open. Opens that sink some time after the first text. */
export class LateSink implements Sink {
  readonly #open: () => Promise<Sink>;
  readonly #afterMs: number;
  readonly #isLast = Promise.withResolvers<void>();
  #text = "";
  #sink: Sink | undefined;
  #opening: Promise<Sink> | undefined;

  /** Creates a sink without opening it. */
  constructor(open: () => Promise<Sink>, afterMs: number) {
    this.#open = open;
    this.#afterMs = afterMs;
  }

  get writableLength(): number {
    return this.#sink?.writableLength ?? this.#text.length;
  }

  /** Writes a text. A text with `done` is the last text, and opens the other sink at once. */
  write(text: string, done?: () => void): void {
    if (this.#sink !== undefined) return void this.#sink.write(text, done);
    this.#text += text;
    if (this.#text === "") return done?.();
    this.#opening ??= this.#openSink();
    if (done === undefined) return;
    this.#isLast.resolve();
    void this.#opening.then((sink) => sink.write("", done));
  }

  async #openSink(): Promise<Sink> {
    await settlesWithin(this.#isLast.promise, this.#afterMs);
    const sink = await this.#open();
    sink.write(this.#text);
    return this.#sink = sink;
  }
}

/** The lines that wait to be read from stderr. */
export class Stderr implements AsyncDisposable {
  readonly #sink: Sink;
  #dropped = 0;

  /** Creates a log on a pipe, which must not keep the process alive. */
  constructor(sink: Sink) {
    this.#sink = sink;
  }

  /** Writes a line, or drops it if too many bytes wait. Never waits. */
  readonly write = (line: string): void => {
    // After a drop, writing resumes at half the limit, because each gap adds one more line.
    const max = this.#dropped > 0 ? WAITING_MAX / 2 : WAITING_MAX;
    if (this.#sink.writableLength > max) this.#dropped++;
    else this.#sink.write(`${this.#takeGapLine()}${line}\n`);
  };

  /** Waits a short time for the last lines. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#sink.write(this.#takeGapLine(), () => resolve());
    await settlesWithin(promise, LAST_WRITE_MS);
  }

  /** Returns the line that reports how many lines were dropped; "" if none. */
  #takeGapLine(): string {
    const count = this.#dropped;
    this.#dropped = 0;
    return count === 0 ? "" : `${count} lines were dropped here: stderr was not read\n`;
  }
}

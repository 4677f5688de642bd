/**
 * Functions over the broker, and `Deno.FsFile` made of them.
 *
 * @module
 */

import type { Asking } from "./asking.ts";

const STREAM_PIECE = 1 << 16;

// deno-lint-ignore no-explicit-any -- a module passes what it likes, and gets what Deno would give
export type Any = any;

/** Requests by the names of the functions that send them. */
export type Table = Readonly<Record<string, Brokered>>;

interface Brokered {
  /** The request, where it is not called like the function. */
  readonly op?: string;
  /** What is sent, from what the module passed; the same unless said. */
  readonly send?: (...given: Any[]) => unknown[];
  /** What the module gets, from what came back and what was sent; what came back unless said. */
  readonly give?: (value: Any, sent: Any[], given: Any[]) => unknown;
}

/** Makes each function of a table, and its twin that waits; `first` is sent before all else. */
export function brokered(
  asking: Asking,
  table: Table,
  ...first: readonly unknown[]
): Record<string, Any> {
  const functions: Record<string, Any> = {};
  for (const [name, { op = name, send, give = same }] of Object.entries(table)) {
    const sending = (given: Any[]) => [...first, ...(send?.(...given) ?? given)];
    functions[name] = async (...given: Any[]) => {
      for (const one of given) one?.signal instanceof AbortSignal && one.signal.throwIfAborted();
      const sent = sending(given);
      return give(await asking.later(op, sent), sent, given);
    };
    functions[`${name}Sync`] = (...given: Any[]) => {
      const sent = sending(given);
      return give(asking.now(op, sent), sent, given);
    };
  }
  return functions;
}

function same(value: unknown): unknown {
  return value;
}

const STEPS: Table = {
  read: { op: "file.read", send: (into) => [into.length], give: filled },
  write: { op: "file.write" },
  seek: { op: "file.seek" },
  stat: { op: "file.stat", give: infoOf },
  truncate: { op: "file.truncate" },
  sync: { op: "file.sync" },
  syncData: { op: "file.sync" },
};

/** An open file whose every step is done by the host thread. */
export class BrokeredFile {
  readonly [step: string]: Any;
  readonly #close: () => void;
  #readable: ReadableStream<Uint8Array> | undefined;
  #writable: WritableStream<Uint8Array> | undefined;
  #open = true;

  /** Wraps the number that the broker gave. */
  constructor(asking: Asking, number: number) {
    this.#close = () => asking.now("file.close", [number]);
    Object.assign(this, brokered(asking, STEPS, number));
  }

  /** Tells that this is no terminal. */
  isTerminal(): boolean {
    return false;
  }

  /** Closes the file. */
  close(): void {
    this.#open = false;
    this.#close();
  }

  /** Closes the file at the end of a block. */
  [Symbol.dispose](): void {
    if (this.#open) this.close();
  }

  /** The content as a stream, which closes the file at its end. */
  get readable(): ReadableStream<Uint8Array> {
    return this.#readable ??= new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        const piece = new Uint8Array(STREAM_PIECE);
        const length: number | null = await this.read(piece);
        if (length !== null) return controller.enqueue(piece.subarray(0, length));
        controller.close();
        this[Symbol.dispose]();
      },
      cancel: () => this[Symbol.dispose](),
    });
  }

  /** The file as a place to write a stream to, which closes the file at its end. */
  get writable(): WritableStream<Uint8Array> {
    return this.#writable ??= new WritableStream<Uint8Array>({
      write: async (chunk) => {
        for (let at = 0; at < chunk.length;) at += await this.write(chunk.subarray(at));
      },
      close: () => this[Symbol.dispose](),
      abort: () => this[Symbol.dispose](),
    });
  }
}

/** Rebuilds what `Deno.stat` gives: its times may have crossed as texts. */
export function infoOf(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [
      key,
      typeof one === "string" ? new Date(one) : one,
    ]),
  );
}

function filled(bytes: Uint8Array | null, _: unknown, [into]: Any[]): number | null {
  if (bytes) into.set(bytes.subarray(0, into.length));
  return bytes && bytes.length;
}

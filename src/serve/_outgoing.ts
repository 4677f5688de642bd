/**
 * What waits for the client: messages go out in turn, in pieces, and a client that reads nothing is
 * given up.
 *
 * @module
 */

import process from "node:process";
import { joined } from "../io/lines.ts";
import type { Output } from "./_pipes.ts";

/** Where messages go, and who is told of what. */
export interface OutgoingOptions {
  readonly output: Output;
  /** How long the client may read nothing. */
  readonly unreadMs: number;
  /** Told how much waits, when that changes. */
  readonly onSize: (size: number) => void;
  /** Told that the client has closed its end, or reads nothing. */
  readonly onGone: (why: unknown) => void;
}

/** A message that is not written to its end. */
interface Waiting {
  readonly bytes: Uint8Array;
  /** The id of the request that it answers, as JSON. */
  readonly answers: string | undefined;
}

/** How much is written at once; to a client that reads slowly so little that it can read it in time. */
const [PIECE, SLOW_PIECE] = [1 << 18, 1 << 12];
const SLOW_MS = 1_000;

/** The way of messages to the client. */
export class Outgoing {
  readonly #options: OutgoingOptions;
  readonly #encoder = new TextEncoder();
  readonly #queue: Waiting[] = [];
  /** How many messages are in the piece that is being written. */
  #going = 0;
  /** How much of the first message is written. */
  #at = 0;
  #size = 0;
  #most = PIECE;
  #writing: Promise<void> | undefined;

  /** Writes nothing yet. */
  constructor(options: OutgoingOptions) {
    this.#options = options;
  }

  /** How many bytes wait. */
  get size(): number {
    return this.#size;
  }

  /** The requests whose answers wait. */
  get answers(): readonly string[] {
    return this.#queue.flatMap(({ answers = [] }) => answers);
  }

  /** Writes a message when it is its turn; settles when nothing waits any more. */
  write(text: string, answers?: string): Promise<void> {
    const bytes = this.#encoder.encode(text);
    this.#queue.push({ bytes, answers });
    this.#count(bytes.length);
    return this.#writing ??= this.#flush();
  }

  /** Takes back an answer that nobody wants any more; one that was begun is written. */
  drop(request: string): void {
    const at = this.#queue.findIndex(({ answers }) => answers === request);
    if (at < this.#going) return;
    const [dropped] = this.#queue.splice(at, 1);
    this.#count(-(dropped?.bytes.length ?? 0));
  }

  #count(more: number): void {
    this.#size += more;
    this.#options.onSize(this.#size);
  }

  /** Writes what waits: all that one turn brought, and what came during a write. */
  async #flush(): Promise<void> {
    const { output, unreadMs, onGone } = this.#options;
    await new Promise<void>((resolve) => process.nextTick(resolve));
    while (this.#queue.length > 0) {
      const { piece, whole, at } = this.#next();
      const why = `The client does not read its answers: it read nothing for ${unreadMs} ms`;
      const late = setTimeout(() => onGone(new Error(why)), unreadMs);
      const since = performance.now();
      await output.write(piece).catch(onGone);
      clearTimeout(late);
      this.#most = performance.now() - since < SLOW_MS ? PIECE : SLOW_PIECE;
      this.#queue.splice(0, whole);
      this.#at = at;
      this.#going = 0;
      this.#count(-piece.length);
    }
    this.#writing = undefined;
  }

  /** Gives what is written next: messages as far as there is room, the last one perhaps in part. */
  #next(): { readonly piece: Uint8Array; readonly whole: number; readonly at: number } {
    const parts: Uint8Array[] = [];
    let [whole, at, left] = [0, this.#at, this.#most];
    for (const { bytes } of this.#queue) {
      const part = bytes.subarray(at, at + left);
      parts.push(part);
      at += part.length;
      left -= part.length;
      if (at < bytes.length) break;
      whole++;
      at = 0;
    }
    this.#going = parts.length;
    return { piece: joined(parts), whole, at };
  }
}

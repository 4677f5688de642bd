/**
 * Messages that wait for the client. They are written in order and in pieces. A client that reads
 * nothing is disconnected.
 *
 * @module
 */

import { durationText } from "../../core/amounts.ts";
import { inOneLine } from "../../core/json_text.ts";
import { Gathered } from "../../io/lines.ts";
import type { Output } from "./_pipes.ts";

/** The connection that sends the messages. */
export interface OutgoingOwner {
  /** Called with the number of waiting bytes when it changes. */
  waits(size: number): void;
  /** Called when the client closed its end or reads nothing. */
  giveUp(why: unknown): void;
}

/** A message that is not completely written. */
interface WaitingMessage {
  readonly bytes: Uint8Array;
  /** The id of the request that it answers, as JSON. */
  readonly answers: string | undefined;
}

/**
 * The sizes of pieces in bytes. A slow client gets smaller pieces, so that it can read one in time.
 */
const [PIECE, SLOW_PIECE] = [1 << 18, 1 << 12];
const SLOW_MS = 1_000;

/** Writes messages to the client. */
export class MessageWriter {
  readonly #output: Output;
  readonly #unreadMs: number;
  readonly #owner: OutgoingOwner;
  readonly #onGone = (why: unknown): void => this.#owner.giveUp(why);
  readonly #queue: WaitingMessage[] = [];
  /** The waiting bytes in contiguous memory, as far as they fit. */
  readonly #texts = new Gathered();
  /** The number of messages in the current piece. */
  #going = 0;
  /** The number of written bytes of the first message. */
  #at = 0;
  #size = 0;
  #most = PIECE;
  #writing: Promise<void> | undefined;
  /** The time at which the current write takes too long. */
  #due = Infinity;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Creates an empty queue. The client may read nothing for at most `unreadMs` milliseconds. */
  constructor(output: Output, unreadMs: number, owner: OutgoingOwner) {
    this.#output = output;
    this.#unreadMs = unreadMs;
    this.#owner = owner;
  }

  /** The number of waiting bytes. */
  get size(): number {
    return this.#size;
  }

  /** The ids of the requests whose answers wait. */
  get answers(): readonly string[] {
    return this.#queue.flatMap(({ answers = [] }) => answers);
  }

  /** Writes a JSON text as one line, after all earlier ones. Resolves when no message waits. */
  write(json: string, answers?: string): Promise<void> {
    const bytes = this.#texts.addText(`${inOneLine(json)}\n`);
    this.#queue.push({ bytes, answers });
    this.#count(bytes.length);
    return this.#writing ??= this.#flush();
  }

  /** Removes an answer that is no longer needed, unless writing it has started. */
  drop(request: string): void {
    const at = this.#queue.findIndex(({ answers }) => answers === request);
    if (at < this.#going) return;
    const [dropped] = this.#queue.splice(at, 1);
    this.#count(-(dropped?.bytes.length ?? 0));
  }

  #count(more: number): void {
    this.#size += more;
    this.#owner.waits(this.#size);
  }

  /** Writes all waiting messages, including those that are added during a write. */
  async #flush(): Promise<void> {
    await this.#output.turn?.();
    while (this.#queue.length > 0) {
      const piece = this.#next();
      const since = performance.now();
      this.#watch(since + this.#unreadMs);
      // guard: written-memory
      await this.#output.write(piece).catch(this.#onGone);
      this.#due = Infinity;
      this.#most = performance.now() - since < SLOW_MS ? PIECE : SLOW_PIECE;
      this.#written(piece.length);
    }
    this.#writing = undefined;
    this.#texts.clear();
  }

  /** Disconnects the client if a write is still active at this time. One timer checks all writes. */
  #watch(due: number): void {
    this.#due = due;
    this.#timer ??= setTimeout(() => {
      const silence = durationText(this.#unreadMs);
      const why = `The client does not read its answers: it read nothing for ${silence}`;
      this.#timer = undefined;
      if (this.#due <= performance.now()) this.#owner.giveUp(new Error(why));
      else if (this.#due < Infinity) this.#watch(this.#due);
    }, due - performance.now());
    Deno.unrefTimer(this.#timer);
  }

  /** Returns the next piece: the messages that are adjacent in memory, as far as they fit. */
  #next(): Uint8Array {
    const { buffer, byteOffset = 0 } = this.#queue[0]?.bytes ?? {};
    const from = byteOffset + this.#at;
    const most = from + this.#most;
    let end = byteOffset;
    for (const { bytes } of this.#queue) {
      // guard: memory-one
      if (bytes.buffer !== buffer || bytes.byteOffset !== end || end >= most) break;
      end += bytes.length;
      this.#going++;
    }
    return new Uint8Array(buffer ?? new ArrayBuffer(), from, Math.min(end, most) - from);
  }

  #written(count: number): void {
    this.#at += count;
    let first: WaitingMessage | undefined;
    while ((first = this.#queue[0]) && this.#at >= first.bytes.length) {
      this.#at -= first.bytes.length;
      this.#queue.shift();
    }
    this.#going = 0;
    this.#count(-count);
  }
}

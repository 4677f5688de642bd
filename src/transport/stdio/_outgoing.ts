/**
 * Messages that wait for the client. PML writes them in order and in pieces, and disconnects a client
 * that reads nothing.
 *
 * @module
 */

import { durationText } from "../../core/amounts.ts";
import { toOneLine } from "../../core/json_text.ts";
import { ByteBuffer } from "../../io/lines.ts";
import type { Output } from "./_pipes.ts";

/** The connection that sends the messages. */
export interface OutgoingOwner {
  /** Is called with the number of waiting bytes when it changes. */
  onWaiting(size: number): void;
  /** Is called when the client closed its end or reads nothing. */
  onClientGone(why: unknown): void;
}

/** A message that is not completely written. */
interface WaitingMessage {
  readonly bytes: Uint8Array;
  /** The id of the request that it answers, as JSON. */
  readonly answers: string | undefined;
}

/**
 * The sizes of pieces in bytes. A slow client gets smaller pieces, so that it can read a whole piece
 * in time.
 */
const [PIECE_BYTES, SLOW_PIECE_BYTES] = [1 << 18, 1 << 12];
/** A client that needs this time to read a piece is slow, in milliseconds. */
const SLOW_MS = 1_000;

/** Writes messages to the client. */
export class MessageWriter {
  readonly #output: Output;
  readonly #unreadMs: number;
  readonly #owner: OutgoingOwner;
  readonly #onGone = (why: unknown): void => this.#owner.onClientGone(why);
  readonly #queue: WaitingMessage[] = [];
  /** Stores the waiting bytes in contiguous memory where possible. */
  readonly #texts = new ByteBuffer();
  /** The number of messages in the current piece. */
  #pieceMessages = 0;
  /** The number of written bytes of the first message. */
  #writtenBytes = 0;
  #size = 0;
  #pieceBytes = PIECE_BYTES;
  #writing: Promise<void> | undefined;
  /** The time at which the current write takes too long, by `performance.now()`. */
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
  get answeredIds(): readonly string[] {
    return this.#queue.flatMap(({ answers = [] }) => answers);
  }

  /**
   * Writes a JSON text as one line, after all earlier messages. `answers` is the id of the request
   * that it answers, as JSON. Resolves when no message waits.
   */
  write(json: string, answers?: string): Promise<void> {
    const bytes = this.#texts.addText(`${toOneLine(json)}\n`);
    this.#queue.push({ bytes, answers });
    this.#addSize(bytes.length);
    return this.#writing ??= this.#flush();
  }

  /** Removes the answer to a cancelled request, unless PML has begun to write the answer. */
  drop(request: string): void {
    const index = this.#queue.findIndex(({ answers }) => answers === request);
    if (index < this.#pieceMessages) return;
    const [dropped] = this.#queue.splice(index, 1);
    this.#addSize(-(dropped?.bytes.length ?? 0));
  }

  #addSize(more: number): void {
    this.#size += more;
    this.#owner.onWaiting(this.#size);
  }

  /** Writes all waiting messages, including those that are added during a write. */
  async #flush(): Promise<void> {
    await this.#output.endOfTurn?.();
    while (this.#queue.length > 0) {
      const piece = this.#nextPiece();
      const since = performance.now();
      this.#watch(since + this.#unreadMs);
      // guard: written-memory
      await this.#output.write(piece).catch(this.#onGone);
      this.#due = Infinity;
      this.#pieceBytes = performance.now() - since < SLOW_MS ? PIECE_BYTES : SLOW_PIECE_BYTES;
      this.#removeWritten(piece.length);
    }
    this.#writing = undefined;
    this.#texts.clear();
  }

  /**
   * Disconnects the client if the current write has not ended at `due`. One timer checks all writes.
   */
  #watch(due: number): void {
    this.#due = due;
    this.#timer ??= setTimeout(() => {
      const silence = durationText(this.#unreadMs);
      const why = `The client does not read its answers: it read nothing for ${silence}`;
      this.#timer = undefined;
      if (this.#due <= performance.now()) this.#owner.onClientGone(new Error(why));
      else if (this.#due < Infinity) this.#watch(this.#due);
    }, due - performance.now());
    Deno.unrefTimer(this.#timer);
  }

  /** Returns the next piece: the messages that are adjacent in memory, as far as they fit. */
  #nextPiece(): Uint8Array {
    const { buffer, byteOffset = 0 } = this.#queue[0]?.bytes ?? {};
    const from = byteOffset + this.#writtenBytes;
    const limit = from + this.#pieceBytes;
    let end = byteOffset;
    for (const { bytes } of this.#queue) {
      // guard: memory-one
      if (bytes.buffer !== buffer || bytes.byteOffset !== end || end >= limit) break;
      end += bytes.length;
      this.#pieceMessages++;
    }
    return new Uint8Array(buffer ?? new ArrayBuffer(), from, Math.min(end, limit) - from);
  }

  #removeWritten(count: number): void {
    this.#writtenBytes += count;
    let first: WaitingMessage | undefined;
    while ((first = this.#queue[0]) && this.#writtenBytes >= first.bytes.length) {
      this.#writtenBytes -= first.bytes.length;
      this.#queue.shift();
    }
    this.#pieceMessages = 0;
    this.#addSize(-count);
  }
}

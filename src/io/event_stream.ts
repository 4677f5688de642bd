/**
 * Reads the bodies of HTTP answers: a stream of events, or JSON. The size of each message is
 * limited, and nothing is read before the caller takes it.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import type { WaitForMemory } from "./backlog.ts";
import { joinBytes } from "./lines.ts";

/** One event of a stream. */
export interface StreamEvent {
  /** The data of the event; empty if the event only sets a position in the stream. */
  readonly data: Uint8Array;
  /** The type of the event, if it has one and types are read. */
  readonly event: string | undefined;
  /** The position in the stream after this event (`id`), if the server sends one. */
  readonly id: string | undefined;
  /** The milliseconds that the server wants the client to wait before it reconnects. */
  readonly retry: number | undefined;
}

/** The longest message and the longest result, in bytes. */
export interface EventStreamLimits {
  readonly lineBytes: number;
  readonly resultBytes: number;
}

/** How a body is read. */
interface BodyReading {
  readonly limits: EventStreamLimits;
  readonly waitForMemory?: WaitForMemory | undefined;
}

/** Thrown if a message or a result is longer than allowed. */
export class TooLong extends Error {
  /** Which of the two limits was reached. */
  readonly of: "message" | "result";

  /** Takes the reason, and which limit was reached. */
  constructor(why: string, of: TooLong["of"]) {
    super(why);
    this.of = of;
  }
}

function checkLength(length: number, { lineBytes, resultBytes }: EventStreamLimits): void {
  if (length > lineBytes) throw new TooLong(`it sent a message over ${lineBytes} bytes`, "message");
  if (length > resultBytes) throw new TooLong(`it has more than ${resultBytes} bytes`, "result");
}

/** The content type of a stream of events. */
export const EVENTS_TYPE = "text/event-stream";
/** The content type of a single message. */
export const JSON_TYPE = "application/json";
/** The longest wait before a reconnection, even if the server wants a longer one. */
export const RETRY_MAX_MS = 30_000;
const [RETRY_MS, RETRY_MIN_MS] = [1_000, 50];
/** The maximum size of an error's text that is shown to the user, in bytes. */
const ERROR_BYTES = 64_000;

type ByteStream = ReadableStream<Uint8Array>;

const [LINE_END, CARRIAGE_RETURN, BLANK, COLON] = [10, 13, 32, 58];
/** The first letters of the fields other than `data`, and the first byte of a byte order mark. */
const [E, I, R, MARK] = [101, 105, 114, 0xef];
const DATA = new TextEncoder().encode("data");
const UTF_8 = new TextDecoder();
const NOTHING = new Uint8Array();
/** How many bytes are compared one by one before a native search, which is slow to begin. */
const NEAR_BYTES = 48;

/**
 * The number of bytes after which other work gets a turn. A call takes some twenty turns, so a
 * stream of short lines delays a call by the time for twenty times this size.
 */
const TURN_BYTES = 1 << 14;

/** How a stream of events is read. */
interface EventReading extends BodyReading {
  /** Whether the types of events are read. */
  readonly hasTypes?: boolean;
  readonly take: (event: StreamEvent) => void;
}

/** Reads a stream of events. */
export async function eachEvent(body: ByteStream | null, reading: EventReading): Promise<void> {
  const events = new EventReader(reading);
  if (body !== null) await eachChunk(body, { ...reading, take: (chunk) => events.push(chunk) });
}

/**
 * Reads a body chunk by chunk, with pauses. Without them, all data that has arrived would be read
 * in one turn of the event loop.
 */
async function eachChunk(
  body: ByteStream,
  { take, waitForMemory }: Pick<BodyReading, "waitForMemory"> & {
    /** Takes a chunk, and returns the number of bytes of the unfinished event or body so far. */
    readonly take: (chunk: Uint8Array) => number;
  },
): Promise<void> {
  let turnBytes = 0;
  try {
    // If the loop ends early, the stream is cancelled.
    for await (const chunk of body) {
      const size = take(chunk);
      turnBytes += chunk.length;
      if (turnBytes < TURN_BYTES) continue;
      turnBytes = 0;
      await new Promise<void>((resolve) => void setImmediate(resolve));
      await waitForMemory?.(body, size);
    }
  } finally {
    waitForMemory?.(body, 0);
  }
}

/**
 * Builds events from lines. A stream may have millions of lines, so no object is made for a line:
 * the data of an event is collected in one buffer.
 */
class EventReader {
  readonly #reading: EventReading;
  /** The parts of a line that has not ended. */
  #parts: Uint8Array[] = [];
  #length = 0;
  #memory: Uint8Array = NOTHING;
  /** The number of bytes of data in the buffer; negative before the first line of data. */
  #size = -1;
  #isFirst = true;
  /** Whether the last chunk ended with a CR: an LF at the start of the next chunk belongs to it. */
  #endsWithReturn = false;
  /** Whether the event has a line with a field other than `data`. */
  #hasFields = false;
  #event: string | undefined;
  #id: string | undefined;
  #retry: number | undefined;

  constructor(reading: EventReading) {
    this.#reading = reading;
  }

  /** Takes a piece of the stream. Returns how many bytes of the unfinished event have come. */
  push(chunk: Uint8Array): number {
    if (chunk.length === 0) return this.#length + this.#size;
    let from = this.#endsWithReturn && chunk[0] === LINE_END ? 1 : 0;
    this.#endsWithReturn = chunk.at(-1) === CARRIAGE_RETURN;
    const { length } = chunk;
    for (let feed = -1, cr = -1;;) {
      // The next byte is checked before a search, because there may be millions of empty lines.
      if (feed < from) feed = chunk[from] === LINE_END ? from : indexOf(chunk, LINE_END, from);
      if (cr < from) cr = chunk[from] === CARRIAGE_RETURN ? from : indexOfReturn(chunk, from);
      const end = feed < cr ? feed : cr;
      if (end === length) break;
      if (this.#length > 0) this.#endLine(chunk.subarray(from, end));
      else if (end > from) this.#line(chunk, from, end);
      else if (this.#size >= 0 || this.#hasFields) this.#endEvent();
      else this.#isFirst = false;
      from = end + (feed === cr + 1 ? 2 : 1);
    }
    this.#keepPart(chunk.subarray(from));
    return this.#length + this.#size;
  }

  #keepPart(part: Uint8Array): void {
    this.#length += part.length;
    checkLength(this.#length, this.#reading.limits);
    if (part.length > 0) this.#parts.push(part);
  }

  #endLine(part: Uint8Array): void {
    this.#keepPart(part);
    const line = joinBytes(this.#parts);
    this.#parts = [];
    this.#length = 0;
    this.#line(line, 0, line.length);
  }

  #line(bytes: Uint8Array, start: number, to: number): void {
    const from = this.#isFirst && bytes[start] === MARK ? start + 3 : start;
    this.#isFirst = false;
    if (to === from) return this.#endEvent();
    const first = bytes[from];
    if (isData(bytes, from, to)) {
      const at = from + DATA.length + 1;
      this.#add(bytes, bytes[at] === BLANK && at < to ? at + 1 : Math.min(at, to), to);
    } else if (first === I || first === R || first === E && this.#reading.hasTypes) {
      this.#setField(UTF_8.decode(bytes.subarray(from, to)));
    }
  }

  #setField(line: string): void {
    const [, field, value = ""] = /^(event|id|retry)(?:: ?(.*))?$/s.exec(line) ?? [];
    this.#hasFields = true;
    if (field === "event") this.#event = value || undefined;
    if (field === "id" && !value.includes("\0")) this.#id = value;
    if (field === "retry" && /^\d{1,9}$/.test(value)) this.#retry = Number(value);
  }

  #add(bytes: Uint8Array, from: number, to: number): void {
    const at = this.#size + 1;
    this.#size = at + to - from;
    checkLength(this.#size, this.#reading.limits);
    // Most events have one line, which is used without a copy.
    if (at === 0) {
      this.#memory = bytes.subarray(from, to);
      return;
    }
    if (this.#size > this.#memory.length) {
      const larger = new Uint8Array(2 * this.#size);
      larger.set(this.#memory.subarray(0, at - 1));
      this.#memory = larger;
    }
    this.#memory[at - 1] = LINE_END;
    if (from < to) this.#memory.set(bytes.subarray(from, to), at);
  }

  #endEvent(): void {
    const size = this.#size;
    const data = size === this.#memory.length ? this.#memory : this.#memory.subarray(0, size);
    this.#memory = NOTHING;
    this.#size = -1;
    if (!this.#hasFields) {
      if (size >= 0) {
        this.#reading.take({ data, event: undefined, id: undefined, retry: undefined });
      }
      return;
    }
    const event = this.#event;
    const id = this.#id;
    const retry = this.#retry;
    this.#hasFields = false;
    this.#event = this.#id = this.#retry = undefined;
    if (size < 0 && id === undefined && retry === undefined) return;
    this.#reading.take({ data: size < 0 ? NOTHING : data, event, id, retry });
  }
}

/**
 * Returns the index of a CR, or the length of `bytes`. Searches natively: most streams have none.
 */
function indexOfReturn(bytes: Uint8Array, from: number): number {
  const index = bytes.indexOf(CARRIAGE_RETURN, from);
  return index < 0 ? bytes.length : index;
}

/** Returns the index of a byte, or the length of `bytes` if it is not there. */
function indexOf(bytes: Uint8Array, byte: number, from: number): number {
  const near = Math.min(from + NEAR_BYTES, bytes.length);
  for (let at = from; at < near; at++) if (bytes[at] === byte) return at;
  const index = bytes.indexOf(byte, near);
  return index < 0 ? bytes.length : index;
}

function isData(bytes: Uint8Array, from: number, to: number): boolean {
  const end = from + DATA.length;
  if (to < end || to > end && bytes[end] !== COLON) return false;
  for (let at = 0; at < DATA.length; at++) if (bytes[from + at] !== DATA[at]) return false;
  return true;
}

/** Reads a whole body. */
export async function readBytes(
  body: ByteStream | null,
  { limits, waitForMemory }: BodyReading,
): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  const take = (chunk: Uint8Array) => {
    length += chunk.length;
    checkLength(length, limits);
    parts.push(chunk);
    return length;
  };
  if (body !== null) await eachChunk(body, { take, waitForMemory });
  return joinBytes(parts);
}

/** Reads the beginning of a text for the user, and cancels the stream. */
export async function readStart(body: ByteStream | null): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  try {
    for await (const chunk of body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      if (text.length > ERROR_BYTES) break;
    }
  } catch {
    // The text that came before the failure is used.
  }
  return text.slice(0, ERROR_BYTES);
}

/** Returns how long to wait before a reconnection to a stream, in milliseconds. */
export function retryDelay(retry = RETRY_MS): number {
  return Math.min(Math.max(retry, RETRY_MIN_MS), RETRY_MAX_MS);
}

/** Returns the content type of an answer. */
export function contentType({ headers }: Response): string {
  return (headers.get("content-type") ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

/** Reads a small body to its end and drops it, so that the connection can be used again. */
export async function drainBody({ body }: Response): Promise<void> {
  await readStart(body);
}

/**
 * Reads the bodies of answers: a stream of events, or JSON. Each message is bounded, and nothing is
 * read ahead of who takes it.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import type { Room } from "../io/backlog.ts";
import { joined } from "../io/lines.ts";

/** One event of a stream. */
export interface StreamEvent {
  /** What it carries; empty where it only marks a place. */
  readonly data: Uint8Array;
  /** The place in the stream after it, where the server keeps such. */
  readonly id: string | undefined;
  /** After how many milliseconds the server wants to be asked for the rest. */
  readonly retry: number | undefined;
}

/** The longest message, and the longest result, in bytes. */
export interface BodyLimits {
  readonly lineBytes: number;
  readonly resultBytes: number;
}

/** How a body is read. */
interface BodyReading {
  readonly limits: BodyLimits;
  readonly room?: Room | undefined;
}

/** What came is more than a message may be at all, or than a result may be. */
export class TooLong extends Error {
  readonly of: "message" | "result";

  /** Says what is too much. */
  constructor(why: string, of: TooLong["of"]) {
    super(why);
    this.of = of;
  }
}

function checkLength(length: number, { lineBytes, resultBytes }: BodyLimits): void {
  if (length > lineBytes) throw new TooLong(`it sent a message over ${lineBytes} bytes`, "message");
  if (length > resultBytes) throw new TooLong(`it has more than ${resultBytes} bytes`, "result");
}

/** The type of a stream of events. */
export const EVENTS_TYPE = "text/event-stream";
/** The type of a message of its own. */
export const JSON_TYPE = "application/json";
/** A server that wants to be asked later has to take this. */
export const RETRY_MAX_MS = 30_000;
const [RETRY_MS, RETRY_MIN_MS] = [1_000, 50];
/** The most bytes of an answer that only people look at. */
export const ERROR_BYTES = 64_000;

type Body = ReadableStream<Uint8Array>;

const [LINE_END, CARRIAGE_RETURN, BLANK, COLON, I, R] = [10, 13, 32, 58, 105, 114];
const DATA = new TextEncoder().encode("data");
const UTF_8 = new TextDecoder();
/** How many bytes are looked at one by one before the end of a line is searched for. */
const NEAR = 48;

/** After so many bytes others have a turn. */
const TURN = 1 << 17;

/** How a stream of events is read. */
interface EventReading extends BodyReading {
  readonly take: (event: StreamEvent) => void;
}

/** Reads a stream of events. */
export async function eachEvent(body: Body | null, reading: EventReading): Promise<void> {
  const events = new EventReader(reading);
  if (body !== null) await eachChunk(body, { ...reading, take: (chunk) => events.push(chunk) });
}

/** Reads a body chunk by chunk. What is there already would be read in one turn of the event loop. */
async function eachChunk(
  body: Body,
  { take, room }: Pick<BodyReading, "room"> & {
    /** Gives how much has come of what is not whole. */
    readonly take: (chunk: Uint8Array) => number;
  },
): Promise<void> {
  let taken = 0;
  try {
    // Leaving the loop cancels the rest.
    for await (const chunk of body) {
      const size = take(chunk);
      taken += chunk.length;
      if (taken < TURN) continue;
      taken = 0;
      await new Promise<void>((resolve) => void setImmediate(resolve));
      await room?.(body, size);
    }
  } finally {
    room?.(body, 0);
  }
}

/**
 * Puts lines together to events. A stream may have millions of lines, so none of them costs an
 * object: the data of an event is gathered in one memory.
 */
class EventReader {
  readonly #reading: EventReading;
  /** A line that has not ended. */
  #parts: Uint8Array[] = [];
  #length = 0;
  #memory: Uint8Array = new Uint8Array();
  /** How much of the memory is data; below nothing where there was no line of it. */
  #size = -1;
  #id: string | undefined;
  #retry: number | undefined;

  constructor(reading: EventReading) {
    this.#reading = reading;
  }

  /** Takes a piece of the stream; gives how much has come of an event that is not whole. */
  push(chunk: Uint8Array): number {
    let from = 0;
    for (let end = endOfLine(chunk, 0); end < chunk.length; end = endOfLine(chunk, from)) {
      if (this.#length === 0) this.#line(chunk, from, end);
      else this.#ended(chunk.subarray(from, end));
      from = end + 1;
    }
    this.#begin(chunk.subarray(from));
    return this.#length + this.#size;
  }

  #begin(part: Uint8Array): void {
    this.#length += part.length;
    checkLength(this.#length, this.#reading.limits);
    if (part.length > 0) this.#parts.push(part);
  }

  #ended(part: Uint8Array): void {
    this.#begin(part);
    const line = joined(this.#parts);
    this.#parts = [];
    this.#length = 0;
    this.#line(line, 0, line.length);
  }

  #line(bytes: Uint8Array, from: number, end: number): void {
    const to = end > from && bytes[end - 1] === CARRIAGE_RETURN ? end - 1 : end;
    if (to === from) return this.#completed();
    const first = bytes[from];
    if (isData(bytes, from, to)) {
      const at = from + DATA.length + 1;
      this.#add(bytes, bytes[at] === BLANK && at < to ? at + 1 : Math.min(at, to), to);
    } else if (first === I || first === R) this.#note(UTF_8.decode(bytes.subarray(from, to)));
  }

  #note(line: string): void {
    const [, field, value = ""] = /^(id|retry)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === "id" && !value.includes("\0")) this.#id = value;
    if (field === "retry" && /^\d{1,9}$/.test(value)) this.#retry = Number(value);
  }

  #add(bytes: Uint8Array, from: number, to: number): void {
    const at = this.#size + 1;
    this.#size = at + to - from;
    checkLength(this.#size, this.#reading.limits);
    // Most events have one line, which is taken as it is.
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

  #completed(): void {
    const [id, retry, size] = [this.#id, this.#retry, this.#size];
    if (size < 0 && id === undefined && retry === undefined) return;
    const data = this.#memory.subarray(0, Math.max(size, 0));
    this.#memory = new Uint8Array();
    this.#size = -1;
    this.#id = this.#retry = undefined;
    this.#reading.take({ data, id, retry });
  }
}

/** Finds the end of the line that begins there; the length where it does not end. */
function endOfLine(bytes: Uint8Array, from: number): number {
  const near = Math.min(from + NEAR, bytes.length);
  for (let at = from; at < near; at++) if (bytes[at] === LINE_END) return at;
  const end = bytes.indexOf(LINE_END, near);
  return end < 0 ? bytes.length : end;
}

function isData(bytes: Uint8Array, from: number, to: number): boolean {
  const end = from + DATA.length;
  if (to < end || to > end && bytes[end] !== COLON) return false;
  for (let at = 0; at < DATA.length; at++) if (bytes[from + at] !== DATA[at]) return false;
  return true;
}

/** Reads a whole body. */
export async function readBytes(
  body: Body | null,
  { limits, room }: BodyReading,
): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  const take = (chunk: Uint8Array) => {
    length += chunk.length;
    checkLength(length, limits);
    parts.push(chunk);
    return length;
  };
  if (body !== null) await eachChunk(body, { take, room });
  return joined(parts);
}

/** Reads the beginning of a text that only people look at, and gives the rest up. */
export async function readStart(body: Body | null, max: number): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  try {
    for await (const chunk of body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      if (text.length > max) break;
    }
  } catch {
    // What came till then is what there is.
  }
  return text.slice(0, max);
}

/** Tells how long to wait before a server is asked for the rest of a stream. */
export function waitOf(retry = RETRY_MS): number {
  return Math.min(Math.max(retry, RETRY_MIN_MS), RETRY_MAX_MS);
}

/** Gives the type of what an answer holds. */
export function typeOf({ headers }: Response): string {
  return (headers.get("content-type") ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

/** Reads the little that may be left, so that the connection can serve again. */
export async function leave({ body }: Response): Promise<void> {
  await readStart(body, ERROR_BYTES);
}

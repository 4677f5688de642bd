/**
 * Reads the bodies of answers: a stream of events, or JSON. Each message is bounded, and nothing is
 * read ahead of who takes it.
 *
 * @module
 */

import { joined, LineReader } from "../core/lines.ts";

/** One event of a stream. */
export interface StreamEvent {
  /** What it carries; empty where it only marks a place. */
  readonly data: string;
  /** The place in the stream after it, where the server keeps such. */
  readonly id: string | undefined;
  /** After how many milliseconds the server wants to be asked for the rest. */
  readonly retry: number | undefined;
}

/** A body, or one message of it, that is longer than it may be. */
export class TooLong extends Error {}

type Body = ReadableStream<Uint8Array>;

/** Reads a stream of events; none is longer than `max` bytes. */
export async function eachEvent(
  body: Body,
  { max, take }: { readonly max: number; readonly take: (event: StreamEvent) => void },
): Promise<void> {
  const lines = new LineReader(max);
  const decoder = new TextDecoder();
  const events = new EventReader(max);
  for await (const chunk of body) {
    for (const line of lines.push(chunk)) {
      if (line.kind === "too-long") throw new TooLong();
      const event = events.push(decoder.decode(line.bytes).replace(/\r$/, ""));
      if (event !== undefined) take(event);
    }
  }
}

/** Puts lines together to events. */
class EventReader {
  readonly #max: number;
  #data: string[] = [];
  #length = 0;
  #id: string | undefined;
  #retry: number | undefined;

  constructor(max: number) {
    this.#max = max;
  }

  /** Takes a line and gives the event that it completes. */
  push(line: string): StreamEvent | undefined {
    if (line === "") return this.#completed();
    const [field, value] = fieldOf(line);
    if (field === "data") {
      this.#length += value.length + 1;
      if (this.#length > this.#max) throw new TooLong();
      this.#data.push(value);
    } else if (field === "id" && !value.includes("\0")) this.#id = value;
    else if (field === "retry" && /^\d{1,9}$/.test(value)) this.#retry = Number(value);
    return undefined;
  }

  #completed(): StreamEvent {
    const event = { data: this.#data.join("\n"), id: this.#id, retry: this.#retry };
    this.#data = [];
    this.#length = 0;
    this.#id = this.#retry = undefined;
    return event;
  }
}

function fieldOf(line: string): readonly [string, string] {
  const colon = line.indexOf(":");
  if (colon < 0) return [line, ""];
  const from = line[colon + 1] === " " ? colon + 2 : colon + 1;
  return [line.slice(0, colon), line.slice(from)];
}

/** Reads a whole text of at most `max` bytes. */
export async function readText(body: Body | null, max: number): Promise<string> {
  const parts: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop cancels the rest.
  for await (const chunk of body ?? []) {
    length += chunk.length;
    if (length > max) throw new TooLong();
    parts.push(chunk);
  }
  return new TextDecoder().decode(joined(parts));
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

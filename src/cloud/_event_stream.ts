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
  let data: string[] = [];
  let [length, id, retry]: [number, string | undefined, number | undefined] = [
    0,
    undefined,
    undefined,
  ];
  for await (const chunk of body) {
    for (const line of lines.push(chunk)) {
      if (line.kind === "too-long") throw new TooLong();
      const text = decoder.decode(line.bytes).replace(/\r$/, "");
      if (text === "") {
        if (data.length > 0 || id !== undefined) take({ data: data.join("\n"), id, retry });
        [data, length, id, retry] = [[], 0, undefined, undefined];
        continue;
      }
      const [field, value] = fieldOf(text);
      if (field === "data") {
        length += value.length + 1;
        if (length > max) throw new TooLong();
        data.push(value);
      } else if (field === "id" && !value.includes("\0")) id = value;
      else if (field === "retry" && /^\d{1,9}$/.test(value)) retry = Number(value);
    }
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

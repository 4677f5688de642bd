/**
 * Reads lines from PML and writes frames to it.
 *
 * @module
 */

import { copyBytes } from "./handles.ts";

/** Up to this size, a frame is copied into one buffer, so that one write sends it. */
const COPIED_MAX = 1 << 16;

/** Reads stdin line by line. Releases the memory of each line. */
export async function* stdinLines(): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const chunk = new Uint8Array(1 << 16);
  let parts: string[] = [];
  for (;;) {
    const read = await Deno.stdin.read(chunk);
    if (read === null) return;
    const text = decoder.decode(chunk.subarray(0, read), { stream: true });
    const [end = "", ...startedLines] = text.split("\n");
    parts.push(end);
    for (const start of startedLines) {
      yield parts.join("");
      parts = [start];
    }
  }
}

/**
 * Writes one whole frame. JSON is a string, or bytes that the Worker transferred. Bytes of the type
 * `text` are not JSON; the frame contains their length.
 */
export type WriteFrame = (type: string, id: number, value: unknown) => void;

/**
 * Returns a function that writes frames. A frame begins with the nonce on a new line, so only this
 * thread can write frames.
 */
export function frameWriter(nonce: string): WriteFrame {
  const encoder = new TextEncoder();
  return (type, id, value) => {
    const bytes = value instanceof Uint8Array ? copyBytes(value) : encoder.encode(String(value));
    // A line break inside JSON would allow the Worker to begin a line.
    if (type !== "text") replaceBreaks(bytes);
    const head = encoder.encode(
      `\n${nonce}${type} ${id} ${type === "text" ? bytes.length + "\n" : ""}`,
    );
    if (bytes.length > COPIED_MAX) {
      writeAll(head);
      writeAll(bytes);
      return writeAll(encoder.encode("\n"));
    }
    const frame = new Uint8Array(head.length + bytes.length + 1);
    frame.set(head);
    frame.set(bytes, head.length);
    frame[frame.length - 1] = 10;
    writeAll(frame);
  };
}

function replaceBreaks(bytes: Uint8Array): void {
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at)) bytes[at] = 32;
}

function writeAll(bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
}

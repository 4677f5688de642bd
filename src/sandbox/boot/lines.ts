/**
 * Reads lines from PML and writes frames to it.
 *
 * @module
 */

import { copied } from "./handles.ts";

const LARGE = 1 << 16;

/** Reads stdin line by line. Releases the memory of each line. */
export async function* stdinLines(): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const chunk = new Uint8Array(1 << 16);
  let parts: string[] = [];
  for (;;) {
    const read = await Deno.stdin.read(chunk);
    if (read === null) return;
    const text = decoder.decode(chunk.subarray(0, read), { stream: true });
    const [end = "", ...begun] = text.split("\n");
    parts.push(end);
    for (const start of begun) {
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
 * Returns a function that writes frames. Each begins with the nonce on a new line, so only this
 * thread can write one.
 */
export function frameWriter(nonce: string): WriteFrame {
  const encoder = new TextEncoder();
  return (type, id, value) => {
    const bytes = value instanceof Uint8Array ? copied(value) : encoder.encode(String(value));
    // With a line break inside JSON, the Worker could begin its own line.
    if (type !== "text") withoutBreaks(bytes);
    const head = encoder.encode(
      `\n${nonce}${type} ${id} ${type === "text" ? bytes.length + "\n" : ""}`,
    );
    if (bytes.length > LARGE) {
      put(head);
      put(bytes);
      return put(encoder.encode("\n"));
    }
    const frame = new Uint8Array(head.length + bytes.length + 1);
    frame.set(head);
    frame.set(bytes, head.length);
    frame[frame.length - 1] = 10;
    put(frame);
  };
}

function withoutBreaks(bytes: Uint8Array): void {
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at)) bytes[at] = 32;
}

function put(bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
}

import assert from "node:assert/strict";
import { type ChildLine, ChildLineReader, parseFrame } from "./_wire.ts";

const NONCE = "n0nce-";
const TEXT = "one\ntwo\n\nn0nce-result 9 1\nlast";

/** A stream with a frame, noise, a text that looks like lines, and another frame. */
const STREAM = new TextEncoder().encode(
  `\n${NONCE}result 1 {"a":1}\nnoise ${NONCE}\n\n${NONCE}text 2 ${TEXT.length}\n${TEXT}\n` +
    `\n${NONCE}text 4 0\n\n\n${NONCE}text 5 8\ntext 5 1\n\n${NONCE}log 3 "x"\n`,
);

function read(pieces: readonly Uint8Array[]): string[] {
  const reader = new ChildLineReader(NONCE, 1_000);
  const lines: string[] = [];
  for (const piece of pieces) {
    // The memory of a chunk is reused.
    const memory = piece.slice();
    for (const line of reader.push(memory)) lines.push(told(line));
    memory.fill(0);
  }
  return lines.filter((one) => one !== "noise: ");
}

function told(line: ChildLine): string {
  if (line.kind === "noise") return `noise: ${line.text}`;
  const frame = parseFrame(line.bytes);
  return `${frame?.type} ${frame?.id} ${new TextDecoder().decode(frame?.json)}`;
}

const WHOLE = [
  'result 1 {"a":1}',
  `noise: noise ${NONCE}`,
  `text 2 ${TEXT}`,
  "text 4 ",
  "text 5 text 5 1",
  'log 3 "x"',
];

Deno.test("LineReader reads frames, noise and texts however the chunks are split", () => {
  assert.deepEqual(read([STREAM]), WHOLE);
  for (let at = 0; at <= STREAM.length; at++) {
    assert.deepEqual(read([STREAM.subarray(0, at), STREAM.subarray(at)]), WHOLE, `cut at ${at}`);
  }
  assert.deepEqual(read([...STREAM].map((byte) => new Uint8Array([byte]))), WHOLE);
});

Deno.test("LineReader refuses a length above the maximum of a line", () => {
  const reader = new ChildLineReader(NONCE, 1_000);
  const long = new TextEncoder().encode(`\n${NONCE}text 2 9999\n${"x".repeat(2_000)}`);
  assert.throws(() => [...reader.push(long)], RangeError);
});

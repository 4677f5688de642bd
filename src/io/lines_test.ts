import assert from "node:assert/strict";
import fc from "fast-check";
import { type Line, LineReader } from "./lines.ts";

function read(chunks: readonly Uint8Array[], max: number): readonly string[] {
  const reader = new LineReader(max);
  return chunks.flatMap((chunk) => textsIn(reader, chunk));
}

/** Returns the texts of the lines that a chunk completes. */
function textsIn(reader: LineReader, chunk: Uint8Array): readonly string[] {
  const texts: string[] = [];
  reader.push(chunk, (line) => texts.push(textOf(line)));
  return texts;
}

/** Reads a line as long as it is valid. */
function textOf(line: Line): string {
  return line.kind === "line" ? new TextDecoder().decode(line.bytes) : "TOO LONG";
}

Deno.test("LineReader returns the same lines wherever the stream is split", () => {
  fc.assert(fc.property(
    fc.array(fc.string({ unit: "binary", maxLength: 20 }).map((text) => text.replaceAll("\n", ""))),
    fc.array(fc.nat(400), { maxLength: 8 }),
    (lines, cuts) => {
      const bytes = new TextEncoder().encode(lines.map((line) => `${line}\n`).join(""));
      const at = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)).sort((a, b) => a - b)];
      const chunks = at.map((from, i) => bytes.subarray(from, at[i + 1] ?? bytes.length));
      assert.deepEqual(read(chunks, 1_000), read([bytes], 1_000));
      assert.equal(read([bytes], 1_000).length, lines.length);
    },
  ));
});

Deno.test("LineReader reports a long line once, at once, and continues with the next line", () => {
  const bytes = new TextEncoder().encode(`ok\n${"x".repeat(50)}\nnext\n`);
  const chunks = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
  assert.deepEqual(read(chunks, 10), ["ok", "TOO LONG", "next"]);
  assert.deepEqual(read([bytes], 10), ["ok", "TOO LONG", "next"]);
  assert.deepEqual(read([new TextEncoder().encode("x".repeat(11))], 10), ["TOO LONG"]);
  assert.deepEqual(read([new TextEncoder().encode(`${"x".repeat(10)}\n`)], 10), ["x".repeat(10)]);
});

Deno.test("LineReader copies kept bytes of a chunk whose memory is reused", () => {
  const reader = new LineReader(100);
  const memory = new Uint8Array(4);
  const lines = ["a\nbc", "de\nf", "gh\ni"].flatMap((text) => {
    new TextEncoder().encodeInto(text, memory);
    return textsIn(reader, memory);
  });
  assert.deepEqual(lines, ["a", "bcde", "fgh"]);
});

Deno.test("LineReaders that read alternately do not mix their lines", () => {
  const readers = Array.from({ length: 5 }, (_, at) => ({ at, reader: new LineReader(1 << 22) }));
  const wanted = (at: number, line: number) => `${at} ${line} `.repeat(9_000 * (line + 1) + at);
  const bytes = readers.map(({ at }) =>
    new TextEncoder().encode([0, 1, 2, 3].map((line) => `${wanted(at, line)}\n`).join(""))
  );
  const told = readers.map(() => [] as string[]);
  for (let from = 0; bytes.some(({ length }) => from < length); from += 40_000) {
    for (const { at, reader } of readers) {
      const chunk = bytes[at]?.slice(from, from + 40_000) ?? new Uint8Array();
      told[at]?.push(...textsIn(reader, chunk));
      // The reader may not keep the chunk's memory.
      chunk.fill(0);
    }
  }
  for (const [at, lines] of told.entries()) {
    assert.ok(lines.length === 4 && lines.every((line, which) => line === wanted(at, which)));
  }
});

Deno.test("LineReader keeps only the ends of a line over the limit, wherever it is split", () => {
  const long = `begin ${"x".repeat(5_000)} end`;
  const bytes = new TextEncoder().encode(`a\n${long}\n${"y".repeat(9_000)}\nb\n`);
  for (const step of [1, 7, 999, 1_000, 1_001, 2_000, bytes.length]) {
    const reader = new LineReader(8_000, 3_000);
    const messages: string[] = [];
    for (let from = 0; from < bytes.length; from += step) {
      reader.push(bytes.subarray(from, from + step), (line) => messages.push(toldOf(line)));
    }
    assert.deepEqual(messages, ["line", "5010 of 3000: beginend", "too-long", "line"], `${step}`);
  }
});

function toldOf(line: Line): string {
  if (line.kind !== "cut") return line.kind;
  const ends = new TextDecoder().decode(line.ends);
  assert.equal(ends.length, 2_000);
  return `${line.size} of ${line.max}: ${ends.slice(0, 5)}${ends.slice(-3)}`;
}

import assert from "node:assert/strict";
import fc from "fast-check";
import { eachEvent } from "./event_stream.ts";

/** The state of a reader after an event. */
interface Known {
  readonly data: string;
  readonly event: string;
  readonly last: string;
  readonly retry: number | undefined;
}

const LIMITS = { lineBytes: 1_000_000, resultBytes: 1_000_000 };
const FIELDS = ["data", "event", "id", "retry", "dat", "datax", "Data", "\u00e9", ""];
const VALUES = [
  "",
  "a",
  " a",
  "  b",
  ":",
  "7",
  "07",
  "-1",
  "1e3",
  "x\0y",
  "\u{1f600}",
  "\ufeff",
  "é",
];

const line = fc.oneof(
  fc.tuple(fc.constantFrom(...FIELDS), fc.constantFrom("", ":", ": "), fc.constantFrom(...VALUES))
    .map((parts) => parts.join("")),
  fc.constantFrom("", "", "data", "data:", "id", "id:", "event: message", "event: endpoint"),
  fc.constant(`data: ${"long ".repeat(30)}`),
);
const text = fc.array(
  fc.tuple(line, fc.constantFrom("\n", "\r", "\r\n", "\n\n", "\r\r", "\r\n\r\n")),
)
  .map((lines) => lines.flat().join(""));

Deno.test("a stream of events is read as WHATWG specifies, wherever it is split", async () => {
  const cuts = fc.array(fc.nat(400));
  await fc.assert(
    fc.asyncProperty(fc.boolean(), text, cuts, async (hasMark, written, at) => {
      const bytes = new TextEncoder().encode(`${hasMark ? "\ufeff" : ""}${written}`);
      assert.deepEqual(await read(cut(bytes, at)), plainReading(bytes));
      // Each byte is a chunk.
      assert.deepEqual(await read(cut(bytes, [...bytes.keys()])), plainReading(bytes));
    }),
    { numRuns: 400 },
  );
});

Deno.test("a line end in two chunks counts once, and the end of a chunk is not a line end", async () => {
  const known = { event: "", last: "", retry: undefined };
  for (
    const [chunks, data] of [
      [["data: a\r", "\ndata: b\r", "\n\r", "\n"], ["a\nb"]],
      [["data: a\r", "\r", "", "\ndata: b\n\n"], ["a", "b"]],
      [["data: a\r", "", "\n", "\r\n"], ["a"]],
      [["\ufeffdata: a", "\n\n"], ["a"]],
      [["data: a\n\nda", "ta: never"], ["a"]],
    ] as const
  ) {
    const bytes = chunks.map((chunk) => new TextEncoder().encode(chunk));
    assert.deepEqual(await read(bytes), data.map((one) => ({ ...known, data: one })));
  }
});

function cut(bytes: Uint8Array, at: readonly number[]): readonly Uint8Array[] {
  const places = [0, ...at.filter((place) => place < bytes.length), bytes.length];
  places.sort((one, other) => one - other);
  return places.slice(1).map((to, index) => bytes.slice(places[index], to));
}

async function read(chunks: readonly Uint8Array[]): Promise<readonly Known[]> {
  const events: Known[] = [];
  let last = "";
  let retry: number | undefined;
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  await eachEvent(ReadableStream.from(chunks) as ReadableStream<Uint8Array>, {
    limits: LIMITS,
    hasTypes: true,
    take: (one) => {
      last = one.id ?? last;
      retry = one.retry ?? retry;
      const data = decoder.decode(one.data);
      // Consumers ignore an event without data.
      if (data !== "") events.push({ data, event: typeOf(one.event), last, retry });
    },
  });
  return events;
}

/** Reads a stream line by line, as the standard words it. */
function plainReading(bytes: Uint8Array): readonly Known[] {
  const events: Known[] = [];
  let [data, event, last] = ["", "", ""];
  let retry: number | undefined;
  // The text after the last line end is not a line.
  const lines = new TextDecoder().decode(bytes).split(/\r\n|\n|\r/).slice(0, -1);
  for (const one of lines) {
    if (one === "") {
      const whole = data.replace(/\n$/, "");
      if (whole !== "") events.push({ data: whole, event: typeOf(event), last, retry });
      [data, event] = ["", ""];
      continue;
    }
    const [, field, value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(one) ?? [];
    if (field === "data") data += `${value}\n`;
    if (field === "event") event = value;
    if (field === "id" && !value.includes("\0")) last = value;
    if (field === "retry" && /^[0-9]+$/.test(value)) retry = Number(value);
  }
  return events;
}

function typeOf(event = ""): string {
  return event === "message" ? "" : event;
}

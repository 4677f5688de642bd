/**
 * Encodes spans for a collector as protobuf or JSON. The parts that many spans share are encoded
 * once.
 *
 * The official encoder needs an object for each span, and took 70% of the time of a traced call.
 * PML therefore uses it only in a test, which compares its output with the output of these
 * encoders.
 *
 * @module
 */

import { VERSION } from "../core/version.ts";
import { field, joinBytes, number, ProtobufWriter, utf8 } from "./protobuf_writer.ts";
import {
  HAS_PARENT,
  HAS_REMOTE_PARENT,
  ROW_BYTES,
  ROW_WORDS,
  SPAN_WORDS,
  type SpanBatch,
  TRACE_WORDS,
} from "./span_batch.ts";
import { type AttributeValue, cleanText, type SpanShape, type TextCleaner } from "./span_shapes.ts";

/** Encodes the spans of one PML. */
export interface SpanEncoder {
  /** Returns the body of a request. It is valid until the next call. */
  encode(batch: SpanBatch): Uint8Array<ArrayBuffer>;
}

/** The attributes of the process. */
type Resource = Readonly<Record<string, string>>;

const REQUEST = "jsonrpc.request.id";
const SCOPE = { name: "@casys/pml", version: VERSION };
/** The flags: the low 8 bits are the flags of W3C, and bit 9 means that the parent is remote. */
const [LOCAL, REMOTE] = [0x101, 0x301];

/** The texts of the spans of a batch, without secrets. */
class CleanTexts {
  readonly #batch: SpanBatch;
  readonly #cleaner: TextCleaner;
  readonly #states = new Map<string, string>();

  constructor(batch: SpanBatch, cleaner: TextCleaner) {
    this.#batch = batch;
    this.#cleaner = cleaner;
  }

  /**
   * Returns the id of a request if it is not a number. Secrets are removed, because a client may
   * use any text as an id.
   */
  idOf(at: number): string | undefined {
    const id = this.#batch.textsOf(at)?.id;
    return id?.startsWith('"') ? cleanText(id, this.#cleaner) : id;
  }

  /** Returns the `tracestate`; empty if there is none. */
  stateOf(at: number): string {
    const state = this.#batch.textsOf(at)?.state;
    if (state === undefined) return "";
    const cached = this.#states.get(state);
    if (cached !== undefined) return cached;
    const cleaned = this.#cleanState(state);
    this.#states.set(state, cleaned);
    return cleaned;
  }

  /** Removes each member with a secret as a whole: programs would read a placeholder as a value. */
  #cleanState(state: string): string {
    const isClean = (text: string) => this.#cleaner.redact(text) === text;
    // guard: trace-state
    if (!isClean(state)) {
      const members = state.split(",").filter(isClean).join(",");
      return isClean(members) ? members : "";
    }
    return state;
  }
}

/** Writes the JSON of OTLP. */
export class JsonSpanEncoder implements SpanEncoder {
  readonly #cleaner: TextCleaner;
  readonly #begin: string;

  /** Takes the attributes of the process. */
  constructor(resource: Resource, cleaner: TextCleaner) {
    this.#cleaner = cleaner;
    const scope = JSON.stringify(SCOPE);
    this.#begin = `{"resourceSpans":[{"resource":{"attributes":[${attributesText(resource)}]},` +
      `"scopeSpans":[{"scope":${scope},"spans":[`;
  }

  encode(batch: SpanBatch): Uint8Array<ArrayBuffer> {
    return utf8(this.#text(batch));
  }

  #text(batch: SpanBatch): string {
    if (batch.size === 0) return '{"resourceSpans":[]}';
    const { flags, times, requests, shapeAt } = batch;
    const texts = new CleanTexts(batch, this.#cleaner);
    const shapes = batch.shapes.map((shape) => shapeTexts(shape, this.#cleaner));
    const ids = batch.ids.subarray(0, batch.size * ROW_BYTES).toHex();
    let text = this.#begin;
    for (let at = 0; at < batch.size; at++) {
      const from = 2 * ROW_BYTES * at;
      const shape = shapes[shapeAt[at] as number] as ShapeTexts;
      const state = texts.stateOf(at);
      const request = requests[at] as number;
      const id = request < 0 ? texts.idOf(at) : `${request}`;
      text += `${at > 0 ? "," : ""}{"traceId":"${ids.slice(from, from + 32)}",` +
        `"spanId":"${ids.slice(from + 32, from + 48)}",` +
        ((flags[at] as number) & HAS_PARENT
          ? `"parentSpanId":"${ids.slice(from + 48, from + 64)}",`
          : "") +
        (state === "" ? "" : `"traceState":${JSON.stringify(state)},`) +
        `"flags":${(flags[at] as number) & HAS_REMOTE_PARENT ? REMOTE : LOCAL},${shape.head}` +
        `"startTimeUnixNano":"${nanosecondsOf(times[2 * at] as number)}",` +
        `"endTimeUnixNano":"${nanosecondsOf(times[2 * at + 1] as number)}",` +
        `"attributes":[${shape.attributes}` +
        (id === undefined ? "" : `,${attributeText(REQUEST, id)}`) + `]${shape.tail}}`;
    }
    return `${text}]}]}]}`;
  }
}

/** The texts of a shape. */
interface ShapeTexts {
  /** The members before the times. */
  readonly head: string;
  /** The attributes, without brackets. */
  readonly attributes: string;
  /** The members after the attributes. */
  readonly tail: string;
}

function shapeTexts(shape: SpanShape, cleaner: TextCleaner): ShapeTexts {
  return {
    head: `"name":${JSON.stringify(shape.name(cleaner))},"kind":${shape.facts.kind + 1},`,
    attributes: attributesText(shape.attributes(cleaner)),
    tail: shape.error === undefined ? "" : ',"status":{"code":2}',
  };
}

function attributesText(attributes: Readonly<Record<string, AttributeValue>>): string {
  return Object.entries(attributes).map(([key, value]) => attributeText(key, value)).join(",");
}

function attributeText(key: string, value: AttributeValue): string {
  const typed = typeof value === "number"
    ? `{"intValue":${value}}`
    : `{"stringValue":${JSON.stringify(value)}}`;
  return `{"key":${JSON.stringify(key)},"value":${typed}}`;
}

/** When the process began, in milliseconds since 1970. Reading it for each span would be slow. */
const { timeOrigin } = performance;

/** Returns a time of `performance.now()` in seconds since 1970, rounded down. */
function secondsOf(at: number): number {
  return Math.floor((timeOrigin + at) / 1_000);
}

/** Returns the nanoseconds after the seconds. */
function nanosecondsAfter(seconds: number, at: number): number {
  return Math.floor((timeOrigin + at - seconds * 1_000) * 1_000_000);
}

/** Returns a time of `performance.now()` in seconds since 1970, and the nanoseconds after them. */
export function timeOf(at: number): readonly [number, number] {
  const seconds = secondsOf(at);
  return [seconds, nanosecondsAfter(seconds, at)];
}

function nanosecondsOf(at: number): string {
  const [seconds, nanoseconds] = timeOf(at);
  return `${seconds}${`${nanoseconds}`.padStart(9, "0")}`;
}

/** The protobuf tags of a span's fields. */
const TAG = {
  traceId: 0x0a,
  spanId: 0x12,
  traceState: 0x1a,
  parentSpanId: 0x22,
  name: 0x2a,
  kind: 0x30,
  start: 0x39,
  end: 0x41,
  attributes: 0x4a,
} as const;
/** The numbers of attributes, events and links that were left out: none. */
const DROPPED = [0x50, 0, 0x60, 0, 0x70, 0];
const STATUS = [0x7a, 2, 0x18];
const FLAGS = [0x85, 0x01];
/** The length of the field of the id of a parent, and of the ids that each span has, in bytes. */
const PARENT_BYTES = 2 + 4 * SPAN_WORDS;
const FIXED_BYTES = 2 + 4 * TRACE_WORDS + 2 + 4 * SPAN_WORDS;
/** The length of the field of a time, in bytes. */
const TIME_BYTES = 9;
/** The maximum number of bytes of a tag and a length. */
const LENGTH_BYTES = 10;
const NONE = new Uint8Array(0);

/** Writes the protobuf of OTLP. */
export class ProtobufSpanEncoder implements SpanEncoder {
  readonly #cleaner: TextCleaner;
  readonly #resource: Uint8Array;
  readonly #scope: Uint8Array;
  readonly #out = new ProtobufWriter();

  /** Takes the attributes of the process. */
  constructor(resource: Resource, cleaner: TextCleaner) {
    this.#cleaner = cleaner;
    const attributes = Object.entries(resource).map(([key, value]) =>
      field(0x0a, attributeBytes(key, value))
    );
    this.#resource = field(0x0a, ...attributes, number(0x10, 0));
    const { name, version } = SCOPE;
    this.#scope = field(0x0a, field(0x0a, utf8(name)), field(0x12, utf8(version)));
  }

  encode(batch: SpanBatch): Uint8Array<ArrayBuffer> {
    if (batch.size === 0) return new Uint8Array(0);
    const out = this.#out;
    const shapes = batch.shapes.map((shape) => new ShapeBytes(shape, this.#cleaner));
    const texts = new CleanTexts(batch, this.#cleaner);
    // The headers precede the spans, but contain their total length, so they are written last.
    const start = this.#resource.length + this.#scope.length + 2 * LENGTH_BYTES;
    out.moveTo(start);
    for (let at = 0; at < batch.size; at++) {
      this.#write(batch, at, { shape: shapes[batch.shapeAt[at] as number] as ShapeBytes, texts });
    }
    const length = out.length - start;
    const scopeSpans = joinBytes(number(0x12, this.#scope.length + length), this.#scope);
    const all = this.#resource.length + scopeSpans.length + length;
    return out.prepend(start, joinBytes(number(0x0a, all), this.#resource, scopeSpans));
  }

  #write(
    { words, flags, times, requests }: SpanBatch,
    at: number,
    { shape, texts }: { readonly shape: ShapeBytes; readonly texts: CleanTexts },
  ): void {
    const hasParent = ((flags[at] as number) & HAS_PARENT) !== 0;
    const isRemote = ((flags[at] as number) & HAS_REMOTE_PARENT) !== 0;
    const request = requests[at] as number;
    const digits = request < 0 ? 0 : digitsOf(request);
    const stateText = texts.stateOf(at);
    const state = stateText === "" ? NONE : field(TAG.traceState, utf8(stateText));
    const idText = request < 0 ? texts.idOf(at) : undefined;
    const id = idText === undefined ? NONE : field(TAG.attributes, attributeBytes(REQUEST, idText));
    const length = FIXED_BYTES + (hasParent ? PARENT_BYTES : 0) + state.length + shape.length +
      (digits === 0 ? id.length : REQUEST_NUMBER_BYTES + digits);
    const out = this.#out;
    out.ensure(length + LENGTH_BYTES);
    out.byte(0x12);
    out.varint(length);
    const row = at * ROW_WORDS;
    out.words(TAG.traceId, words, { at: row, length: TRACE_WORDS });
    out.words(TAG.spanId, words, { at: row + TRACE_WORDS, length: SPAN_WORDS });
    if (state.length > 0) out.bytes(state);
    if (hasParent) {
      out.words(TAG.parentSpanId, words, {
        at: row + TRACE_WORDS + SPAN_WORDS,
        length: SPAN_WORDS,
      });
    }
    const body = out.length;
    out.bytes(digits > 0 ? shape.bodyWithNumber : shape.body);
    this.#writeTime(body + shape.startAt, times[2 * at] as number);
    this.#writeTime(body + shape.startAt + TIME_BYTES, times[2 * at + 1] as number);
    if (digits > 0) this.#writeNumber(request, digits);
    else if (id.length > 0) out.bytes(id);
    out.bytes(isRemote ? shape.remoteTail : shape.tail);
  }

  #writeTime(at: number, time: number): void {
    const seconds = secondsOf(time);
    this.#out.nanoseconds(at, seconds, nanosecondsAfter(seconds, time));
  }

  /**
   * Completes the attribute of a numeric id. Each length in it is less than 128, so it is one byte.
   */
  #writeNumber(id: number, digits: number): void {
    const out = this.#out;
    const end = out.length;
    out.set(end - REQUEST_NUMBER_BYTES + 1, REQUEST_NUMBER_BYTES - 2 + digits);
    out.set(end - 3, digits + 2);
    out.set(end - 1, digits);
    out.digits(id, digits);
  }
}

/** The bytes of a shape. Those that differ between spans are zero. */
class ShapeBytes {
  /** The fields from the name to the attributes, without the id of the request. */
  readonly body: Uint8Array;
  /** The same, with the beginning of the attribute of an id that is a number. */
  readonly bodyWithNumber: Uint8Array;
  /** Where the start time is in `body`. The end time is `TIME_BYTES` after it. */
  readonly startAt: number;
  /** The fields after the attributes. */
  readonly tail: Uint8Array;
  /** The fields after the attributes of a span whose parent is a span of the client. */
  readonly remoteTail: Uint8Array;
  /** The length of `body` and `tail`. */
  readonly length: number;

  constructor(shape: SpanShape, cleaner: TextCleaner) {
    const name = field(TAG.name, utf8(shape.name(cleaner)));
    const kind = number(TAG.kind, shape.facts.kind + 1);
    const [start, end] = [time(TAG.start), time(TAG.end)];
    const attributes = Object.entries(shape.attributes(cleaner)).map(([key, value]) =>
      field(TAG.attributes, attributeBytes(key, value))
    );
    this.body = joinBytes(name, kind, start, end, ...attributes);
    this.bodyWithNumber = joinBytes(this.body, REQUEST_NUMBER);
    this.startAt = name.length + kind.length + 1;
    const status = [...DROPPED, ...STATUS, shape.error === undefined ? 0 : 2, ...FLAGS];
    this.tail = Uint8Array.from([...status, LOCAL & 0xff, LOCAL >> 8, 0, 0]);
    this.remoteTail = Uint8Array.from([...status, REMOTE & 0xff, REMOTE >> 8, 0, 0]);
    this.length = this.body.length + this.tail.length;
  }
}

/** Returns the field of a time that is zero. */
function time(tag: number): Uint8Array {
  const bytes = new Uint8Array(TIME_BYTES);
  bytes[0] = tag;
  return bytes;
}

/** Returns the key and the value of an attribute. */
function attributeBytes(key: string, value: AttributeValue): Uint8Array {
  const typed = typeof value === "number" ? number(0x18, value) : field(0x0a, utf8(value));
  return joinBytes(field(0x0a, utf8(key)), field(0x12, typed));
}

/** The attribute of an id that is a number, without its digits and its lengths. */
const REQUEST_NUMBER = joinBytes(
  Uint8Array.of(TAG.attributes, 0),
  field(0x0a, utf8(REQUEST)),
  Uint8Array.of(0x12, 0, 0x0a, 0),
);
const REQUEST_NUMBER_BYTES = REQUEST_NUMBER.length;

function digitsOf(id: number): number {
  let digits = 1;
  for (let most = 10; most <= id; most *= 10) digits++;
  return digits;
}

/**
 * Ended spans that wait until they are sent, as numbers in typed arrays. An object for each span
 * would survive several garbage collections, which took more time than recording the span.
 *
 * @module
 */

import type { SpanShape } from "./span_shapes.ts";
import type { Span } from "./spans.ts";

/** The number of 32-bit words in the id of a trace, and in the id of a span. */
export const [TRACE_WORDS, SPAN_WORDS] = [4, 2];
/** The number of words for one span: the ids of its trace, itself and its parent. */
export const ROW_WORDS: number = TRACE_WORDS + 2 * SPAN_WORDS;
/** The number of bytes for the ids of one span. */
export const ROW_BYTES: number = 4 * ROW_WORDS;
/** The flags of a span: it has a parent, and its parent is a span of the client. */
export const [HAS_PARENT, HAS_REMOTE_PARENT] = [1, 2];

/** Texts that few spans have. */
export interface SpanTexts {
  /** The id of the request as JSON, if it is not a number. */
  readonly id: string | undefined;
  /** The `tracestate`. */
  readonly state: string | undefined;
}

/** A limited number of ended spans, in the order of their ends. */
export class SpanBatch {
  /** The number of spans. */
  size = 0;
  /** The shapes of the spans. */
  readonly shapes: SpanShape[] = [];
  /** The index in `shapes` of each span's shape. */
  readonly shapeAt: Uint16Array<ArrayBuffer>;
  /** The ids of each span: `ROW_WORDS` words. */
  readonly words: Uint32Array<ArrayBuffer>;
  /** The same as bytes. */
  readonly ids: Uint8Array<ArrayBuffer>;
  /** When each span began and ended, in `performance.now()`. */
  readonly times: Float64Array<ArrayBuffer>;
  /** The id of each request if it is a number; -1 without one. */
  readonly requests: Float64Array<ArrayBuffer>;
  readonly flags: Uint8Array<ArrayBuffer>;
  readonly #texts = new Map<number, SpanTexts>();
  readonly #max: number;
  /** Identifies the batch until it is cleared. A new object makes the indexes of shapes invalid. */
  #identity = {};

  /** Takes the maximum number of spans, at most 65,536. */
  constructor(max: number) {
    this.#max = max;
    this.words = new Uint32Array(ROW_WORDS * max);
    this.ids = new Uint8Array(this.words.buffer);
    this.times = new Float64Array(2 * max);
    this.requests = new Float64Array(max);
    this.flags = new Uint8Array(max);
    this.shapeAt = new Uint16Array(max);
  }

  /** Whether the batch has the maximum number of spans. */
  get isFull(): boolean {
    return this.size >= this.#max;
  }

  /** Adds a span. */
  add(span: Span, endedAt: number, shape: SpanShape): void {
    const at = this.size++;
    const words = this.words;
    const { trace, traceAt, own, ownAt, parent, parentAt, request, requestText, state } = span;
    const [traceIds, ownIds] = [trace.words, own.words];
    let to = at * ROW_WORDS;
    for (let word = 0; word < TRACE_WORDS; word++) words[to++] = traceIds[traceAt + word] as number;
    for (let word = 0; word < SPAN_WORDS; word++) words[to++] = ownIds[ownAt + word] as number;
    if (parent !== undefined) {
      const ids = parent.words;
      for (let word = 0; word < SPAN_WORDS; word++) words[to++] = ids[parentAt + word] as number;
    }
    this.flags[at] = parent === undefined
      ? 0
      : span.isParentRemote
      ? HAS_PARENT | HAS_REMOTE_PARENT
      : HAS_PARENT;
    this.times[2 * at] = span.since;
    this.times[2 * at + 1] = endedAt;
    this.requests[at] = request;
    this.shapeAt[at] = this.#indexOf(shape);
    if (requestText !== undefined || state !== undefined) {
      this.#texts.set(at, { id: requestText, state });
    }
  }

  /** Returns the texts of a span, if it has any. */
  textsOf(at: number): SpanTexts | undefined {
    return this.#texts.size === 0 ? undefined : this.#texts.get(at);
  }

  /** Keeps the first `size` spans, and removes the others. */
  truncate(size: number): void {
    this.size = size;
    for (const at of this.#texts.keys()) if (at >= size) this.#texts.delete(at);
  }

  /** Removes all spans, so that the batch can be filled again. */
  clear(): void {
    this.size = 0;
    this.shapes.length = 0;
    this.#texts.clear();
    this.#identity = {};
  }

  #indexOf(shape: SpanShape): number {
    if (shape.batch !== this.#identity) {
      shape.batch = this.#identity;
      shape.index = this.shapes.push(shape) - 1;
    }
    return shape.index;
  }
}

/**
 * Spans of requests, by the OpenTelemetry conventions for MCP. A span has few fields. Its
 * attributes are computed at its export, so that calls do not wait for this work.
 *
 * @module
 */

import type { JsonObject } from "../core/json.ts";
import {
  type ErrorType,
  errorTypeOf,
  type RequestSpan,
  type RunCall,
  type ServedRequest,
  type SpanTarget,
  type TraceContext,
  traceContextIn,
  type TracedRequest,
  type Tracer,
} from "../protocol/trace.ts";
import { SPAN_WORDS, TRACE_WORDS } from "./span_batch.ts";
import { type SpanFacts, type SpanShape, SpanShapes } from "./span_shapes.ts";

/** The kinds of spans, with the numbers of OpenTelemetry's API. */
const [INTERNAL, SERVER, CLIENT] = [0, 1, 2];
/** The longest text of a span. `cleanText()` shortens it further after it has removed secrets. */
const TEXT_MAX = 4_000;
/** The maximum number of digits of an id that a number represents exactly. */
const DIGITS_MAX = 15;
/** The number of spans whose ids are created at once. */
const IDS_AT_ONCE = 256;
/** The number of words for the ids that one span may need. */
const ID_WORDS = TRACE_WORDS + SPAN_WORDS;

/** Receives ended spans. */
export interface SpanReceiver {
  /** Receives a span, the time of its end, and its shape, which contains its error. */
  add(span: Span, endedAt: number, shape: SpanShape): void;
}

/** The traces of one PML. */
export interface Traces extends AsyncDisposable {
  readonly tracer: Tracer;
}

/** Decides which traces are recorded. */
export interface Sampler {
  /** Returns whether a trace that PML begins is recorded. */
  recordsOwn(trace: Pick<TraceContext, "traceId">): boolean;
  /** Returns whether PML records its part of the trace of a client. */
  recordsClient(parent: TraceContext): boolean;
}

/** Ids as words, and as text. */
class IdBlock {
  readonly words: Uint32Array;
  /** The words as hexadecimal digits: eight for each. */
  readonly #hex: string;

  /** Takes the ids in both forms. */
  constructor(bytes: Uint8Array<ArrayBuffer>, hex: string) {
    this.words = new Uint32Array(bytes.buffer);
    this.#hex = hex;
  }

  /** Returns the digits of an id. */
  hexOf(at: number, words: number): string {
    return this.#hex.slice(8 * at, 8 * (at + words));
  }
}

/** Creates many random ids at once. To create ids one by one would take most of a span's time. */
class Ids {
  #block = new IdBlock(new Uint8Array(0), "");
  #at = 0;

  /** Moves to the next ids: one for a trace, and one for a span. Returns the index of the first. */
  next(): number {
    this.#at += ID_WORDS;
    if (this.#at >= this.#block.words.length) {
      const bytes = crypto.getRandomValues(new Uint8Array(4 * ID_WORDS * IDS_AT_ONCE));
      this.#block = new IdBlock(bytes, bytes.toHex());
      this.#at = 0;
    }
    return this.#at;
  }

  /** The ids at the present index. */
  get block(): IdBlock {
    return this.#block;
  }
}

/** Begins the spans of one PML. */
export class SpanTracer implements Tracer {
  readonly #receiver: SpanReceiver;
  readonly #sampler: Sampler;
  readonly #ids = new Ids();
  readonly #shapes = new SpanShapes();
  /** The facts of the span that begins. One object for all spans costs less than one for each. */
  readonly #facts: { -readonly [Name in keyof SpanFacts]: SpanFacts[Name] } = { ...RUN_FACTS };

  /** Takes the receiver of ended spans. */
  constructor(receiver: SpanReceiver, sampler: Sampler) {
    this.#receiver = receiver;
    this.#sampler = sampler;
  }

  /** Begins the span of a request of a client. */
  beginServed(request: ServedRequest): RequestSpan {
    const { method, params, meta, idText, since } = request;
    const parent = meta === undefined ? undefined : traceContextIn(meta);
    const facts = this.#facts;
    facts.kind = SERVER;
    facts.method = shortenText(method);
    facts.target = targetOf(method, params);
    facts.uri = uriOf(params);
    facts.isRequest = true;
    facts.revision = request.revision;
    facts.session = request.session;
    facts.isRemote = request.isRemote;
    facts.server = undefined;
    facts.address = undefined;
    const id = parseNumber(idText) ?? shortenText(idText);
    return this.#begin({ parent, isOfClient: parent !== undefined, id, since, ids: this.#ids });
  }

  /** Begins the span of a request to a server. */
  beginSent(
    request: TracedRequest,
    params: JsonObject | undefined,
    target: SpanTarget,
  ): RequestSpan {
    const { method, id, sentAt: since, options } = request;
    const { address } = target;
    const facts = this.#facts;
    facts.kind = CLIENT;
    facts.method = shortenText(method);
    facts.target = params === undefined ? undefined : targetOf(method, params);
    facts.uri = params === undefined ? undefined : uriOf(params);
    facts.isRequest = true;
    facts.revision = target.revision;
    facts.session = target.session;
    facts.isRemote = address !== undefined;
    facts.server = target.server;
    facts.address = address;
    return this.#begin({
      parent: options.client.trace,
      isOfClient: false,
      id,
      since,
      ids: this.#ids,
    });
  }

  /** Records the span of a call that PML ran itself. */
  recordRun({ tool, server, parent, since, ended, result }: RunCall): void {
    Object.assign(this.#facts, RUN_FACTS, { target: shortenText(tool), server });
    this.#begin({ parent, isOfClient: false, id: -1, since, ids: this.#ids })
      .end(ended, errorTypeOf(result, result === undefined ? UNKNOWN_ERROR : undefined));
  }

  /** Begins a span with the present facts. */
  #begin(start: SpanStart): RequestSpan {
    const { parent, isOfClient } = start;
    // An unrecorded span has the ids of its parent, so that spans below it belong to a recorded
    // span.
    if (parent !== undefined) {
      const isSampled = isOfClient ? this.#sampler.recordsClient(parent) : parent.isSampled;
      if (!isSampled) return new UnrecordedSpan(parent);
    }
    const span = new Span(this.#receiver, this.#shapes.of(this.#facts), start);
    const isRecorded = parent !== undefined || this.#sampler.recordsOwn(span);
    return isRecorded ? span : new UnrecordedSpan(span);
  }
}

/** The facts about one span. */
interface SpanStart {
  readonly parent: TraceContext | undefined;
  /** Whether its parent is a span of the client. */
  readonly isOfClient: boolean;
  /** The id as a number, or as JSON if it is not a number; -1 for a call that is not a request. */
  readonly id: string | number;
  readonly since: number;
  readonly ids: Ids;
}

/** The facts about the calls that PML runs itself. */
const RUN_FACTS: SpanFacts = {
  kind: INTERNAL,
  method: "execute_tool",
  target: undefined,
  uri: undefined,
  isRequest: false,
  revision: undefined,
  session: undefined,
  isRemote: false,
  server: undefined,
  address: undefined,
};
/** The error of a call whose error is not known. */
const UNKNOWN_ERROR = new Error("the call failed");

/** A span of a trace that is not recorded. */
class UnrecordedSpan implements RequestSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly state: string | undefined;
  readonly isSampled = false;

  constructor({ traceId, spanId, state }: Omit<TraceContext, "isSampled">) {
    this.traceId = traceId;
    this.spanId = spanId;
    this.state = state;
  }

  end(): void {}
}

/** A span that is recorded. */
export class Span implements RequestSpan {
  readonly isSampled = true;
  readonly state: string | undefined;
  readonly #receiver: SpanReceiver;
  readonly #shape: SpanShape;
  /** The ids that contain the id of its trace, and the index where it begins. */
  readonly trace: IdBlock;
  readonly traceAt: number;
  /** The ids that contain its own id, and the index where it begins. */
  readonly own: IdBlock;
  readonly ownAt: number;
  /** The ids that contain the id of its parent, and the index where it begins. */
  readonly parent: IdBlock | undefined;
  readonly parentAt: number;
  /** Whether its parent is a span of the client. */
  readonly isParentRemote: boolean;
  /** When it began, in `performance.now()`. */
  readonly since: number;
  /** The id of the request if it is a number; -1 without one. */
  readonly request: number;
  /** The id of the request as JSON, if it is not a number. */
  readonly requestText: string | undefined;

  /** Begins the span. */
  constructor(
    receiver: SpanReceiver,
    shape: SpanShape,
    { parent, isOfClient, id, since, ids }: SpanStart,
  ) {
    this.#receiver = receiver;
    this.#shape = shape;
    const at = ids.next();
    const own = this.own = ids.block;
    this.ownAt = at + TRACE_WORDS;
    this.isParentRemote = isOfClient;
    this.since = since;
    const isNumber = typeof id === "number";
    this.request = isNumber ? id : -1;
    this.requestText = isNumber ? undefined : id;
    if (parent === undefined) {
      this.state = undefined;
      this.trace = own;
      this.traceAt = at;
      this.parent = undefined;
      this.parentAt = 0;
    } else if (parent instanceof Span) {
      this.state = parent.state;
      this.trace = parent.trace;
      this.traceAt = parent.traceAt;
      this.parent = parent.own;
      this.parentAt = parent.ownAt;
    } else {
      this.state = parent.state;
      const hex = parent.traceId + parent.spanId;
      this.trace = this.parent = new IdBlock(Uint8Array.fromHex(hex), hex);
      this.traceAt = 0;
      this.parentAt = TRACE_WORDS;
    }
  }

  /** The id of its trace. It is text only if a server or the sampler needs it. */
  get traceId(): string {
    return this.trace.hexOf(this.traceAt, TRACE_WORDS);
  }

  /** Its own id. */
  get spanId(): string {
    return this.own.hexOf(this.ownAt, SPAN_WORDS);
  }

  /** Ends the span. */
  end(at: number, error: ErrorType): void {
    const shape = this.#shape;
    this.#receiver.add(this, at, error === undefined ? shape : shape.failed(error));
  }
}

/** Parses an id that is a number of at most `DIGITS_MAX` digits; undefined for other ids. */
function parseNumber(idText: string): number | undefined {
  const { length } = idText;
  if (length > DIGITS_MAX) return undefined;
  let number = 0;
  for (let index = 0; index < length; index++) {
    const digit = idText.charCodeAt(index) - 48;
    if (digit < 0 || digit > 9) return undefined;
    number = 10 * number + digit;
  }
  return number;
}

/** Returns the name of the tool or the prompt that a request is about. */
function targetOf(method: string, params: JsonObject): string | undefined {
  if (method !== "tools/call" && method !== "prompts/get") return undefined;
  const { name } = params;
  return typeof name === "string" ? shortenText(name) : undefined;
}

/** Returns the URI of a request, without its query, fragment and user, which may contain keys. */
function uriOf({ uri }: JsonObject): string | undefined {
  if (typeof uri !== "string") return undefined;
  const [plain = ""] = uri.split(/[?#]/, 1);
  // Some schemes contain another one, as in `jdbc:postgresql://user:password@host`.
  const withoutUser = plain.replace(/(^[a-z][a-z\d+.-]*:|\/\/)[^/]*@/gi, "$1");
  return uri.length > TEXT_MAX ? copyText(withoutUser) : withoutUser;
}

function shortenText(text: string): string {
  return text.length > TEXT_MAX ? copyText(text) : text;
}

/** Returns the beginning of a text, without a reference to the text, which `slice()` would keep. */
function copyText(text: string): string {
  const half = TEXT_MAX / 2;
  return [text.slice(0, half), text.slice(half, TEXT_MAX)].join("");
}

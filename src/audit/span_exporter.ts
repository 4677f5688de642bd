/**
 * Sends spans to a collector in the background, over OTLP. A collector that is slow or dead delays
 * no request: spans wait in a bounded queue, and are lost when it is full.
 *
 * @module
 */

import { messageOf } from "../core/errors.ts";
import type { Certificates, Fetch } from "../core/fetch.ts";
import { objectOf, quoted } from "../core/json.ts";
import { callAfter, settlesWithin } from "../io/waiting.ts";
import type { Log } from "./log.ts";
import type { Redactor } from "./redact.ts";
import { SpanBatch } from "./span_batch.ts";
import { JsonSpanEncoder, ProtobufSpanEncoder, type SpanEncoder } from "./span_encoders.ts";
import type { SpanShape } from "./span_shapes.ts";
import type { Sampler, Span, SpanReceiver } from "./spans.ts";

/** The collector, and how spans are sent to it. */
export interface ExportSettings {
  readonly url: string;
  readonly encoding: "json" | "protobuf";
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly isGzip: boolean;
  readonly certificates: Partial<Omit<Certificates, "origin">>;
  readonly delayMs: number;
  readonly queueMax: number;
  readonly batchMax: number;
  readonly resource: Readonly<Record<string, string>>;
}

/** The PML that sends spans. */
export interface ExportHost {
  readonly log: Pick<Log, "debug" | "info" | "warn">;
  readonly redactor: Pick<Redactor, "redact">;
  /** Returns the guarded `fetch`. */
  openFetch(): Promise<Fetch>;
}

/** The answer of a collector to a request. */
type SendResult =
  | { readonly kind: "taken"; readonly rejected: number }
  | { readonly kind: "refused" | "unreached"; readonly why: string; readonly waitMs?: number };

/** The maximum length of an answer that is read, in bytes. */
const ANSWER_MAX = 65_536;
/** The statuses after which the same request is sent again, as OTLP defines them. */
const RETRY_STATUSES: readonly number[] = [429, 502, 503, 504];
/** The longest time between two tries, in milliseconds. */
const WAIT_MAX_MS = 60_000;
/** How long PML waits at its end until the last spans are sent, in milliseconds. */
const LAST_SEND_MS = 1_000;
const CONTENT_TYPES = { json: "application/json", protobuf: "application/x-protobuf" } as const;

/** Sends the spans of one PML. */
export class SpanExporter implements SpanReceiver, AsyncDisposable {
  readonly #settings: ExportSettings;
  readonly #host: ExportHost;
  readonly #closing = new AbortController();
  /** The batches that wait, oldest first. New spans are added to the last batch. */
  #batches: SpanBatch[] = [];
  /** The number of spans that wait. */
  #waitingCount = 0;
  /** An empty batch whose memory is used again. */
  #spare: SpanBatch | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sending: Promise<void> | undefined;
  /** The number of failed requests since the last success. */
  #failures = 0;
  #lostCount = 0;
  readonly #encoder: SpanEncoder;

  /** Takes the settings. Loads and sends nothing before the first span has ended. */
  constructor(settings: ExportSettings, host: ExportHost) {
    this.#settings = settings;
    this.#host = host;
    const { encoding, resource } = settings;
    const Encoder = encoding === "json" ? JsonSpanEncoder : ProtobufSpanEncoder;
    this.#encoder = new Encoder(resource, host.redactor);
  }

  /** Takes a span that has ended. */
  add(span: Span, endedAt: number, shape: SpanShape): void {
    const { queueMax, batchMax, delayMs } = this.#settings;
    if (this.#waitingCount >= queueMax) {
      this.#lostCount++;
      return;
    }
    let batch = this.#batches.at(-1);
    if (batch === undefined || batch.isFull) this.#batches.push(batch = this.#newBatch());
    batch.add(span, endedAt, shape);
    this.#waitingCount++;
    if (this.#sending !== undefined) return;
    if (this.#timer === undefined) this.#schedule(delayMs);
    // After a failure, a full queue does not shorten the wait.
    else if (this.#waitingCount === batchMax && this.#failures === 0) this.#schedule(0);
  }

  /**
   * Sends a request without spans. Returns why it failed; undefined if the collector accepted it.
   */
  async check(): Promise<string | undefined> {
    const sent = await this.#send(new SpanBatch(0));
    return sent.kind === "taken" ? undefined : sent.why;
  }

  /** Sends the waiting spans, but does not wait longer than `LAST_SEND_MS`. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer);
    const last = async () => {
      await this.#sending;
      if (this.#failures === 0) await this.#flush();
    };
    await settlesWithin(last(), LAST_SEND_MS);
    this.#closing.abort(new Error("PML has ended"));
    clearTimeout(this.#timer);
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#sending = this.#flush().finally(() => {
        this.#sending = undefined;
        if (this.#waitingCount > 0 && this.#timer === undefined) {
          const isFull = this.#waitingCount >= this.#settings.batchMax;
          this.#schedule(isFull ? 0 : this.#settings.delayMs);
        }
      });
    }, ms);
    Deno.unrefTimer(this.#timer);
  }

  #newBatch(): SpanBatch {
    const batch = this.#spare ?? new SpanBatch(this.#settings.batchMax);
    this.#spare = undefined;
    return batch;
  }

  /** Sends the waiting batches, one request after the other. */
  async #flush(): Promise<void> {
    const { delayMs } = this.#settings;
    // Spans that end during a request may be added to the last of these batches.
    for (let remaining = this.#batches.length; remaining > 0; remaining--) {
      const batch = this.#batches.shift() as SpanBatch;
      this.#waitingCount -= batch.size;
      const sent = await this.#send(batch);
      if (sent.kind === "taken") {
        this.#reportSuccess(sent.rejected);
        this.#reuse(batch);
      } else {
        this.#putBack(batch, sent.kind === "unreached");
        this.#reportFailure(sent.why);
        if (this.#closing.signal.aborted) return;
        const waitMs = sent.waitMs ?? delayMs * 2 ** Math.min(this.#failures - 1, 10);
        return this.#schedule(Math.min(Math.max(waitMs, delayMs), WAIT_MAX_MS));
      }
    }
  }

  /** Puts unsent spans back into the queue, as many as its limit allows. */
  #putBack(batch: SpanBatch, canRetry: boolean): void {
    const free = canRetry ? Math.max(0, this.#settings.queueMax - this.#waitingCount) : 0;
    if (batch.size > free) {
      this.#lostCount += batch.size - free;
      batch.truncate(free);
    }
    if (batch.size === 0) return this.#reuse(batch);
    this.#waitingCount += batch.size;
    this.#batches.unshift(batch);
  }

  #reuse(batch: SpanBatch): void {
    batch.clear();
    this.#spare = batch;
  }

  #reportSuccess(rejected: number): void {
    const { log } = this.#host;
    const lost = this.#lostCount + rejected;
    if (this.#failures > 0) log.info(`Traces are sent again; ${lost} spans were lost`);
    else if (rejected > 0) log.debug(`The collector of traces rejected ${rejected} spans`);
    this.#failures = this.#lostCount = 0;
  }

  #reportFailure(why: string): void {
    const { log } = this.#host;
    const text = `Cannot send traces to ${quoted(this.#where)}: ${why}`;
    if (this.#failures++ === 0) log.warn(text);
    else log.debug(text);
  }

  get #where(): string {
    return new URL(this.#settings.url).host;
  }

  async #send(batch: SpanBatch): Promise<SendResult> {
    const { timeoutMs, encoding } = this.#settings;
    const timeout = new AbortController();
    using _ = callAfter(
      timeoutMs,
      () => timeout.abort(new Error(`no answer within ${timeoutMs} ms`)),
    );
    const signal = AbortSignal.any([timeout.signal, this.#closing.signal]);
    try {
      const response = await this.#post(batch, signal);
      return await readSendResult(response, encoding);
    } catch (error) {
      return { kind: "unreached", why: messageOf(signal.aborted ? signal.reason : error) };
    }
  }

  async #post(batch: SpanBatch, signal: AbortSignal): Promise<Response> {
    const { url, headers, encoding, isGzip, certificates } = this.#settings;
    const { origin, host, hostname } = new URL(url);
    const fetch = await this.#host.openFetch();
    const bytes = this.#encoder.encode(batch);
    return await fetch(url, {
      method: "POST",
      headers: {
        ...headers,
        "content-type": CONTENT_TYPES[encoding],
        ...isGzip && { "content-encoding": "gzip" },
      },
      body: isGzip ? await compress(bytes) : bytes,
      signal,
      named: new Set([host, hostname]),
      certificates: Object.values(certificates).some((path) => path !== undefined)
        ? { ...certificates, origin }
        : undefined,
    });
  }
}

async function readSendResult(
  response: Response,
  encoding: ExportSettings["encoding"],
): Promise<SendResult> {
  const { status, headers } = response;
  const bytes = await readBody(response);
  if (status >= 200 && status < 300) {
    const isRead = bytes !== undefined && encoding === "json";
    return { kind: "taken", rejected: isRead ? rejectedIn(bytes) : 0 };
  }
  const why = `it answered ${status}`;
  if (!RETRY_STATUSES.includes(status)) return { kind: "refused", why };
  const seconds = Number(headers.get("retry-after") ?? NaN);
  return { kind: "unreached", why, ...seconds > 0 && { waitMs: seconds * 1_000 } };
}

/** Returns the body of a response; undefined if it is longer than `ANSWER_MAX`. */
async function readBody(response: Response): Promise<Uint8Array | undefined> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of response.body ?? []) {
    size += piece.length;
    if (size > ANSWER_MAX) return undefined; // leaving the loop closes the connection
    pieces.push(piece);
  }
  return new Uint8Array(await new Blob(pieces as BlobPart[]).arrayBuffer());
}

/** Returns how many spans a collector rejected. */
function rejectedIn(bytes: Uint8Array): number {
  try {
    const answer: unknown = JSON.parse(new TextDecoder().decode(bytes));
    const { rejectedSpans } = objectOf(objectOf(answer).partialSuccess);
    return Number(rejectedSpans) || 0;
  } catch {
    return 0; // the body is not OTLP, but the status means that the spans were accepted
  }
}

async function compress(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const zip = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(zip).arrayBuffer());
}

/** Returns a sampler that records this share of the traces that PML begins. */
export function samplerOf(
  { share, isParentBased }: { readonly share: number; readonly isParentBased: boolean },
): Sampler {
  // Compares 32 bits of the id, like the official sampler, so that all programs decide alike.
  const limit = Math.floor(share * 0xffff_ffff);
  const recordsOwn = (trace: { readonly traceId: string }) =>
    share >= 1 || share > 0 && sampleValueOf(trace.traceId) < limit;
  return {
    recordsOwn,
    recordsClient: (parent) => isParentBased ? parent.isSampled : recordsOwn(parent),
  };
}

function sampleValueOf(traceId: string): number {
  let sum = 0;
  for (let at = 0; at < 32; at += 8) sum = (sum ^ parseInt(traceId.slice(at, at + 8), 16)) >>> 0;
  return sum;
}

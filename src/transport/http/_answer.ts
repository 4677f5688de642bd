/**
 * Sends answers over HTTP.
 *
 * @module
 */

import type { ServerResponse } from "node:http";
import { setImmediate } from "node:timers";
import { objectOf } from "../../core/json.ts";
import { toOneLine } from "../../core/json_text.ts";
import { contentType, EVENTS_TYPE, JSON_TYPE } from "../../io/event_stream.ts";
import { ERROR, HTTP_ERROR } from "../../protocol/errors.ts";
import { refusalMessage } from "../../protocol/message.ts";

/** The limits of an answer. */
export interface AnswerLimits {
  /** How long a client may read nothing before PML closes its connection, in milliseconds. */
  readonly unreadMs: number;
  /** The maximum number of bytes of an answer that may wait for its client. */
  readonly queuedBytes: number;
}

/** Why a request is refused. */
export interface Rejection {
  readonly why: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The JSON-RPC code. */
  readonly code?: number | undefined;
}

/**
 * Returns the answer for a refused request. Its status text, which is not sent, contains the
 * reason.
 */
export function rejection(
  status: number,
  { why, headers = {}, code = HTTP_ERROR.refused }: Rejection,
): Response {
  const text = `Cannot take the request: ${why}`;
  return Response.json(refusalMessage({ kind: "refusal", code, text }), {
    status,
    statusText: why,
    // PML does not read the rest of a refused request.
    headers: { ...headers, connection: "close" },
  });
}

/** Returns a signal that aborts when the client disconnects before its whole answer is sent. */
export function disconnectSignal(response: ServerResponse): AbortSignal {
  const disconnect = new AbortController();
  // guard: http-gone
  response.once("close", () => response.writableFinished || disconnect.abort());
  return disconnect.signal;
}

/** The HTTP statuses of errors in the stateless revision, by their JSON-RPC codes. */
const STATUSES: Readonly<Record<number, number>> = {
  [ERROR.methodNotFound]: 404,
  [ERROR.missingClientCapability]: 400,
  [ERROR.headerMismatch]: 400,
};
/** The headers of a stream of events. */
export const STREAM_HEADERS = {
  "content-type": EVENTS_TYPE,
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
};
const UTF_8 = new TextEncoder();

/** An answer that is one JSON text. */
export class TextAnswer {
  /** Creates an answer with a status and a text. */
  constructor(readonly status: number, readonly text: string) {}
}

/** Returns an answer as a response. */
export function asResponse(answer: Response | TextAnswer): Response {
  if (answer instanceof Response) return answer;
  const { status, text } = answer;
  return new Response(text, { status, headers: { "content-type": JSON_TYPE } });
}

/**
 * Returns the HTTP status for an error of the stateless revision; 200 for success and other errors.
 */
export function statusOf(error: unknown): number {
  return STATUSES[Number(objectOf(error).code)] ?? 200;
}

/** Returns a JSON message as an event of a stream. */
export function eventBytes(message: string, id?: string): Uint8Array<ArrayBuffer> {
  const idLine = id === undefined ? "" : `id: ${id}\n`;
  return UTF_8.encode(`event: message\n${idLine}data: ${toOneLine(message)}\n\n`);
}

/** The callbacks for sent answers. */
const sentCallbacks = new WeakMap<object, () => void>();

/** Registers `done`, which is called after an answer was sent or its client disconnected. */
export function onSent(answer: Response, done: () => void): void {
  sentCallbacks.set(answer, done);
}

/** Reports that an answer was sent, or will not be sent. */
export function reportSent(answer: Response): void {
  sentCallbacks.get(answer)?.();
}

/** The maximum number of bytes that wait for all clients together, as a multiple of `queuedBytes`. */
const WAITING_BYTES_FACTOR = 4;

/** Sends answers, and counts the bytes that wait for clients. */
export class AnswerSender {
  readonly #limits: AnswerLimits;
  readonly #waiting = new Map<ServerResponse, number>();
  #size = 0;

  /** Creates a sender with limits. */
  constructor(limits: AnswerLimits) {
    this.#limits = limits;
  }

  /**
   * Sends an answer. The source of the answer never waits for the client: PML buffers unread parts
   * here. Disconnects a client that reads nothing for too long, or for which too many bytes wait.
   * Calls `onPart` with each part.
   */
  async send(
    to: ServerResponse,
    answer: Response | TextAnswer,
    onPart?: (part: Uint8Array | undefined) => void,
  ): Promise<void> {
    if (answer instanceof TextAnswer) return this.#sendText(to, answer);
    const { status, headers, body } = answer;
    const reader = body?.getReader();
    const { queuedBytes } = this.#limits;
    const onSlow = this.#watch(to);
    // Cancels the source of an answer whose client has disconnected.
    const onClose = () => {
      void reader?.cancel().catch(() => {});
      reportSent(answer);
    };
    to.once("close", onClose);
    try {
      to.writeHead(status, Object.fromEntries(headers));
      // The headers of other answers are sent together with the body.
      if (contentType(answer) === EVENTS_TYPE) inOneWrite(to, () => to.flushHeaders());
      while (!to.destroyed) {
        const { done = true, value } = await reader?.read() ?? {};
        if (done) break;
        onPart?.(value);
        if (to.destroyed || to.writableEnded || inOneWrite(to, () => to.write(value))) continue;
        // A single answer may exceed the limit of waiting bytes.
        if ((this.#waiting.get(to) ?? 0) > queuedBytes) to.destroy();
        onSlow();
      }
    } catch {
      to.destroy();
    }
    // The client may have disconnected before the answer started. Ending a broken answer would make
    // it look complete.
    if (to.destroyed) onClose();
    else to.end();
  }

  #sendText(to: ServerResponse, { status, text }: TextAnswer): void {
    to.statusCode = status;
    to.setHeader("content-type", JSON_TYPE);
    const isLarge = text.length > to.writableHighWaterMark;
    // `end()` sends the text together with its headers, which include its length. A large text is
    // encoded, because Deno counts only bytes as waiting.
    to.end(isLarge ? UTF_8.encode(text) : text);
    if (isLarge) this.#watch(to)();
  }

  /** Returns a function that watches a client that reads more slowly than PML sends. */
  #watch(to: ServerResponse): () => void {
    let unread: ReturnType<typeof setInterval> | undefined;
    const stop = () => {
      clearInterval(unread);
      unread = undefined;
      this.#setWaiting(to, 0);
    };
    to.on("drain", stop);
    to.once("close", stop);
    return () => {
      this.#setWaiting(to, to.writableLength);
      unread ??= closeIfUnread(to, this.#limits.unreadMs);
    };
  }

  #setWaiting(to: ServerResponse, size: number): void {
    const previousSize = this.#waiting.get(to) ?? 0;
    if (size === previousSize) return;
    if (size === 0) this.#waiting.delete(to);
    else this.#waiting.set(to, size);
    this.#size += size - previousSize;
    if (this.#size <= WAITING_BYTES_FACTOR * this.#limits.queuedBytes) return;
    // The source is not paused, because other clients use the same servers.
    const [slowest] = [...this.#waiting].toSorted(([, one], [, other]) => other - one);
    slowest?.[0].destroy();
  }
}

/** Writes, and sends the data together with all other writes of this turn of the event loop. */
function inOneWrite<T>(to: ServerResponse, write: () => T): T {
  if (to.writableCorked === 0) {
    to.cork();
    setImmediate(() => to.uncork());
  }
  return write();
}

/** Closes a connection if its client reads nothing for some time. */
function closeIfUnread(to: ServerResponse, ms: number): ReturnType<typeof setInterval> {
  const countRead = () => (to.socket?.bytesWritten ?? 0) - to.writableLength;
  let previousCount = countRead();
  return setInterval(() => {
    const now = countRead();
    if (now === previousCount) to.destroy();
    previousCount = now;
  }, ms);
}

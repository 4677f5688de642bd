/**
 * Sends answers over HTTP.
 *
 * @module
 */

import type { ServerResponse } from "node:http";
import { setImmediate } from "node:timers";
import { objectOf } from "../../core/json.ts";
import { inOneLine } from "../../core/json_text.ts";
import { contentType, EVENTS_TYPE, JSON_TYPE } from "../../io/event_stream.ts";
import { ERROR, HTTP_ERROR } from "../../protocol/errors.ts";
import { refusalMessage } from "../../protocol/message.ts";

/** The limits of an answer. */
export interface AnswerLimits {
  /** How long a client may read nothing before its connection is closed, in milliseconds. */
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
    // The rest of a refused request is not read.
    headers: { ...headers, connection: "close" },
  });
}

/** Returns a signal that aborts when the client disconnects before its whole answer is sent. */
export function leaving(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  // guard: http-gone
  response.once("close", () => response.writableFinished || gone.abort());
  return gone.signal;
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

/** Returns a message as an event of a stream. The message is JSON. */
export function eventBytes(message: string, id?: string): Uint8Array<ArrayBuffer> {
  const named = id === undefined ? "" : `id: ${id}\n`;
  return UTF_8.encode(`event: message\n${named}data: ${inOneLine(message)}\n\n`);
}

/** The callbacks for sent answers. */
const followed = new WeakMap<object, () => void>();

/** Registers `done`, which is called after an answer was sent or its client disconnected. */
export function followedBy(answer: Response, done: () => void): void {
  followed.set(answer, done);
}

/** Reports that an answer was sent, or will not be sent. */
export function wasSent(answer: Response): void {
  followed.get(answer)?.();
}

/** How many answers of the maximum size may wait for all clients together. */
const MOST_ANSWERS = 4;

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
   * Sends an answer. Its source never waits for the client: unread parts are buffered here. A
   * client is disconnected if it reads nothing for too long, or if too many bytes wait. `sent` is
   * called with each part.
   */
  async send(
    to: ServerResponse,
    answer: Response | TextAnswer,
    sent?: (part: Uint8Array | undefined) => void,
  ): Promise<void> {
    if (answer instanceof TextAnswer) return this.#sendText(to, answer);
    const { status, headers, body } = answer;
    const reader = body?.getReader();
    const { queuedBytes } = this.#limits;
    const holdUp = this.#watched(to);
    // Cancels the source of an answer whose client is gone.
    const over = () => {
      void reader?.cancel().catch(() => {});
      wasSent(answer);
    };
    to.once("close", over);
    try {
      to.writeHead(status, Object.fromEntries(headers));
      // The headers of other answers are sent together with the body.
      if (contentType(answer) === EVENTS_TYPE) together(to, () => to.flushHeaders());
      while (!to.destroyed) {
        const { done = true, value } = await reader?.read() ?? {};
        if (done) break;
        sent?.(value);
        if (to.destroyed || to.writableEnded || together(to, () => to.write(value))) continue;
        // A single answer may exceed the limit of waiting bytes.
        if ((this.#waiting.get(to) ?? 0) > queuedBytes) to.destroy();
        holdUp();
      }
    } catch {
      to.destroy();
    }
    // The client may have disconnected before the answer started. Ending a broken answer would make
    // it look complete.
    if (to.destroyed) over();
    else to.end();
  }

  #sendText(to: ServerResponse, { status, text }: TextAnswer): void {
    to.statusCode = status;
    to.setHeader("content-type", JSON_TYPE);
    const isLarge = text.length > to.writableHighWaterMark;
    // The text is sent together with its headers, which include its length. Deno counts only bytes
    // as waiting, so large texts are encoded.
    to.end(isLarge ? UTF_8.encode(text) : text);
    if (isLarge) this.#watched(to)();
  }

  /** Returns a function that watches a client that reads more slowly than PML sends. */
  #watched(to: ServerResponse): () => void {
    let unread: ReturnType<typeof setInterval> | undefined;
    const rest = () => {
      clearInterval(unread);
      unread = undefined;
      this.#waits(to, 0);
    };
    to.on("drain", rest);
    to.once("close", rest);
    return () => {
      this.#waits(to, to.writableLength);
      unread ??= unreadSince(to, this.#limits.unreadMs);
    };
  }

  #waits(to: ServerResponse, size: number): void {
    const before = this.#waiting.get(to) ?? 0;
    if (size === before) return;
    if (size === 0) this.#waiting.delete(to);
    else this.#waiting.set(to, size);
    this.#size += size - before;
    if (this.#size <= MOST_ANSWERS * this.#limits.queuedBytes) return;
    // The source is not paused, because other clients use the same servers.
    const [slowest] = [...this.#waiting].toSorted(([, one], [, other]) => other - one);
    slowest?.[0].destroy();
  }
}

/** Writes, and sends the data together with all other writes of this turn of the event loop. */
function together<T>(to: ServerResponse, write: () => T): T {
  if (to.writableCorked === 0) {
    to.cork();
    setImmediate(() => to.uncork());
  }
  return write();
}

/** Closes a connection if its client reads nothing for some time. */
function unreadSince(to: ServerResponse, ms: number): ReturnType<typeof setInterval> {
  const read = () => (to.socket?.bytesWritten ?? 0) - to.writableLength;
  let before = read();
  return setInterval(() => {
    const now = read();
    if (now === before) to.destroy();
    before = now;
  }, ms);
}

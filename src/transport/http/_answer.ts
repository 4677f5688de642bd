/**
 * Sends the answers of the door over HTTP.
 *
 * @module
 */

import type { ServerResponse } from "node:http";
import { setImmediate } from "node:timers";
import { objectOf } from "../../core/json.ts";
import { inOneLine } from "../../core/json_text.ts";
import { EVENTS_TYPE, JSON_TYPE, typeOf } from "../../io/event_stream.ts";
import { ERROR, HTTP_ERROR } from "../../protocol/errors.ts";
import { refusalMessage } from "../../protocol/message.ts";

/** The limits of an answer. */
export interface AnswerLimits {
  /** How long a client may read nothing before its connection is closed, in milliseconds. */
  readonly unreadMs: number;
  /** How many bytes of one answer may wait for its client. */
  readonly queuedBytes: number;
}

/** Why a request is refused. */
export interface Rejection {
  readonly why: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The JSON-RPC code. */
  readonly code?: number | undefined;
}

/** Returns the answer for a refused request. Its status text, which is not sent, says why. */
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

/** Returns a signal that aborts when a client goes before its whole answer was sent. */
export function leaving(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  // guard: http-gone
  response.once("close", () => response.writableFinished || gone.abort());
  return gone.signal;
}

/** The statuses of answers that are errors in the newest revision, by their codes. */
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
  /** Takes the status and the text. */
  constructor(readonly status: number, readonly text: string) {}
}

/** Returns an answer as a response. */
export function asResponse(answer: Response | TextAnswer): Response {
  if (answer instanceof Response) return answer;
  const { status, text } = answer;
  return new Response(text, { status, headers: { "content-type": JSON_TYPE } });
}

/** Returns the status of an answer of the newest revision with this error; 200 for all others. */
export function statusOf(error: unknown): number {
  return STATUSES[Number(objectOf(error).code)] ?? 200;
}

/** Returns the event of a stream that carries a message, which is JSON. */
export function frameOf(message: string, id?: string): Uint8Array<ArrayBuffer> {
  const named = id === undefined ? "" : `id: ${id}\n`;
  return UTF_8.encode(`event: message\n${named}data: ${inOneLine(message)}\n\n`);
}

/** What is called when answers were sent. */
const followed = new WeakMap<object, () => void>();

/** Has `done` called when an answer was sent, or its client has gone. */
export function followedBy(answer: Response, done: () => void): void {
  followed.set(answer, done);
}

/** Tells that an answer was sent, or is sent no more. */
export function wasSent(answer: Response): void {
  followed.get(answer)?.();
}

/** How many of the largest answers may wait for all clients together. */
const MOST_ANSWERS = 4;

/** Sends answers, and knows how much of them waits for clients. */
export class Answers {
  readonly #limits: AnswerLimits;
  readonly #waiting = new Map<ServerResponse, number>();
  #size = 0;

  /** Takes the limits. */
  constructor(limits: AnswerLimits) {
    this.#limits = limits;
  }

  /**
   * Sends an answer. What makes it is never held up: what the client has not read waits here. A
   * client loses its connection if it reads nothing for too long, or if too much waits. `sent` is
   * called with each part of it.
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
    // What is made for a client that is gone ends.
    const over = () => {
      void reader?.cancel().catch(() => {});
      wasSent(answer);
    };
    to.once("close", over);
    try {
      to.writeHead(status, Object.fromEntries(headers));
      // Other answers go out in one piece with their headers.
      if (typeOf(answer) === EVENTS_TYPE) together(to, () => to.flushHeaders());
      while (!to.destroyed) {
        const { done = true, value } = await reader?.read() ?? {};
        if (done) break;
        sent?.(value);
        if (to.destroyed || to.writableEnded || together(to, () => to.write(value))) continue;
        // One answer may be larger than what may wait.
        if ((this.#waiting.get(to) ?? 0) > queuedBytes) to.destroy();
        holdUp();
      }
    } catch {
      to.destroy();
    }
    // The client may have gone before its answer was begun. What is broken off and ended would
    // seem to be finished.
    if (to.destroyed) over();
    else to.end();
  }

  #sendText(to: ServerResponse, { status, text }: TextAnswer): void {
    to.statusCode = status;
    to.setHeader("content-type", JSON_TYPE);
    const isLarge = text.length > to.writableHighWaterMark;
    // In one piece with its headers, of which one is its length. Deno counts only bytes that wait.
    to.end(isLarge ? UTF_8.encode(text) : text);
    if (isLarge) this.#watched(to)();
  }

  /** Returns a function that watches a client which does not read as fast as it is sent to. */
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
    // The servers are not held up, because other clients use them, too.
    const [slowest] = [...this.#waiting].toSorted(([, one], [, other]) => other - one);
    slowest?.[0].destroy();
  }
}

/** Writes, and sends it with all else of this turn of the event loop. */
function together<T>(to: ServerResponse, write: () => T): T {
  if (to.writableCorked === 0) {
    to.cork();
    setImmediate(() => to.uncork());
  }
  return write();
}

/** Closes a connection on which nothing was read for some time. */
function unreadSince(to: ServerResponse, ms: number): ReturnType<typeof setInterval> {
  const read = () => (to.socket?.bytesWritten ?? 0) - to.writableLength;
  let before = read();
  return setInterval(() => {
    const now = read();
    if (now === before) to.destroy();
    before = now;
  }, ms);
}

/**
 * The streams over HTTP on which clients of the newest revision listen.
 *
 * @module
 */

import { parseExact } from "../../core/exact_json.ts";
import type { JsonObject } from "../../core/json.ts";
import { onAbort } from "../../io/waiting.ts";
import { ERROR, type ErrorObject } from "../../protocol/errors.ts";
import { answerText } from "../../protocol/message.ts";
import { messageOf } from "../../protocol/message_members.ts";
import {
  type Listened,
  type Notification,
  SUBSCRIPTION,
  Subscriptions,
} from "../../protocol/subscriptions.ts";
import { frameOf, STREAM_HEADERS } from "./_answer.ts";

/** Sends a notification. */
export type Tell = (method: string, params: JsonObject) => void;

/** What one stream listens for. */
export interface Listener extends Disposable {
  /** Sets everything that it listens for. */
  set(listened: Listened): void;
}

/** The options of `ListenStreams`. */
export interface ListenStreamsOptions {
  readonly listen: (tell: Tell) => Listener;
  readonly isTask: (id: string) => boolean;
  /** How many streams may be open. */
  readonly most: number;
  /** How many bytes may wait for a client before its stream is closed. */
  readonly queuedBytes: number;
  /** Returns the result of a request that ended because PML ends. */
  readonly ended: (result: JsonObject) => string;
}

/** How often a stream shows that it is open, in milliseconds, and the comment that does so. */
const [ALIVE_MS, ALIVE] = [15_000, new TextEncoder().encode(": keepalive\n\n")];

/** Keeps the streams of one party. */
export class ListenStreams implements Disposable {
  readonly #options: ListenStreamsOptions;
  readonly #open = new Set<ListenStream>();

  /** Has no streams yet. */
  constructor(options: ListenStreamsOptions) {
    this.#options = options;
  }

  /** Opens a stream. `id` is JSON. Returns an error instead if the request cannot be served. */
  open(
    id: string,
    { params, signal }: { readonly params: JsonObject; readonly signal: AbortSignal },
  ): Response | ErrorObject {
    if (this.#open.size >= this.#options.most) {
      return { code: ERROR.internalError, message: "Subscription limit reached" };
    }
    const subscriptions = new Subscriptions(this.#options.isTask);
    const refusal = subscriptions.open(id, params);
    if (refusal !== undefined) return refusal;
    const stream = new ListenStream(id, {
      ...this.#options,
      subscriptions,
      onEnd: () => this.#open.delete(stream),
    });
    this.#open.add(stream);
    onAbort(signal, () => stream.close());
    stream.begin();
    return stream.response;
  }

  /** Sends a notification to the streams that listen for it. */
  notify(notification: Notification): void {
    for (const stream of this.#open) stream.notify(notification);
  }

  /** Answers all requests and closes their streams. */
  [Symbol.dispose](): void {
    for (const stream of [...this.#open]) stream.end();
  }
}

interface ListenStreamOptions extends ListenStreamsOptions {
  readonly subscriptions: Subscriptions;
  readonly onEnd: () => void;
}

/** One stream. */
class ListenStream {
  readonly #id: string;
  readonly #options: ListenStreamOptions;
  readonly response: Response;
  #stream!: ReadableStreamDefaultController<Uint8Array>;
  readonly #listener: Listener;
  readonly #alive: ReturnType<typeof setInterval>;
  #isOpen = true;

  constructor(id: string, options: ListenStreamOptions) {
    this.#id = id;
    this.#options = options;
    const body = new ReadableStream<Uint8Array>({
      start: (stream) => void (this.#stream = stream),
      cancel: () => this.#over(),
    }, new ByteLengthQueuingStrategy({ highWaterMark: 0 }));
    this.response = new Response(body, { headers: STREAM_HEADERS });
    this.#alive = setInterval(() => this.#write(ALIVE), ALIVE_MS);
    Deno.unrefTimer(this.#alive);
    this.#listener = options.listen((method, params) => this.notify({ method, params }));
  }

  /** Acknowledges the request. One that listens for nothing ends at once. */
  begin(): void {
    const { subscriptions } = this.#options;
    this.#send(subscriptions.acknowledgement(this.#id));
    if (subscriptions.isIdle(this.#id)) this.end();
    else this.#listener.set(subscriptions.listened);
  }

  /** Sends a notification if the client listens for it. */
  notify(notification: Notification): void {
    for (const copy of this.#options.subscriptions.copiesOf(notification)) this.#send(copy);
  }

  /** Answers the request and closes the stream. */
  end(): void {
    if (!this.#isOpen) return;
    const members = this.#options.ended({ _meta: { [SUBSCRIPTION]: parseExact(this.#id) } });
    this.#write(frameOf(answerText(this.#id, members)));
    this.close();
  }

  /** Closes the stream without an answer. */
  close(): void {
    if (!this.#isOpen) return;
    this.#over();
    this.#stream.close();
  }

  #send(notification: Notification): void {
    this.#write(frameOf(JSON.stringify(messageOf(notification, false))));
  }

  #write(bytes: Uint8Array): void {
    if (!this.#isOpen) return;
    if ((this.#stream.desiredSize ?? 0) > -this.#options.queuedBytes) this.#stream.enqueue(bytes);
    else this.close();
  }

  #over(): void {
    this.#isOpen = false;
    clearInterval(this.#alive);
    this.#listener[Symbol.dispose]();
    this.#options.onEnd();
  }
}

/**
 * The streams over HTTP on which clients of the stateless revision listen.
 *
 * @module
 */

import { parseExact } from "../../core/exact_json.ts";
import { type JsonObject, objectOf } from "../../core/json.ts";
import { onAbort } from "../../io/waiting.ts";
import { ERROR, type ErrorObject } from "../../protocol/errors.ts";
import { answerText, type RequestMessage } from "../../protocol/message.ts";
import { messageMembers, messageWith } from "../../protocol/message_members.ts";
import {
  type ListenedItems,
  ListenRequests,
  type Notification,
  SUBSCRIPTION_KEY,
} from "../../protocol/subscriptions.ts";
import { LISTEN } from "../../protocol/revisions.ts";
import type { ResultTexts } from "../../protocol/open_request.ts";
import { eventBytes, STREAM_HEADERS } from "./_answer.ts";

/** Sends a notification. `members` are unknown members next to `method` and `params`. */
export type SendNotification = (method: string, params: JsonObject, members?: JsonObject) => void;

/** The subscriptions of one stream. */
export interface StreamListener extends Disposable {
  /** Replaces the subscriptions. */
  set(listened: ListenedItems): void;
  /** Reports the members of a notification that the client does not take. */
  reportDropped(method: string, members: JsonObject): void;
}

/** The PML process that streams listen to. */
export interface ListenHost {
  /** Opens the listener of a stream. */
  listen(send: SendNotification): StreamListener;
  /** Returns whether a task with this id exists. */
  isTask(id: string): boolean;
}

/** The limits of streams. */
export interface StreamLimits {
  /** The maximum number of open streams. */
  readonly connections: number;
  /** The maximum number of bytes that wait for a client before PML closes its stream. */
  readonly queuedBytes: number;
}

/** How often a stream sends a keep-alive comment, in milliseconds, and the comment. */
const [KEEP_ALIVE_MS, KEEP_ALIVE] = [15_000, new TextEncoder().encode(": keepalive\n\n")];

/** The streams of one endpoint. */
export class ListenStreams implements Disposable {
  readonly #host: ListenHost;
  readonly #limits: StreamLimits;
  readonly #texts: ResultTexts;
  readonly #openStreams = new Set<ListenStream>();

  /** Creates an empty set of streams. */
  constructor(host: ListenHost, limits: StreamLimits, texts: ResultTexts) {
    this.#host = host;
    this.#limits = limits;
    this.#texts = texts;
  }

  /** Opens a stream. Returns an error if the request cannot be served. */
  open(
    { id, message }: RequestMessage,
    signal: AbortSignal,
  ): Response | ErrorObject {
    if (this.#openStreams.size >= this.#limits.connections) {
      return { code: ERROR.internalError, message: "Subscription limit reached" };
    }
    const subscriptions = new ListenRequests((id) => this.#host.isTask(id));
    const refusal = subscriptions.open(id, objectOf(message.params));
    if (refusal !== undefined) return refusal;
    const streamRequest = {
      id,
      subscriptions,
      takesMembers: messageMembers(message) !== undefined,
    };
    const stream = new ListenStream(streamRequest, this);
    this.#openStreams.add(stream);
    onAbort(signal, () => stream.close());
    stream.begin();
    return stream.response;
  }

  /** The maximum number of bytes that may wait for a client. */
  get queuedBytes(): number {
    return this.#limits.queuedBytes;
  }

  /** Opens the listener of a stream. */
  listen(send: SendNotification): StreamListener {
    return this.#host.listen(send);
  }

  /** Returns the text of the members of the answer to a `subscriptions/listen` request. */
  answerMembers(result: JsonObject): string {
    return this.#texts.membersText(result, { method: LISTEN, revisionKind: "stateless" });
  }

  /** Removes a stream that has ended. */
  remove(stream: ListenStream): void {
    this.#openStreams.delete(stream);
  }

  /** Sends a notification to the streams that listen for it. */
  notify(notification: Notification): void {
    for (const stream of this.#openStreams) stream.notify(notification);
  }

  /** Answers all requests and closes their streams. */
  [Symbol.dispose](): void {
    for (const stream of [...this.#openStreams]) stream.end();
  }
}

/** The request that a stream answers. */
interface StreamRequest {
  /** The id as JSON. */
  readonly id: string;
  readonly subscriptions: ListenRequests;
  /** Whether the client takes members that JSON-RPC does not define. */
  readonly takesMembers: boolean;
}

/** One stream. */
class ListenStream {
  readonly #id: string;
  readonly #takesMembers: boolean;
  readonly #subscriptions: ListenRequests;
  readonly #streams: ListenStreams;
  readonly response: Response;
  #stream!: ReadableStreamDefaultController<Uint8Array>;
  readonly #listener: StreamListener;
  readonly #keepAliveTimer: ReturnType<typeof setInterval>;
  #isOpen = true;

  constructor({ id, subscriptions, takesMembers }: StreamRequest, streams: ListenStreams) {
    this.#id = id;
    this.#takesMembers = takesMembers;
    this.#subscriptions = subscriptions;
    this.#streams = streams;
    const body = new ReadableStream<Uint8Array>({
      start: (stream) => void (this.#stream = stream),
      cancel: () => this.#release(),
    }, new ByteLengthQueuingStrategy({ highWaterMark: 0 }));
    this.response = new Response(body, { headers: STREAM_HEADERS });
    this.#keepAliveTimer = setInterval(() => this.#write(KEEP_ALIVE), KEEP_ALIVE_MS);
    Deno.unrefTimer(this.#keepAliveTimer);
    this.#listener = streams.listen((method, params, members) =>
      this.notify({ method, params, members })
    );
  }

  /** Acknowledges the request. A stream without subscriptions ends at once. */
  begin(): void {
    const subscriptions = this.#subscriptions;
    this.#send(subscriptions.acknowledgement(this.#id));
    if (subscriptions.isIdle(this.#id)) this.end();
    else this.#listener.set(subscriptions.listened);
  }

  /** Sends a notification if the client listens for it. */
  notify(notification: Notification): void {
    for (const copy of this.#subscriptions.copiesOf(notification)) this.#send(copy);
  }

  /** Answers the request and closes the stream. */
  end(): void {
    if (!this.#isOpen) return;
    const members = this.#streams.answerMembers({
      _meta: { [SUBSCRIPTION_KEY]: parseExact(this.#id) },
    });
    this.#write(eventBytes(answerText(this.#id, members)));
    this.close();
  }

  /** Closes the stream without an answer. */
  close(): void {
    if (!this.#isOpen) return;
    this.#release();
    this.#stream.close();
  }

  #send(notification: Notification): void {
    const { method, members } = notification;
    if (members !== undefined && !this.#takesMembers) this.#listener.reportDropped(method, members);
    this.#write(eventBytes(JSON.stringify(messageWith(notification, this.#takesMembers))));
  }

  #write(bytes: Uint8Array): void {
    if (!this.#isOpen) return;
    if ((this.#stream.desiredSize ?? 0) > -this.#streams.queuedBytes) this.#stream.enqueue(bytes);
    else this.close();
  }

  #release(): void {
    this.#isOpen = false;
    clearInterval(this.#keepAliveTimer);
    this.#listener[Symbol.dispose]();
    this.#streams.remove(this);
  }
}

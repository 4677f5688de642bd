/**
 * One session over HTTP of a client of an older revision: a connection that receives messages in
 * POST requests, and sends messages in their answers and on event streams.
 *
 * @module
 */

import type { JsonObject } from "../../core/json.ts";
import { callAfter } from "../../io/waiting.ts";
import { answerText, type Message } from "../../protocol/message.ts";
import { type ClientTransport, type ProtocolHost, ProtocolServer } from "../../protocol/server.ts";
import type {
  ClientPeer,
  Connection,
  ConnectionFactory,
  Hello,
} from "../../protocol/connection.ts";
import { eventBytes, rejection, STREAM_HEADERS, TextAnswer } from "./_answer.ts";
import type { SentEvents } from "./_sent_events.ts";

/** The header that contains the session id. */
export const SESSION_HEADER = "mcp-session-id";

/** The PML process that answers the messages of a session. */
export interface SessionHost {
  /** Returns the description of PML for the handshake. */
  hello(isStateless: boolean): Hello;
  /** Opens a connection. `owner` identifies who may use its tasks and questions. */
  connect(peer: ClientPeer, isStateless: boolean, owner?: object): Connection;
}

/** The messages of one POST request. */
type Messages = readonly Message[];

/** A POST request that contains unanswered requests. */
interface Post {
  /** The name of the stream for its answers. */
  readonly stream: string;
  /** The ids of the requests, as JSON. */
  readonly waiting: Set<string>;
  /** Answers the POST request. */
  readonly answer: (answer: Response | TextAnswer) => void;
  /** Opens the stream after `ANSWER_WAIT_MS`. */
  readonly streamTimer: Disposable;
  readonly revision: string;
  isStream: boolean;
}

/** A stream that a client reads. */
interface StreamReader {
  readonly controller: ReadableStreamDefaultController<Uint8Array>;
  readonly keepAliveTimer: ReturnType<typeof setInterval>;
}

/** How long a POST request waits for its answer before it becomes a stream, in milliseconds. */
const ANSWER_WAIT_MS = 50;
/** How long a client waits before it resumes a broken stream, in milliseconds. */
const RETRY_MS = 1_000;
/** How often a stream sends a keep-alive comment, in milliseconds, and the comment. */
const [KEEP_ALIVE_MS, KEEP_ALIVE] = [15_000, new TextEncoder().encode(": keepalive\n\n")];
/** The name of the stream for messages that belong to no request. */
const STANDALONE = "standalone";
/** The first revision whose clients accept an event that contains no message. */
const FIRST_REVISION_WITH_EMPTY_EVENTS = "2025-11-25";

/** Serves one session. */
export class ClientSession implements ClientTransport, ProtocolHost, AsyncDisposable {
  readonly sessionId: string;
  readonly #host: SessionHost;
  readonly #server: ProtocolServer;
  readonly #events: SentEvents;
  readonly #posts = new Map<string, Post>();
  readonly #readers = new Map<string, StreamReader>();

  /** Starts a session. */
  constructor(id: string, sent: SentEvents, host: SessionHost) {
    this.sessionId = id;
    this.#host = host;
    this.#events = sent;
    // Each session is the owner of its tasks and questions. Its peer identifies it.
    const connections: ConnectionFactory = {
      connect: (peer, isStateless) => host.connect(peer, isStateless, peer),
    };
    this.#server = new ProtocolServer(Promise.resolve(connections), this, this);
  }

  hello(isStateless: boolean): Hello {
    return this.#host.hello(isStateless);
  }

  /** Does nothing, because older revisions have no `subscriptions/listen`. */
  listensTo(): void {}

  isTask(): boolean {
    return false;
  }

  /** Opens the connection, so that notifications reach the client. */
  async open(): Promise<void> {
    await this.#server.open();
  }

  /**
   * Serves the messages of a POST request. If it contains one request that is answered at once, the
   * answer is JSON; otherwise it is a stream. `revision` is the revision of the client.
   */
  async post(
    messages: Messages,
    { revision, isBatch }: { readonly revision: string; readonly isBatch: boolean },
  ): Promise<Response | TextAnswer> {
    const ids = messages.flatMap((message) => message.kind === "request" ? [message.id] : []);
    if (ids.length === 0) {
      this.#receiveAll(messages);
      return new Response(null, { status: 202 });
    }
    const { promise, resolve } = Promise.withResolvers<Response | TextAnswer>();
    const post: Post = {
      stream: crypto.randomUUID(),
      waiting: new Set(ids),
      answer: resolve,
      streamTimer: callAfter(ANSWER_WAIT_MS, () => this.#answerWithStream(post)),
      revision,
      isStream: false,
    };
    for (const id of ids) this.#posts.set(id, post);
    if (isBatch) this.#answerWithStream(post);
    this.#receiveAll(messages);
    return await promise;
  }

  /** Opens the stream for messages that belong to no request, or resumes a broken stream. */
  get(lastEvent: string | undefined): Response {
    const name = lastEvent === undefined ? STANDALONE : this.#events.streamOf(lastEvent);
    if (name === undefined) return rejection(400, { why: "its event is no longer stored" });
    if (this.#readers.has(name)) return rejection(409, { why: "its stream is open" });
    const response = this.#openStream(name);
    if (lastEvent === undefined) return response;
    for (const [id, text] of this.#events.messagesAfter(lastEvent)) {
      this.#enqueue(name, eventBytes(text, id));
    }
    const isAnswered = name !== STANDALONE &&
      !this.#posts.values().some(({ stream }) => stream === name);
    if (isAnswered) this.#close(name);
    return response;
  }

  send(message: JsonObject, related?: string): Promise<void> {
    const post = related === undefined ? undefined : this.#posts.get(related);
    if (post !== undefined && !post.isStream) this.#answerWithStream(post);
    // An answered or cancelled request no longer has a stream.
    if (related === undefined || post !== undefined) {
      this.#write(post?.stream ?? STANDALONE, JSON.stringify(message));
    }
    return Promise.resolve();
  }

  answer(id: string, members: string): void {
    const post = this.#posts.get(id);
    if (post === undefined) return;
    this.#posts.delete(id);
    post.waiting.delete(id);
    const text = answerText(id, members);
    if (!post.isStream) {
      post.streamTimer[Symbol.dispose]();
      return post.answer(new TextAnswer(200, text));
    }
    this.#write(post.stream, text);
    if (post.waiting.size === 0) this.#close(post.stream);
  }

  /** Closes the stream for messages that belong to no request. */
  closeStandalone(): void {
    this.#close(STANDALONE);
  }

  /** Cancels all requests and closes all streams. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const post of this.#posts.values()) if (!post.isStream) this.#answerWithStream(post);
    this.#posts.clear();
    for (const name of this.#readers.keys()) this.#close(name);
    await this.#server[Symbol.asyncDispose]();
  }

  #receiveAll(messages: Messages): void {
    for (const message of messages) {
      this.#server.receive(message);
      // A cancelled request gets no answer. Its stream stays open until the client closes it or the
      // session ends.
      if (message.kind === "cancel") this.#posts.delete(message.request);
    }
  }

  /** Answers a POST request with a stream. */
  #answerWithStream(post: Post): void {
    post.streamTimer[Symbol.dispose]();
    post.isStream = true;
    post.answer(this.#openStream(post.stream));
    if (post.revision < FIRST_REVISION_WITH_EMPTY_EVENTS) return;
    // With this event id, a client can resume a stream that broke before its first message.
    const firstEvent = `id: ${this.#events.add(post.stream, "")}\nretry: ${RETRY_MS}\ndata: \n\n`;
    this.#enqueue(post.stream, new TextEncoder().encode(firstEvent));
  }

  #openStream(name: string): Response {
    let keepAliveTimer: StreamReader["keepAliveTimer"] | undefined;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        keepAliveTimer = setInterval(() => controller.enqueue(KEEP_ALIVE), KEEP_ALIVE_MS);
        Deno.unrefTimer(keepAliveTimer);
        this.#readers.set(name, { controller, keepAliveTimer });
      },
      cancel: () => void this.#removeReader(name),
    });
    return new Response(body, { headers: { ...STREAM_HEADERS, [SESSION_HEADER]: this.sessionId } });
  }

  #removeReader(name: string): StreamReader | undefined {
    const reader = this.#readers.get(name);
    clearInterval(reader?.keepAliveTimer);
    this.#readers.delete(name);
    return reader;
  }

  #write(name: string, text: string): void {
    this.#enqueue(name, eventBytes(text, this.#events.add(name, text)));
  }

  #enqueue(name: string, bytes: Uint8Array): void {
    this.#readers.get(name)?.controller.enqueue(bytes);
  }

  #close(name: string): void {
    this.#removeReader(name)?.controller.close();
  }
}

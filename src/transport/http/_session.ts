/**
 * One session over HTTP of a client of an older revision: a connection whose messages come in POST
 * requests, and leave in their answers and on streams of events.
 *
 * @module
 */

import type { JsonObject } from "../../core/json.ts";
import { after } from "../../io/waiting.ts";
import { answerText, type Message } from "../../protocol/message.ts";
import { type Ends, ProtocolServer } from "../../protocol/server.ts";
import type { Connection, Face, Hello, Peer } from "../../protocol/connection.ts";
import { frameOf, rejection, STREAM_HEADERS, TextAnswer } from "./_answer.ts";
import type { SentEvents } from "./_sent_events.ts";

/** The header with the id of a session. */
export const SESSION_HEADER = "mcp-session-id";

/** The PML that answers the messages of a session. */
export interface SessionHost {
  /** Returns PML's own description of itself. */
  hello(isModern: boolean): Hello;
  /** Opens a connection. */
  connect(peer: Peer, isModern: boolean, party?: object): Connection;
}

/** The messages of one POST request. */
type Messages = readonly Message[];

/** A POST request with requests of the client that are not answered. */
interface Post {
  /** The name of its stream. */
  readonly stream: string;
  /** The ids of the requests, as JSON. */
  readonly waiting: Set<string>;
  /** Answers the POST request. */
  readonly answer: (answer: Response | TextAnswer) => void;
  /** Opens the stream after a moment. */
  readonly moment: Disposable;
  readonly revision: string;
  isStream: boolean;
}

/** A stream that a client reads. */
interface Reader {
  readonly controller: ReadableStreamDefaultController<Uint8Array>;
  readonly alive: ReturnType<typeof setInterval>;
}

/** How long an answer may take that has no stream, in milliseconds. */
const MOMENT_MS = 50;
/** How long a client waits before it asks for the rest of a stream that broke. */
const RETRY_MS = 1_000;
/** How often a stream shows that it is open, in milliseconds, and the comment that does so. */
const [ALIVE_MS, ALIVE] = [15_000, new TextEncoder().encode(": keepalive\n\n")];
/** The stream for messages that belong to no request. */
const STANDALONE = "standalone";
/** The first revision whose clients take an event without a message. */
const TAKES_EMPTY = "2025-11-25";

/** Serves one session. */
export class HttpSession implements Ends, AsyncDisposable {
  readonly id: string;
  readonly #server: ProtocolServer;
  readonly #sent: SentEvents;
  readonly #posts = new Map<string, Post>();
  readonly #readers = new Map<string, Reader>();

  /** Begins a session. */
  constructor(id: string, sent: SentEvents, host: SessionHost) {
    this.id = id;
    this.#sent = sent;
    // Each session is a separate party.
    const face: Face = { connect: (peer, isModern) => host.connect(peer, isModern, peer) };
    this.#server = new ProtocolServer(Promise.resolve(face), {
      ends: this,
      hello: (isModern) => host.hello(isModern),
      onListen() {},
      isTask: () => false,
    });
  }

  /** Opens the connection, so that notifications reach the client. */
  async open(): Promise<void> {
    await this.#server.open();
  }

  /**
   * Serves the messages of a POST request. An answer that comes at once is one JSON text, if there
   * is one request. `revision` is the one that the client speaks.
   */
  async post(
    messages: Messages,
    { revision, isBatch }: { readonly revision: string; readonly isBatch: boolean },
  ): Promise<Response | TextAnswer> {
    const ids = messages.flatMap((one) => one.kind === "request" ? [one.id] : []);
    if (ids.length === 0) {
      this.#take(messages);
      return new Response(null, { status: 202 });
    }
    const { promise, resolve } = Promise.withResolvers<Response | TextAnswer>();
    const post: Post = {
      stream: crypto.randomUUID(),
      waiting: new Set(ids),
      answer: resolve,
      moment: after(MOMENT_MS, () => this.#stream(post)),
      revision,
      isStream: false,
    };
    for (const id of ids) this.#posts.set(id, post);
    if (isBatch) this.#stream(post);
    this.#take(messages);
    return await promise;
  }

  /** Opens the stream for messages that belong to no request, or the rest of one that broke. */
  get(lastEvent: string | undefined): Response {
    const name = lastEvent === undefined ? STANDALONE : this.#sent.streamOf(lastEvent);
    if (name === undefined) return rejection(400, { why: "its event is not kept" });
    if (this.#readers.has(name)) return rejection(409, { why: "its stream is open" });
    const response = this.#read(name);
    if (lastEvent === undefined) return response;
    for (const [id, text] of this.#sent.after(lastEvent)) this.#enqueue(name, frameOf(text, id));
    const isOver = name !== STANDALONE &&
      !this.#posts.values().some(({ stream }) => stream === name);
    if (isOver) this.#close(name);
    return response;
  }

  send(message: JsonObject, related?: string): Promise<void> {
    const post = related === undefined ? undefined : this.#posts.get(related);
    if (post !== undefined && !post.isStream) this.#stream(post);
    // A request that is over has no stream.
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
      post.moment[Symbol.dispose]();
      return post.answer(new TextAnswer(200, text));
    }
    this.#write(post.stream, text);
    if (post.waiting.size === 0) this.#close(post.stream);
  }

  /** Closes the stream for messages that belong to no request. */
  hush(): void {
    this.#close(STANDALONE);
  }

  /** Cancels all requests and closes all streams. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const post of this.#posts.values()) if (!post.isStream) this.#stream(post);
    this.#posts.clear();
    for (const name of this.#readers.keys()) this.#close(name);
    await this.#server[Symbol.asyncDispose]();
  }

  #take(messages: Messages): void {
    for (const message of messages) {
      this.#server.take(message);
      // It gets no answer. Its stream stays open until the client leaves it or the session ends.
      if (message.kind === "cancel") this.#posts.delete(message.request);
    }
  }

  /** Answers a POST request with a stream. */
  #stream(post: Post): void {
    post.moment[Symbol.dispose]();
    post.isStream = true;
    post.answer(this.#read(post.stream));
    if (post.revision < TAKES_EMPTY) return;
    // A client that lost the stream before its first message can ask for the rest, too.
    const first = `id: ${this.#sent.add(post.stream, "")}\nretry: ${RETRY_MS}\ndata: \n\n`;
    this.#enqueue(post.stream, new TextEncoder().encode(first));
  }

  #read(name: string): Response {
    let alive: Reader["alive"] | undefined;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        alive = setInterval(() => controller.enqueue(ALIVE), ALIVE_MS);
        Deno.unrefTimer(alive);
        this.#readers.set(name, { controller, alive });
      },
      cancel: () => void this.#left(name),
    });
    return new Response(body, { headers: { ...STREAM_HEADERS, [SESSION_HEADER]: this.id } });
  }

  #left(name: string): Reader | undefined {
    const reader = this.#readers.get(name);
    clearInterval(reader?.alive);
    this.#readers.delete(name);
    return reader;
  }

  #write(name: string, text: string): void {
    this.#enqueue(name, frameOf(text, this.#sent.add(name, text)));
  }

  #enqueue(name: string, bytes: Uint8Array): void {
    this.#readers.get(name)?.controller.enqueue(bytes);
  }

  #close(name: string): void {
    this.#left(name)?.controller.close();
  }
}

/**
 * Answers usual requests of the newest revision over HTTP without the SDK, which makes a server for
 * each. What is not plainly usual is the SDK's, which says what is wrong with it.
 *
 * @module
 */

import type { IncomingHttpHeaders } from "node:http";
import type { JsonObject } from "../core/json.ts";
import type { Face } from "../gateway/connection.ts";
import type { Hello } from "../gateway/hello.ts";
import { onAbort } from "../io/waiting.ts";
import { peerOf } from "./_client_peer.ts";
import { revisionOf } from "./_envelope.ts";
import { capabilitiesIn } from "./_greeting.ts";
import { frameOf, statusOf, STREAM_HEADERS, TextAnswer } from "./_http_answer.ts";
import { ResultTexts } from "./_result_texts.ts";
import { type PostedRequest, takesBoth, usualIn, UsualRequests } from "./_usual_requests.ts";

/** What serves requests without the SDK. */
export interface HttpDirectOptions {
  readonly connect: Face["connect"];
  readonly hello: (isModern: boolean) => Hello;
  /** Takes what a client declares. */
  readonly declares: (able: JsonObject) => void;
}

/** A request whose body was read. */
export interface PostRequest {
  readonly headers: IncomingHttpHeaders;
  /** Aborted when its client has gone. */
  readonly signal: AbortSignal;
  /** Makes the request as the SDK takes it, without its body. */
  readonly web: () => Request;
}

/** How often a stream without events shows that it lives, in milliseconds, and what it sends. */
const [ALIVE_MS, ALIVE] = [15_000, new TextEncoder().encode(": keepalive\n\n")];
/** What names work that another process may have begun. */
const ELSEWHERE = ["requestState", "inputResponses", "taskId"];
/** The status of an answer that nobody waits for. */
const GONE = 499;

/** Answers the requests of one party. */
export class HttpDirect implements Disposable {
  readonly #options: HttpDirectOptions;
  readonly #texts: ResultTexts;
  /** What cancels each request. */
  readonly #open = new Set<() => void>();

  /** Takes what serves requests. */
  constructor(options: HttpDirectOptions) {
    this.#options = options;
    this.#texts = new ResultTexts(options.hello);
  }

  /** Answers a request; undefined, with nothing done, for one that is the SDK's. */
  answer(request: PostRequest, body: unknown): Promise<Response | TextAnswer> | undefined {
    const plain = plainOf(request, body);
    if (plain === undefined) return undefined;
    const able = capabilitiesIn(plain.message);
    if (able !== undefined) this.#options.declares(able);
    const peer = peerOf("modern", {
      greeted: undefined,
      server: () => undefined,
      tell: () => Promise.resolve(),
    });
    const connection = this.#options.connect(peer, true);
    const answer = new Answer();
    const requests = new UsualRequests({
      texts: this.#texts,
      opened: () => connection,
      connect: () => Promise.resolve(connection),
      answer: (id, said) => end(`{${said},"jsonrpc":"2.0","id":${id}}`),
      notify: (one) => {
        answer.tell({ jsonrpc: "2.0", ...one });
        return Promise.resolve();
      },
      ask: () => Promise.reject(new Error("A request of the newest revision is asked nothing")),
      headers: { get: (name) => request.headers[name]?.toString() ?? null },
    });
    const end = (said?: string) => {
      waiting[Symbol.dispose]();
      this.#open.delete(gone);
      answer.end(said);
      connection.close();
    };
    const gone = () => {
      requests[Symbol.dispose]();
      end();
    };
    this.#open.add(gone);
    const waiting = onAbort(request.signal, gone);
    requests.take(plain.params, plain);
    return answer.response;
  }

  /** Cancels all requests. */
  [Symbol.dispose](): void {
    for (const cancel of this.#open) cancel();
  }
}

/** Returns a request that is plainly usual, with headers that say what its body says. */
function plainOf({ headers, signal }: PostRequest, body: unknown): PostedRequest | undefined {
  const usual = usualIn(body, "modern");
  if (signal.aborted || usual === undefined) return undefined;
  const { method, params } = usual;
  const isPlain = headers["mcp-protocol-version"] === revisionOf(params) &&
    headers["mcp-method"] === method && namesSame(headers["mcp-name"], method, params) &&
    takesBoth(headers.accept) && ELSEWHERE.every((key) => !(key in params)) &&
    headers["mcp-session-id"] === undefined;
  return isPlain ? usual : undefined;
}

/** Returns whether the header names what the body names; it may be missing if that does not. */
function namesSame(said: unknown, method: string, { name, uri }: JsonObject): boolean {
  if (method.endsWith("/list") || method === "completion/complete") return true;
  // What is encoded names something else than it says.
  if (String(said).startsWith("=?")) return false;
  return said === (method === "resources/read" ? uri : name);
}

/** An answer: a JSON text, or a stream of events if something is told before. */
class Answer {
  readonly #made = Promise.withResolvers<Response | TextAnswer>();
  /** Resolves when the answer is over, or when it becomes a stream. */
  readonly response = this.#made.promise;
  #stream: ReadableStreamDefaultController<Uint8Array> | undefined;
  #alive: ReturnType<typeof setInterval> | undefined;
  #isOver = false;

  /** Sends a notification. */
  tell(message: object): void {
    if (!this.#isOver) this.#opened().enqueue(frameOf(JSON.stringify(message)));
  }

  /** Ends it with a message, as JSON, or without one. */
  end(said?: string): void {
    if (this.#isOver) return;
    this.#over();
    if (this.#stream === undefined) return this.#made.resolve(answerOf(said));
    if (said !== undefined) this.#stream.enqueue(frameOf(said));
    this.#stream.close();
  }

  #over(): void {
    this.#isOver = true;
    clearInterval(this.#alive);
  }

  #opened(): ReadableStreamDefaultController<Uint8Array> {
    if (this.#stream !== undefined) return this.#stream;
    const body = new ReadableStream<Uint8Array>({
      start: (stream) => void (this.#stream = stream),
      // Nothing can be written to it then, not even its end.
      cancel: () => this.#over(),
    });
    this.#made.resolve(new Response(body, { headers: STREAM_HEADERS }));
    this.#alive = setInterval(() => this.#stream?.enqueue(ALIVE), ALIVE_MS);
    Deno.unrefTimer(this.#alive);
    return this.#opened();
  }
}

function answerOf(said: string | undefined): Response | TextAnswer {
  if (said === undefined) return new Response(null, { status: GONE });
  const error = said.startsWith('{"error"') && JSON.parse(said).error;
  return new TextAnswer(statusOf(error), said);
}

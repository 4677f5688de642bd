/**
 * One side of a JSON-RPC connection to a client or a server. Sends requests and matches their
 * answers, and validates and dispatches the requests and notifications of the other side.
 *
 * @module
 */

import { type CallClient, NO_CLIENT, type OtherMembers } from "./call.ts";
import { Cancellation, type CancelListener } from "../core/cancellation.ts";
import { type Json, type JsonObject, objectOf, textOf } from "../core/json.ts";
import { numberOf } from "../core/exact_number.ts";
import { dropOldest } from "../core/memo.ts";
import { parseProgress } from "./progress.ts";
import { withoutNamed } from "./result_members.ts";
import { PmlError } from "../core/errors.ts";
import { RpcError } from "./errors.ts";
import { safeText } from "./safe_text.ts";
import type { CancelMessage, Message, RequestMessage } from "./message.ts";
import { messageMembers, notificationMembers, storeResultMembers } from "./message_members.ts";
import { addTrace, type RequestSpan, type TracedRequest } from "./trace.ts";
import { turnTime } from "../io/waiting.ts";

/** The id of a request of PML: an integer from 1 to 2^31 − 1, which all languages can decode. */
export type RequestId = number;

/** The options of a request. */
export interface RequestOptions {
  /** Cancels the request. */
  readonly cancellation: Cancellation;
  /** The client that waits for the request. */
  readonly client: CallClient;
  /** Whether the server may return a task. */
  readonly takesTasks?: boolean | undefined;
  /** Whether the request may last as long as the connection. It then does not count as pending. */
  readonly isLongLived?: boolean | undefined;
  /** The id, as JSON, of the other side's request during which PML sends it. */
  readonly related?: string | undefined;
  /** Members of the message that JSON-RPC does not define. Sent if the other side accepts them. */
  readonly members?: Pick<OtherMembers, "message"> | undefined;
  /** Whether to send the members in any case, to test whether the other side accepts them. */
  readonly isTrial?: boolean | undefined;
}

/** Returns the options of PML's own request, for which no client waits. */
export function withoutClient(cancellation: Cancellation = new Cancellation()): RequestOptions {
  return { cancellation, client: NO_CLIENT };
}

/** A request that PML sent. */
export interface SentRequest extends TracedRequest {
  /** The span of the request, if PML records traces. */
  readonly span: RequestSpan | undefined;
}

/** Counts and traces requests: gets the beginning and the end of each request. */
export interface RequestFollower {
  /** Begins the span of a request; undefined if no traces are recorded. */
  begin(request: SentRequest, params: JsonObject | undefined): RequestSpan | undefined;
  /** Receives the end of a request, with its result or its error. */
  end(request: SentRequest, result: unknown, error?: unknown): void;
}

/** The connection that a peer belongs to. */
export interface PeerHost {
  /**
   * Sends a message. `related` is the id, as JSON, of the other side's request to which the message
   * belongs.
   */
  send(message: JsonObject, related?: string): void;
  /**
   * Cancels a request, so that no answer can come. `params` are the params of
   * `notifications/cancelled`. If not set, the peer sends this notification, and an answer may still
   * come.
   */
  readonly cancel?: ((id: RequestId, params: JsonObject) => void) | undefined;
  /** Reads the `error` of an answer; `RpcError.of` if not set. */
  errorOf?(error: unknown): RpcError;
  /** Receives a request of the other side. `stream` is the request on whose stream it came. */
  onRequest(request: RequestMessage, stream?: RequestId): void;
  /** Receives a notification that belongs to no request of either side. */
  onNotification(notification: IncomingNotification, stream?: RequestId): void;
  /** Follows the requests of the peer. */
  readonly follower?: RequestFollower | undefined;
  /** Receives the members of a message that are not passed on, and the method of the message. */
  onDropped?(method: string, members: JsonObject): void;
}

/** A notification of the other side. */
export interface IncomingNotification {
  readonly method: string;
  readonly params: JsonObject;
  /** The members next to `method` and `params` that JSON-RPC does not define. */
  readonly members: JsonObject | undefined;
}

/** Receives events of a peer, to find out whether the other side still responds. */
export interface PeerObserver {
  /** Is called after each message of the other side. */
  onMessage(): void;
  /** Is called after a request was sent, unless it lasts as long as the connection. */
  onRequestSent(options: RequestOptions): void;
  /**
   * Is called after a request was cancelled, unless it may last as long as the connection. `activeAt`
   * is the time of its beginning or of its last progress, by `performance.now()`.
   */
  onRequestCancelled(request: { readonly activeAt: number; readonly reason: unknown }): void;
}

/** A request of the other side. */
export interface IncomingRequest {
  /** The id, as JSON. */
  readonly idText: string;
  readonly isCancelled: boolean;
  cancel(reason: unknown): void;
  /** Returns the result. */
  serve(): Promise<JsonObject>;
  /** Sends the result. Throws if it cannot be written. */
  answer(result: JsonObject): void;
  /** Sends the error. */
  refuse(error: unknown): void;
  /** Is called when the request was served, with its result or its error. */
  onEnded?(result: unknown, error?: unknown): void;
}

/** The methods whose params get no trace context: those of the handshake, and ping. */
const UNTRACED_METHODS = ["initialize", "server/discover", "ping"];
/** The params of progress in MCP. */
const PROGRESS_PARAMS = ["progressToken", "progress", "total", "message"];
/** The maximum length of the reason of a cancellation, in characters. */
const REASON_MAX = 2_000;
/** The maximum number of cancelled requests whose late answers are expected. */
const CANCELLED_MAX = 10_000;
/** The largest id. Ids start at 1. */
const LAST_ID = 2 ** 31 - 1;

/**
 * The reason for which the other side cancelled its request; the message is "" without a reason.
 */
export class CancelReason extends Error {}

type SentMembers = Pick<RequestOptions, "members" | "isTrial">;

/** A request without an answer. */
interface UnansweredRequest {
  pending: PendingRequest | undefined;
  /** When it began, or when its last progress came, by `performance.now()`. */
  activeAt: number;
}

/** One side of a connection. */
export class RpcPeer {
  /**
   * Whether the other side accepts messages with members that JSON-RPC does not define. Programs with
   * the TypeScript SDK ignore such a message, so that a request would have no answer.
   */
  takesMembers: boolean | undefined;
  readonly #host: PeerHost;
  /**
   * The requests without an answer. An entry is emptied when it is removed, because V8 keeps the
   * old tables of a Map, with their entries, in memory for a long time.
   */
  readonly #pending = new Map<RequestId, UnansweredRequest>();
  /** The ids of cancelled requests that the other side may still work on. */
  readonly #cancelled = new Set<RequestId>();
  /** The requests of the other side without an answer. Several may have the same id. */
  readonly #openRequests = new Set<IncomingRequest>();
  #observer: PeerObserver | undefined;
  #lastId: RequestId;
  #longLivedCount = 0;
  #endError: Error | undefined;

  /**
   * Takes an open connection. Ids begin after `last`, which is random by default, so that a late
   * answer from an earlier connection matches no request.
   */
  constructor(host: PeerHost, last = randomId()) {
    this.#host = host;
    this.#lastId = last;
  }

  /** The number of requests without an answer, including cancelled ones. */
  get pendingCount(): number {
    return this.#pending.size - this.#longLivedCount + this.#cancelled.size;
  }

  /** The id of the only request without an answer; undefined if there are none or several. */
  get onlyRequestId(): RequestId | undefined {
    const [id, ...others] = this.#pending.keys();
    return others.length === 0 ? id : undefined;
  }

  /** When the oldest pending request began, or had its last progress. */
  get waitingSince(): number | undefined {
    for (const unanswered of this.#pending.values()) {
      if (unanswered.pending?.isLongLived !== true) return unanswered.activeAt;
    }
    return undefined;
  }

  /** The options of the pending requests. */
  get pendingOptions(): readonly RequestOptions[] {
    return [...this.#pending.values()].flatMap(({ pending }) =>
      pending && !pending.isLongLived ? [pending.options] : []
    );
  }

  /** The number of requests of the other side without an answer. */
  get openCount(): number {
    return this.#openRequests.size;
  }

  /** Sets the observer of the requests. */
  observe(observer: PeerObserver): void {
    this.#observer = observer;
  }

  /** Sends a request and returns the unchanged result. Rejects with `RpcError` on failure. */
  request(method: string, params: JsonObject | undefined, options: RequestOptions): Promise<Json> {
    try {
      options.cancellation.throwIfCancelled();
      if (this.#endError) throw this.#endError;
      const pending = new PendingRequest(this, method, options);
      this.#send(pending, params);
      options.cancellation.add(pending);
      return pending.result;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #send(pending: PendingRequest, ownParams: JsonObject | undefined): void {
    const { id, isLongLived, options, method, sentAt } = pending;
    this.#pending.set(id, { pending, activeAt: sentAt });
    if (isLongLived) this.#longLivedCount++;
    const params = this.#paramsOf(pending, ownParams);
    const message = this.#withMembers(
      params === undefined ? { id, method } : { id, method, params },
      options,
    );
    try {
      this.#host.send(message, options.related);
    } catch (error) {
      this.#takePending(id);
      this.reportEnd(pending, undefined, error);
      throw error; // for example params that are nested too deep
    }
    if (!isLongLived) this.#observer?.onRequestSent(options);
  }

  /** Begins the span of a request. Returns its params with its progress token and its context. */
  #paramsOf(pending: PendingRequest, ownParams: JsonObject | undefined): JsonObject | undefined {
    const { id, method, options } = pending;
    const span = pending.span = this.#host.follower?.begin(pending, ownParams);
    const hasProgress = options.client.onProgress !== undefined;
    // Some servers refuse a handshake whose params have members that they do not expect.
    const isTraced = span !== undefined && !UNTRACED_METHODS.includes(method);
    if (!hasProgress && !isTraced) return ownParams;
    const ownMeta = ownParams?._meta;
    const meta: Record<string, Json> = ownMeta === undefined ? {} : { ...objectOf(ownMeta) };
    if (hasProgress) meta.progressToken = id;
    if (isTraced) addTrace(span, meta);
    return { ...ownParams, _meta: meta };
  }

  /** Reports the end of a request. */
  reportEnd(request: SentRequest, result: unknown, error?: unknown): void {
    this.#host.follower?.end(request, result, error);
  }

  /**
   * Fails a cancelled request, and notifies the other side. Sends only reasons that are meant for
   * the other side: an `RpcError`, or the reason that a client or a server sent with a cancellation.
   */
  cancel(id: RequestId, reason: unknown): void {
    const { activeAt = Infinity } = this.#pending.get(id) ?? {};
    const pending = this.#takePending(id);
    if (pending === undefined) return;
    const text = reasonText(reason);
    const params: JsonObject = { requestId: id, ...text !== undefined && { reason: text } };
    if (this.#host.cancel !== undefined) this.#host.cancel(id, params);
    else {
      this.#host.send({ method: "notifications/cancelled", params }, pending.options.related);
      if (!pending.isLongLived) this.#keepCancelled(id);
    }
    // Last, because a caller may read `pendingCount` as soon as its request has failed.
    pending.reject(reason);
    if (!pending.isLongLived) this.#observer?.onRequestCancelled({ activeAt, reason });
  }

  /**
   * Returns the options of a request. Without an id, returns the options of the latest request
   * whose client has this listener.
   */
  optionsOf(listener: "onServerRequest" | "onMessage", id?: RequestId): RequestOptions | undefined {
    if (id !== undefined) return this.#pending.get(id)?.pending?.options;
    return [...this.#pending.values()].findLast(({ pending }) => pending?.options.client[listener])
      ?.pending
      ?.options;
  }

  /**
   * Returns the client that should get a notification: the client of its request, or without an id
   * the only client that takes notifications. Returns undefined if there is no such client.
   */
  clientOf(id?: RequestId): CallClient | undefined {
    if (id !== undefined) return this.#pending.get(id)?.pending?.options.client;
    const all = [...this.#pending.values()]
      .flatMap(({ pending }) => pending?.options.client.onNotify ? [pending.options.client] : []);
    return all.length === 1 ? all[0] : undefined;
  }

  /** Sends a notification. */
  notify(method: string, params: JsonObject, options: SentMembers = {}): void {
    if (this.#endError) throw this.#endError;
    this.#host.send(this.#withMembers({ method, params }, options));
  }

  #withMembers(message: JsonObject, { members, isTrial }: SentMembers): JsonObject {
    const others = members?.message;
    if (others === undefined) return message;
    if (this.takesMembers === true || isTrial === true) return { ...others, ...message };
    this.reportDropped(textOf(message.method), others);
    return message;
  }

  /** Reports members of a message with this method that are not passed on. */
  reportDropped(method: string, members: JsonObject): void {
    this.#host.onDropped?.(method, members);
  }

  /**
   * Handles a message. `stream` is the request on whose stream it came. Returns false for an answer
   * that matches no request.
   */
  receive(message: Message, stream?: RequestId): boolean {
    this.#observer?.onMessage();
    switch (message.kind) {
      case "response":
        return this.#handleResponse(message.message);
      case "request":
        this.#host.onRequest(message, stream);
        return true;
      case "cancel":
        this.#latestOpen(message.request)?.cancel(reasonIn(message));
        return true;
      case "notification":
        this.#handleNotification(message.message, stream);
        return true;
    }
  }

  /** Serves a request of the other side, and answers it unless it was cancelled. */
  serve(request: IncomingRequest): Promise<void> {
    this.#openRequests.add(request);
    return serveRequest(request, this.#openRequests);
  }

  /**
   * Fails the request whose answer was too large to parse. `excerpt` is the beginning and the end of
   * the answer. Returns false if the excerpt contains no id of a request.
   */
  refuse(excerpt: string, error: Error): boolean {
    for (const [, digits] of excerpt.matchAll(/"id"\s*:\s*"?(\d{1,10})\b/g)) {
      const id = Number(digits);
      if (this.#cancelled.delete(id)) return true; // too late
      if (!this.#pending.has(id)) continue;
      this.fail(id, error);
      return true;
    }
    return false;
  }

  /** Fails one request. */
  fail(id: RequestId, error: Error): void {
    this.#takePending(id)?.reject(error);
  }

  /** Fails all current and later requests, and cancels the requests of the other side. */
  end(error: Error): void {
    this.#endError ??= error;
    for (const id of [...this.#pending.keys()]) this.#takePending(id)?.reject(error);
    for (const request of this.#openRequests) request.cancel(error);
    this.#openRequests.clear();
  }

  #handleResponse(message: JsonObject): boolean {
    const { id: rawId, result, error } = message;
    const id = parseRequestId(rawId);
    if (id === undefined) return false;
    if (this.#cancelled.delete(id)) return true; // too late
    const pending = this.#takePending(id);
    if (pending === undefined) return false;
    // JSON-RPC 1.0 programs add `"error": null` to each result.
    const isResult = error === undefined || error === null && result !== undefined;
    if (isResult) {
      storeResultMembers(message, result);
      pending.resolve(result as Json); // parsed JSON
    } else pending.reject(this.#host.errorOf?.(error) ?? RpcError.of(error));
    return true;
  }

  /** Returns an id that no pending or cancelled request has. */
  nextId(): RequestId {
    do {
      this.#lastId = this.#lastId % LAST_ID + 1;
    } while (this.#pending.has(this.#lastId) || this.#cancelled.has(this.#lastId));
    return this.#lastId;
  }

  #takePending(id: RequestId): PendingRequest | undefined {
    const request = this.#pending.get(id);
    if (request === undefined) return undefined;
    const { pending } = request;
    request.pending = undefined;
    this.#pending.delete(id);
    if (pending?.isLongLived) this.#longLivedCount--;
    return pending;
  }

  /** Returns the latest open request of the other side with an id. */
  #latestOpen(id: string): IncomingRequest | undefined {
    return [...this.#openRequests].findLast(({ idText }) => idText === id);
  }

  /** Keeps the id of a cancelled request, so that a late answer is not an error. */
  #keepCancelled(id: RequestId): void {
    this.#cancelled.add(id);
    dropOldest(this.#cancelled, CANCELLED_MAX);
  }

  #handleNotification(message: JsonObject, stream: RequestId | undefined): void {
    const [method, params] = [textOf(message.method), objectOf(message.params)];
    const members = messageMembers(message);
    if (method !== "notifications/progress") {
      return this.#host.onNotification({ method, params, members }, stream);
    }
    const progress = parseProgress(params);
    const id = parseRequestId(params.progressToken);
    const pending = id === undefined ? undefined : this.#pending.get(id);
    if (progress === undefined || pending === undefined) return;
    pending.activeAt = performance.now();
    const others = notificationMembers(withoutNamed(params, PROGRESS_PARAMS), members);
    const report = others === undefined ? progress : { ...progress, members: others };
    pending.pending?.options.client.onProgress?.(report);
  }
}

/** Serves a request, answers it unless it was cancelled, and removes it from `open`. */
export async function serveRequest(
  request: IncomingRequest,
  openRequests?: Set<IncomingRequest>,
): Promise<void> {
  try {
    const result = await request.serve();
    if (!request.isCancelled) request.answer(result);
    request.onEnded?.(result);
  } catch (error) {
    if (!request.isCancelled) request.refuse(error);
    request.onEnded?.(undefined, error);
  } finally {
    openRequests?.delete(request);
  }
}

/** A request that waits for its answer. */
class PendingRequest implements CancelListener, SentRequest {
  readonly id: RequestId;
  readonly method: string;
  readonly sentAt: number = turnTime();
  readonly options: RequestOptions;
  span: RequestSpan | undefined;
  /** The unchanged result of the other side. */
  readonly result: Promise<Json>;
  readonly #peer: RpcPeer;
  #resolve!: (result: Json) => void;
  #reject!: (error: unknown) => void;

  constructor(peer: RpcPeer, method: string, options: RequestOptions) {
    this.#peer = peer;
    this.id = peer.nextId();
    this.method = method;
    this.options = options;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Whether it may last as long as the connection. */
  get isLongLived(): boolean {
    return this.options.isLongLived === true;
  }

  /** Receives the unchanged result. */
  resolve(result: Json): void {
    this.options.cancellation.remove(this);
    this.#peer.reportEnd(this, result);
    this.#resolve(result);
  }

  /** Receives `RpcError`, or the reason why no answer comes. */
  reject(error: unknown): void {
    this.options.cancellation.remove(this);
    this.#peer.reportEnd(this, undefined, error);
    this.#reject(error);
  }

  onCancel(reason: unknown): void {
    this.#peer.cancel(this.id, reason);
  }
}

/** Returns the reason of a notification that cancels a request. */
function reasonIn({ reason }: CancelMessage): Error {
  const text = typeof reason === "string" ? reason : "";
  return new CancelReason(safeText(text.slice(0, REASON_MAX)));
}

/** Returns the text of a reason; undefined if the reason is not meant for the other side. */
function reasonText(reason: unknown): string | undefined {
  if (reason instanceof RpcError) return reason.message;
  const original = reason instanceof PmlError ? reason.cause : reason;
  return original instanceof CancelReason && original.message !== "" ? original.message : undefined;
}

/**
 * Returns a random id. Does not use `node:crypto`, which takes as long to load as Deno to start.
 */
function randomId(): RequestId {
  const [random = 0] = crypto.getRandomValues(new Uint32Array(1));
  return random % LAST_ID;
}

/** Parses PML's own id or progress token, which some programs return as text, or as `1.0`. */
function parseRequestId(id: unknown): RequestId | undefined {
  const number = numberOf(id);
  if (number !== undefined) return number;
  return typeof id === "string" && /^[1-9]\d{0,9}$/.test(id) ? Number(id) : undefined;
}

/**
 * One side of a JSON-RPC connection, towards a client or a server: requests with their answers, and
 * the requests and notifications of the other side. Every message of the other side is validated.
 *
 * @module
 */

import { type CallClient, NO_CLIENT, type OtherMembers } from "./call.ts";
import { Cancellation, type CancelListener } from "../core/cancellation.ts";
import { type Json, type JsonObject, objectOf, textOf } from "../core/json.ts";
import { numberOf } from "../core/exact_number.ts";
import { dropOldest } from "../core/memo.ts";
import { progressOf } from "./progress.ts";
import { withoutNamed } from "./result_members.ts";
import { PmlError } from "../core/errors.ts";
import { RpcError } from "./errors.ts";
import { safeText } from "./safe_text.ts";
import type { CancelMessage, Message, RequestMessage } from "./message.ts";
import { messageMembers, noteResultMembers, notificationMembers } from "./message_members.ts";

/** The id of a request of PML: an integer from 1 to 2^31 − 1, which all languages can decode. */
export type RequestId = number;

/** The options of a request. */
export interface RequestOptions {
  /** Cancels the request. */
  readonly cancellation: Cancellation;
  /** The client that waits for it. */
  readonly client: CallClient;
  /** Whether the server may return a task. */
  readonly takesTasks?: boolean | undefined;
  /** Whether it may last as long as the connection. Such a request does not count as pending. */
  readonly lasts?: boolean | undefined;
  /** The id, as JSON, of the request of the other side that it belongs to. */
  readonly related?: string | undefined;
  /** Members of the message that JSON-RPC does not define. Sent if the other side takes them. */
  readonly members?: Pick<OtherMembers, "message"> | undefined;
  /** Whether the request finds out whether the other side takes its members. */
  readonly isTrial?: boolean | undefined;
}

/** Returns the options of a request of PML itself, for which no client waits. */
export function withoutClient(cancellation: Cancellation = new Cancellation()): RequestOptions {
  return { cancellation, client: NO_CLIENT };
}

/** The connection that a peer belongs to. */
export interface PeerHost {
  /**
   * Sends a message. `related` is the id, as JSON, of the request of the other side that it belongs
   * to.
   */
  send(message: JsonObject, related?: string): void;
  /**
   * Cancels a request, so that it can no longer be answered. `params` are those of the notification.
   * Without it, the other side only gets a notification.
   */
  readonly cancel?: ((id: RequestId, params: JsonObject) => void) | undefined;
  /** Reads the `error` of an answer; `RpcError.of` if not set. */
  errorOf?(error: unknown): RpcError;
  /** Receives a request of the other side. `stream` is the request on whose stream it came. */
  onRequest(request: RequestMessage, stream?: RequestId): void;
  /** Receives a notification that belongs to no request of either side. */
  onNotification(notification: IncomingNotification, stream?: RequestId): void;
  /** Is called with members of a message that are not passed on, and with its method. */
  onDropped?(method: string, members: JsonObject): void;
}

/** A notification of the other side. */
export interface IncomingNotification {
  readonly method: string;
  readonly params: JsonObject;
  /** The members next to `method` and `params` that JSON-RPC does not define. */
  readonly members: JsonObject | undefined;
}

/** Follows the requests of a peer. */
export interface PeerObserver {
  /** Is called with each message of the other side. */
  onMessage(): void;
  /** Is called when a request was sent that does not last. */
  began(options: RequestOptions): void;
  /** Is called when such a request was cancelled that began, or had its last progress, `at`. */
  cancelled(request: { readonly at: number; readonly reason: unknown }): void;
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
}

/** The params of progress in MCP. */
const PROGRESS_PARAMS = ["progressToken", "progress", "total", "message"];
/** The most characters of the reason of a cancellation. */
const REASON_MAX = 2_000;
/** How many cancelled requests are remembered. */
const CANCELLED_MAX = 10_000;
/** The largest id. Ids start at 1. */
const LAST_ID = 2 ** 31 - 1;

/** The reason of a side that cancelled its request; "" if it gave none. */
export class CancelReason extends Error {}

type SentMembers = Pick<RequestOptions, "members" | "isTrial">;

/** A request without an answer. */
interface UnansweredRequest {
  of: PendingRequest | undefined;
  /** When it began, or when its last progress came, by `performance.now()`. */
  at: number;
}

/** One side of a connection. */
export class RpcPeer {
  /**
   * Whether the other side takes messages with members that JSON-RPC does not define. Programs with
   * the TypeScript SDK ignore such a message, so that a request would have no answer.
   */
  takesMembers: boolean | undefined;
  readonly #host: PeerHost;
  /**
   * The requests without an answer. Each entry is emptied when it is removed: the engine keeps old
   * tables of a Map, with their entries, for a long time.
   */
  readonly #pending = new Map<RequestId, UnansweredRequest>();
  /** The ids of cancelled requests that the other side may still work on. */
  readonly #cancelled = new Set<RequestId>();
  /** The requests of the other side without an answer. Several may have the same id. */
  readonly #open = new Set<IncomingRequest>();
  #observer: PeerObserver | undefined;
  #last: RequestId;
  #lasting = 0;
  #dead: Error | undefined;

  /**
   * Takes an open connection. Ids begin at random after `last`, so that a late answer
   * to an earlier connection matches no request.
   */
  constructor(host: PeerHost, last = randomId()) {
    this.#host = host;
    this.#last = last;
  }

  /** The number of requests without an answer, including cancelled ones. */
  get pending(): number {
    return this.#pending.size - this.#lasting + this.#cancelled.size;
  }

  /** The id of the request that is alone without an answer; undefined if there are several or none. */
  get onlyId(): RequestId | undefined {
    const [id, ...others] = this.#pending.keys();
    return others.length === 0 ? id : undefined;
  }

  /** When the oldest request that does not last began, or had its last progress. */
  get waitingSince(): number | undefined {
    for (const pending of this.#pending.values()) {
      if (pending.of?.lasts !== true) return pending.at;
    }
    return undefined;
  }

  /** The options of the requests without an answer that do not last. */
  get waiting(): readonly RequestOptions[] {
    return [...this.#pending.values()].flatMap(({ of }) => of && !of.lasts ? [of.options] : []);
  }

  /** The number of requests of the other side without an answer. */
  get open(): number {
    return this.#open.size;
  }

  /** Sets the observer of the requests. */
  observe(observer: PeerObserver): void {
    this.#observer = observer;
  }

  /** Sends a request and returns the unchanged result. Rejects with `RpcError` if it fails. */
  request(method: string, params: JsonObject | undefined, options: RequestOptions): Promise<Json> {
    try {
      options.cancellation.throwIfCancelled();
      if (this.#dead) throw this.#dead;
      const pending = new PendingRequest(this, this.#nextId(), options);
      this.#send(pending, method, params);
      options.cancellation.add(pending);
      return pending.result;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #send(pending: PendingRequest, method: string, own: JsonObject | undefined): void {
    const { id, lasts, options } = pending;
    this.#pending.set(id, { of: pending, at: performance.now() });
    if (lasts) this.#lasting++;
    const params = options.client.onProgress === undefined
      ? own
      : { ...own, _meta: { ...objectOf(own?._meta), progressToken: id } };
    const message = this.#withMembers(
      params === undefined ? { id, method } : { id, method, params },
      options,
    );
    try {
      this.#host.send(message, options.related);
    } catch (error) {
      this.#takePending(id);
      throw error; // for example params that are nested too deep
    }
    if (!lasts) this.#observer?.began(options);
  }

  /**
   * Fails a cancelled request, and notifies the other side. A reason that is meant for it is sent: an
   * `RpcError`, or the reason of the side that cancelled.
   */
  cancel(id: RequestId, reason: unknown): void {
    const { at = Infinity } = this.#pending.get(id) ?? {};
    const pending = this.#takePending(id);
    if (pending === undefined) return;
    const text = reasonText(reason);
    const params: JsonObject = { requestId: id, ...text !== undefined && { reason: text } };
    if (this.#host.cancel !== undefined) this.#host.cancel(id, params);
    else {
      this.#host.send({ method: "notifications/cancelled", params }, pending.options.related);
      if (!pending.lasts) this.#remember(id);
    }
    // A caller may check `pending` as soon as its request has failed.
    pending.failed(reason);
    if (!pending.lasts) this.#observer?.cancelled({ at, reason });
  }

  /**
   * Returns the options of a request. Without an id, returns those of the latest request that has a
   * listener.
   */
  latest(listener: "onAsk" | "onMessage", id?: RequestId): RequestOptions | undefined {
    if (id !== undefined) return this.#pending.get(id)?.of?.options;
    return [...this.#pending.values()].findLast(({ of }) => of?.options.client[listener])?.of
      ?.options;
  }

  /**
   * Returns the client that a notification is for: that of its request, or of the only request whose
   * client takes notifications. Undefined if that is not known.
   */
  clientOf(id?: RequestId): CallClient | undefined {
    if (id !== undefined) return this.#pending.get(id)?.of?.options.client;
    const all = [...this.#pending.values()]
      .flatMap(({ of }) => of?.options.client.onNotify ? [of.options.client] : []);
    return all.length === 1 ? all[0] : undefined;
  }

  /** Sends a notification. */
  notify(method: string, params: JsonObject, options: SentMembers = {}): void {
    if (this.#dead) throw this.#dead;
    this.#host.send(this.#withMembers({ method, params }, options));
  }

  #withMembers(message: JsonObject, { members, isTrial }: SentMembers): JsonObject {
    const others = members?.message;
    if (others === undefined) return message;
    if (this.takesMembers === true || isTrial === true) return { ...others, ...message };
    this.dropped(textOf(message.method), others);
    return message;
  }

  /** Reports members of a message with this method that are not passed on. */
  dropped(method: string, members: JsonObject): void {
    this.#host.onDropped?.(method, members);
  }

  /**
   * Handles a message, which may have come on the stream of one request. Returns false if it answers
   * no request.
   */
  receive(message: Message, stream?: RequestId): boolean {
    this.#observer?.onMessage();
    switch (message.kind) {
      case "response":
        return this.#answered(message.message);
      case "request":
        this.#host.onRequest(message, stream);
        return true;
      case "cancel":
        this.#latestOpen(message.request)?.cancel(reasonIn(message));
        return true;
      case "notification":
        this.#notified(message.message, stream);
        return true;
    }
  }

  /** Serves a request of the other side, and answers it unless it was cancelled. */
  serve(request: IncomingRequest): Promise<void> {
    this.#open.add(request);
    return served(request, this.#open);
  }

  /** Fails the request whose id is in the kept ends of its answer. Returns false without an id. */
  refuse(ends: string, error: Error): boolean {
    for (const [, digits] of ends.matchAll(/"id"\s*:\s*"?(\d{1,10})\b/g)) {
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
    this.#takePending(id)?.failed(error);
  }

  /** Fails all present and later requests, and cancels the requests of the other side. */
  end(error: Error): void {
    this.#dead ??= error;
    for (const id of [...this.#pending.keys()]) this.#takePending(id)?.failed(error);
    for (const request of this.#open) request.cancel(error);
    this.#open.clear();
  }

  #answered(message: JsonObject): boolean {
    const { id: rawId, result, error } = message;
    const id = ownIdOf(rawId);
    if (id === undefined) return false;
    if (this.#cancelled.delete(id)) return true; // too late
    const pending = this.#takePending(id);
    if (pending === undefined) return false;
    // JSON-RPC 1.0 programs add `"error": null` to each result.
    const isResult = error === undefined || error === null && result !== undefined;
    if (isResult) {
      noteResultMembers(message, result);
      pending.answered(result as Json); // parsed JSON
    } else pending.failed(this.#host.errorOf?.(error) ?? RpcError.of(error));
    return true;
  }

  /** Returns an id that no open or cancelled request has. */
  #nextId(): RequestId {
    do {
      this.#last = this.#last % LAST_ID + 1;
    } while (this.#pending.has(this.#last) || this.#cancelled.has(this.#last));
    return this.#last;
  }

  #takePending(id: RequestId): PendingRequest | undefined {
    const request = this.#pending.get(id);
    if (request === undefined) return undefined;
    const { of: pending } = request;
    request.of = undefined;
    this.#pending.delete(id);
    if (pending?.lasts) this.#lasting--;
    return pending;
  }

  /** Returns the latest open request of the other side with an id. */
  #latestOpen(id: string): IncomingRequest | undefined {
    return [...this.#open].findLast(({ idText }) => idText === id);
  }

  /** Remembers a cancelled request, so that a late answer to it is not an error. */
  #remember(id: RequestId): void {
    this.#cancelled.add(id);
    dropOldest(this.#cancelled, CANCELLED_MAX);
  }

  #notified(message: JsonObject, stream: RequestId | undefined): void {
    const [method, params] = [textOf(message.method), objectOf(message.params)];
    const members = messageMembers(message);
    if (method !== "notifications/progress") {
      return this.#host.onNotification({ method, params, members }, stream);
    }
    const progress = progressOf(params);
    const id = ownIdOf(params.progressToken);
    const pending = id === undefined ? undefined : this.#pending.get(id);
    if (progress === undefined || pending === undefined) return;
    pending.at = performance.now();
    const others = notificationMembers(withoutNamed(params, PROGRESS_PARAMS), members);
    const report = others === undefined ? progress : { ...progress, members: others };
    pending.of?.options.client.onProgress?.(report);
  }
}

/** Serves a request and answers it, unless it was cancelled. Removes it from `open` then. */
export async function served(
  request: IncomingRequest,
  open?: Set<IncomingRequest>,
): Promise<void> {
  try {
    const result = await request.serve();
    if (!request.isCancelled) request.answer(result);
  } catch (error) {
    if (!request.isCancelled) request.refuse(error);
  } finally {
    open?.delete(request);
  }
}

/** A request that waits for its answer. */
class PendingRequest implements CancelListener {
  readonly id: RequestId;
  readonly options: RequestOptions;
  /** The unchanged result of the other side. */
  readonly result: Promise<Json>;
  readonly #peer: RpcPeer;
  #resolve!: (result: Json) => void;
  #reject!: (error: unknown) => void;

  constructor(peer: RpcPeer, id: RequestId, options: RequestOptions) {
    this.#peer = peer;
    this.id = id;
    this.options = options;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Whether it may last as long as the connection. */
  get lasts(): boolean {
    return this.options.lasts === true;
  }

  /** Receives the unchanged result. */
  answered(result: Json): void {
    this.options.cancellation.remove(this);
    this.#resolve(result);
  }

  /** Receives `RpcError`, or the reason why no answer comes. */
  failed(error: unknown): void {
    this.options.cancellation.remove(this);
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

/** Returns the text of a reason that is meant for the other side. */
function reasonText(reason: unknown): string | undefined {
  if (reason instanceof RpcError) return reason.message;
  const own = reason instanceof PmlError ? reason.cause : reason;
  return own instanceof CancelReason && own.message !== "" ? own.message : undefined;
}

/** Returns a random id. `node:crypto` takes as long to load as Deno to start. */
function randomId(): RequestId {
  const [random = 0] = crypto.getRandomValues(new Uint32Array(1));
  return random % LAST_ID;
}

/** Parses an id or a progress token of PML. Some programs return it as text, or as `1.0`. */
function ownIdOf(id: unknown): RequestId | undefined {
  const number = numberOf(id);
  if (number !== undefined) return number;
  return typeof id === "string" && /^[1-9]\d{0,9}$/.test(id) ? Number(id) : undefined;
}

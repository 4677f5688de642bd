/**
 * JSON-RPC with a server: requests, and the requests and notifications of the server. No message of
 * the server is trusted.
 *
 * @module
 */

import { randomInt } from "node:crypto";
import { type CallClient, NO_CLIENT } from "../core/call.ts";
import { Cancellation, type CancelListener } from "../core/cancellation.ts";
import { isObject, type Json, type JsonObject, listOf, objectOf } from "../core/json.ts";
import { messageOf, PmlError } from "../core/errors.ts";
import { numberOf, numberText } from "../core/exact_number.ts";
import { dropOldest } from "../core/memo.ts";
import { ownProgress, progressOf } from "../core/progress.ts";
import { ERROR, RpcError } from "../protocol/errors.ts";
import { Responsiveness, type ResponsivenessOptions, TIMES } from "./_responsiveness.ts";
import type { RequestId } from "./wire.ts";

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
}

/** Returns the options of a request of PML itself, for which no client waits. */
export function withoutClient(cancellation: Cancellation = new Cancellation()): RequestOptions {
  return { cancellation, client: NO_CLIENT };
}

/** The options of `Peer`. */
export interface PeerOptions {
  /** The name of the server. */
  readonly name: string;
  readonly send: (message: JsonObject) => void;
  /**
   * Cancels a request, so that no answer can come any more. Without it, the server only gets a
   * notification.
   */
  readonly cancel?: ((id: RequestId) => void) | undefined;
  /** Removes secrets from a message of the server that is not a result. */
  readonly withoutSecrets: <T>(message: T) => T;
  /** Returns the request by which PML asks whether the server answers; `ping` if not set. */
  readonly probe?: () => { readonly method: string; readonly params?: JsonObject };
  /** Is called when the server stops answering, and when it answers again. */
  readonly onResponsive?: (isResponsive: boolean) => void;
  /** Is called when the server is to be ended, because it sent nothing for `ms`. */
  readonly onHung?: (ms: number) => void;
  /** Answers a request of the server. */
  readonly onRequest: (request: PeerRequest) => Promise<JsonObject>;
  readonly onNotification: (method: string, params: JsonObject, requestId?: RequestId) => void;
  /** The times of `Responsiveness`. */
  readonly times?: ResponsivenessOptions["times"];
}

/** A request of the server. */
export interface PeerRequest {
  readonly method: string;
  readonly params: JsonObject;
  readonly signal: AbortSignal;
  /** The server's own name of the request, in the newest revision. */
  readonly key?: string;
  /** The client's request that it belongs to, if that is known. */
  readonly during: RequestOptions | undefined;
}

/** How many cancelled requests are remembered. */
const CANCELLED_MAX = 10_000;
/** The largest id: the largest integer that every server can decode. Ids start at 1. */
const LAST_ID = 2 ** 31 - 1;
/** The most characters of a request id of the server. */
const ID_MAX = 1_000;
/** How many requests of the server may be open. */
const OPEN_MAX = 64;

/** A request without an answer. */
interface Held {
  of: PendingRequest | undefined;
  /** When it began, or when its last progress came, by `performance.now()`. */
  at: number;
}

/** The server at the other end of a connection. */
export class Peer {
  readonly #options: PeerOptions;
  /**
   * The requests without an answer. What ends is emptied: the engine keeps old tables of a Map, with
   * what was in them, for long.
   */
  readonly #pending = new Map<RequestId, Held>();
  /** The open requests of the server, by id. */
  readonly #open = new Map<string, AbortController>();
  /** The answers to requests of the server that are being made. */
  readonly #answering = new Set<Promise<void>>();
  /** The number of requests that the server has made. */
  requestsOfServer = 0;
  /** The ids of cancelled requests that the server may still work on. */
  readonly #cancelled = new Set<RequestId>();
  readonly #responsiveness: Responsiveness;
  #last: RequestId;
  #lasting = 0;
  #dead: Error | undefined;

  /**
   * Takes the options of an open connection. Ids begin at random after `last`, so that a late answer
   * to an earlier connection matches no request.
   */
  constructor(options: PeerOptions, last = randomInt(LAST_ID)) {
    this.#options = options;
    this.#last = last;
    this.#responsiveness = new Responsiveness({
      nextId: () => this.#nextId(),
      ping: (id) => options.send({ id, ...options.probe?.() ?? { method: "ping" } }),
      waitingSince: () => this.#oldest()?.at,
      onChange: (isUnresponsive) => {
        for (const { of } of [...this.#pending.values()]) {
          if (of?.lasts !== true) this.#report(of, isUnresponsive);
        }
        options.onResponsive?.(!isUnresponsive);
      },
      onHung: (ms) => options.onHung?.(ms),
      times: options.times,
    });
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

  /** Whether the server did not answer the ping that follows a cancelled request. */
  get hung(): boolean {
    return this.#responsiveness.hung;
  }

  /** Sends a request and returns the unchanged result. Rejects with `RpcError` if it fails. */
  request(method: string, params: JsonObject, options: RequestOptions): Promise<Json> {
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

  #send(pending: PendingRequest, method: string, params: JsonObject): void {
    const { id, lasts } = pending;
    this.#pending.set(id, { of: pending, at: performance.now() });
    if (lasts) this.#lasting++;
    else this.#responsiveness.began();
    const all = pending.client.onProgress === undefined
      ? params
      : { ...params, _meta: { ...objectOf(params._meta), progressToken: id } };
    try {
      this.#options.send({ id, method, params: all });
    } catch (error) {
      this.#taken(id);
      throw error; // for example params that are nested too deep
    }
    if (this.#responsiveness.isUnresponsive) this.#report(pending, true);
  }

  /**
   * Fails a cancelled request, and notifies the server. A server that sent nothing until the deadline
   * of a request is ended.
   */
  cancel(id: RequestId, reason: unknown): void {
    const { at = Infinity } = this.#pending.get(id) ?? {};
    const pending = this.#taken(id);
    if (pending === undefined) return;
    const isLate = reason instanceof PmlError && reason.code === "TIMED_OUT";
    const silentMs = isLate ? this.#responsiveness.silentSince(at) : undefined;
    const { cancel } = this.#options;
    if (cancel !== undefined) cancel(id);
    else this.#options.send({ method: "notifications/cancelled", params: { requestId: id } });
    if (pending.lasts !== true) {
      if (cancel === undefined) this.#remember(id);
      this.#responsiveness.cancelled();
    }
    // Who waited may look at once whether the server still works on something.
    pending.failed(reason);
    if (silentMs !== undefined) this.#options.onHung?.(silentMs);
  }

  /**
   * Returns the options of a request. Without an id, returns those of the latest request that has a
   * listener.
   */
  latest(listener: "onAsk" | "onMessage", requestId?: RequestId): RequestOptions | undefined {
    if (requestId !== undefined) return this.#pending.get(requestId)?.of?.options;
    return [...this.#pending.values()].findLast(({ of }) => of?.client[listener])?.of?.options;
  }

  /**
   * Handles a message, which may have come on the stream of one request. Returns false if it is no
   * valid message, or answers no request.
   */
  receive(message: unknown, requestId?: RequestId): boolean {
    if (!isObject(message)) return false;
    this.#responsiveness.heard();
    const { method, result, error } = message;
    const params = objectOf(message.params);
    if (typeof method === "string") {
      const { id } = message;
      if (id === undefined) this.#notified(method, params, requestId);
      else if (isId(id)) {
        const request = { method, params, during: this.latest("onAsk", requestId) };
        this.requestsOfServer++;
        const answering = this.#answer(id, request).finally(() =>
          this.#answering.delete(answering)
        );
        this.#answering.add(answering);
      } else return false;
      return true;
    }
    const id = ownIdOf(message.id);
    if (id === undefined) return false;
    if (this.#responsiveness.isPing(id)) {
      this.#responsiveness.pinged();
      return true;
    }
    if (this.#cancelled.delete(id)) return true; // too late
    const pending = this.#taken(id);
    if (pending === undefined) return false;
    // Servers of JSON-RPC 1.0 add a member "error" that is null to each result.
    const isResult = error === undefined || error === null && result !== undefined;
    if (isResult) pending.answered(result as Json); // parsed JSON
    else {
      const cleaned = this.#options.withoutSecrets(error);
      pending.failed(RpcError.of(withAddresses(cleaned, error)));
    }
    return true;
  }

  /** Fails the request whose id is in the ends of its answer; false if no id is found. */
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

  /** Fails one request. A ping that could not be sent does not mean that the server hangs. */
  fail(id: RequestId, error: Error): void {
    if (this.#responsiveness.isPing(id)) this.#responsiveness.pinged();
    this.#taken(id)?.failed(error);
  }

  /** Resolves when the present requests of the server are answered. */
  async answered(): Promise<void> {
    await Promise.all(this.#answering);
  }

  /** Fails all requests, those to come too, and aborts the requests of the server. */
  end(error: Error): void {
    this.#dead ??= error;
    this.#responsiveness[Symbol.dispose]();
    for (const id of [...this.#pending.keys()]) this.#taken(id)?.failed(error);
    for (const abort of this.#open.values()) abort.abort(error);
    this.#open.clear();
  }

  /** Returns an id that no open or cancelled request has. */
  #nextId(): RequestId {
    do {
      this.#last = this.#last % LAST_ID + 1;
    } while (
      this.#pending.has(this.#last) || this.#cancelled.has(this.#last) ||
      this.#responsiveness.isPing(this.#last)
    );
    return this.#last;
  }

  #taken(id: RequestId): PendingRequest | undefined {
    const held = this.#pending.get(id);
    if (held === undefined) return undefined;
    const { of: pending } = held;
    held.of = undefined;
    this.#pending.delete(id);
    if (pending?.lasts) this.#lasting--;
    return pending;
  }

  /** Remembers a cancelled request: a server need not answer it, but a late answer is no error. */
  #remember(id: RequestId): void {
    this.#cancelled.add(id);
    dropOldest(this.#cancelled, CANCELLED_MAX);
  }

  /** Reports to the client of a request whether the server answers. */
  #report(pending: PendingRequest | undefined, isUnresponsive: boolean): void {
    const message = `${this.#options.name} has not answered for ${TIMES.quietMs / 1_000} s`;
    const own = isUnresponsive ? "unresponsive" : "responsive";
    pending?.client.onProgress?.(ownProgress(own, message));
  }

  /** Returns the oldest request that waits for its answer. */
  #oldest(): Held | undefined {
    for (const held of this.#pending.values()) {
      if (held.of?.lasts !== true) return held;
    }
    return undefined;
  }

  #notified(method: string, params: JsonObject, requestId: RequestId | undefined): void {
    switch (method) {
      case "notifications/progress": {
        const progress = progressOf(params);
        const id = ownIdOf(params.progressToken);
        const pending = id === undefined ? undefined : this.#pending.get(id);
        if (progress === undefined || pending === undefined) return;
        pending.at = performance.now();
        pending.of?.client.onProgress?.(progress);
        return;
      }
      case "notifications/cancelled":
        return this.#open.get(JSON.stringify(params.requestId) ?? "")?.abort();
      default:
        return this.#options.onNotification(method, params, requestId);
    }
  }

  async #answer(id: Json, request: Omit<PeerRequest, "signal">): Promise<void> {
    const key = JSON.stringify(id);
    if (this.#open.size >= OPEN_MAX) {
      const error = { code: ERROR.internalError, message: "too many requests are open" };
      return this.#options.send({ id, error });
    }
    const abort = new AbortController();
    // If an id is used twice, the later request has it.
    this.#open.set(key, abort);
    try {
      const result = await this.#options.onRequest({ ...request, signal: abort.signal });
      if (!abort.signal.aborted) this.#options.send({ id, result });
    } catch (error) {
      const code = error instanceof RpcError ? error.code : ERROR.internalError;
      // Most servers pass on only the message, so the message must say what to do.
      const hint = error instanceof PmlError && error.hint !== undefined ? `. ${error.hint}` : "";
      const message = messageOf(error) + hint;
      if (!abort.signal.aborted) this.#options.send({ id, error: { code, message } });
    } finally {
      if (this.#open.get(key) === abort) this.#open.delete(key);
    }
  }
}

/** A request that waits for its answer. */
class PendingRequest implements CancelListener {
  readonly id: RequestId;
  readonly options: RequestOptions;
  /** The unchanged result of the server. */
  readonly result: Promise<Json>;
  readonly #peer: Peer;
  #resolve!: (result: Json) => void;
  #reject!: (error: unknown) => void;

  constructor(peer: Peer, id: RequestId, options: RequestOptions) {
    this.#peer = peer;
    this.id = id;
    this.options = options;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  get client(): CallClient {
    return this.options.client;
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

/** Reads an id or a progress token of ours. Some servers return it as text, or as `1.0`. */
function ownIdOf(id: unknown): RequestId | undefined {
  const number = numberOf(id);
  if (number !== undefined) return number;
  return typeof id === "string" && /^[1-9]\d{0,9}$/.test(id) ? Number(id) : undefined;
}

/** Returns whether a server may name a request so. The answer has the same text. */
function isId(id: unknown): id is Json {
  const text = typeof id === "string" ? id : numberText(id);
  return text !== undefined && text.length <= ID_MAX;
}

/** Returns the error of a response with the addresses as its server wrote them. */
function withAddresses(cleaned: unknown, error: unknown): unknown {
  const { code, data } = objectOf(error);
  if (code !== ERROR.urlElicitationRequired) return cleaned;
  const own = listOf(objectOf(data).elicitations).map(objectOf);
  const known = objectOf(cleaned);
  // A URL without its key would lead to another page.
  const elicitations = listOf(objectOf(known.data).elicitations)
    .map((one, at) => ({ ...objectOf(one), ...own[at]?.url && { url: own[at].url } }));
  return { ...known, data: { ...objectOf(known.data), elicitations } };
}

/**
 * Detects servers that stop answering while requests wait for them. PML sends a ping to a server
 * that sends nothing for a while. A server that does not answer the ping either counts as
 * unresponsive, although it may only be busy. It counts as hung, and is ended, only after a request
 * was cancelled.
 *
 * @module
 */

import { PmlError } from "../../core/errors.ts";
import type { JsonObject } from "../../core/json.ts";
import { ownProgress } from "../../protocol/progress.ts";
import {
  type PeerObserver,
  type RequestOptions,
  type RpcPeer,
  withoutClient,
} from "../../protocol/rpc_peer.ts";
import { turnTime } from "../../io/waiting.ts";

/** The connection to the server that is watched. */
export interface WatchedConnection {
  /** The name of the server. */
  readonly name: string;
  /** Returns the request by which PML asks whether the server answers. */
  probe(): { readonly method: string; readonly params?: JsonObject };
  /** Is called when the server stops answering, and when it answers again. */
  onResponsive(isResponsive: boolean): void;
  /** Is called when the server must be ended, because it did not answer for `ms` milliseconds. */
  onHung(ms: number): void;
}

/** How long a server may send nothing before PML sends a ping, and how long the answer may take. */
const TIMES = { quietMs: 10_000, pongMs: 1_000 };

/** Watches the server of one connection, with one timer that is set while requests wait. */
export class Responsiveness implements PeerObserver, Disposable {
  readonly #peer: RpcPeer;
  readonly #connection: WatchedConnection;
  readonly #times: typeof TIMES;
  /** When the server sent its last message. */
  #lastMessageAt = -Infinity;
  /** When PML sent a ping that has no answer yet; undefined if there is none. */
  #pingedAt: number | undefined;
  /**
   * When a request was cancelled for the first time since the server last answered a ping; undefined
   * if none was cancelled.
   */
  #cancelledAt: number | undefined;
  #isUnresponsive = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isDisposed = false;

  /** `times` are the times to wait, in milliseconds. */
  constructor(peer: RpcPeer, connection: WatchedConnection, times: typeof TIMES = TIMES) {
    this.#peer = peer;
    this.#connection = connection;
    this.#times = times;
    peer.observe(this);
  }

  /**
   * Whether a request was cancelled, and the server has not answered the following ping in time.
   */
  get isHung(): boolean {
    return this.#cancelledAt !== undefined && this.#isPingLate();
  }

  /** Notes that the server sent a message. */
  onMessage(): void {
    this.#lastMessageAt = turnTime();
    if (this.#isUnresponsive) this.#setUnresponsive(false);
  }

  /** Notes that a request begins. */
  onRequestSent(options: RequestOptions): void {
    if (this.#timer === undefined) this.#setTimer(this.#times.quietMs);
    if (this.#isUnresponsive) this.#report(options);
  }

  /**
   * Notes that a request was cancelled, and sends a ping. `activeAt` is when the request was sent,
   * or when its last progress came. Ends the server if it sent nothing from then to the deadline of
   * the request, not even an answer to a ping.
   */
  onRequestCancelled(
    { activeAt, reason }: { readonly activeAt: number; readonly reason: unknown },
  ): void {
    const isLate = reason instanceof PmlError && reason.code === "TIMED_OUT";
    const isSilent = isLate && this.#lastMessageAt <= activeAt && this.#isPingLate();
    this.#cancelledAt ??= performance.now();
    this.#ping();
    if (this.#timer === undefined) this.#setTimer(this.#times.quietMs);
    if (isSilent) this.#connection.onHung(performance.now() - activeAt);
  }

  /** Stops watching the server. */
  [Symbol.dispose](): void {
    this.#isDisposed = true;
    clearTimeout(this.#timer);
    if (this.#isUnresponsive) this.#setUnresponsive(false);
  }

  #ping(): void {
    if (this.#pingedAt !== undefined) return;
    this.#pingedAt = performance.now();
    const { method, params } = this.#connection.probe();
    // Also called if the ping fails: a failed request does not mean that the server hangs.
    const onPong = () => {
      this.#pingedAt = this.#cancelledAt = undefined;
      this.onMessage();
    };
    this.#peer.request(method, params, { ...withoutClient(), isLongLived: true }).then(
      onPong,
      onPong,
    );
  }

  #isPingLate(): boolean {
    return this.#pingedAt !== undefined &&
      performance.now() - this.#pingedAt >= this.#times.pongMs;
  }

  #setUnresponsive(isUnresponsive: boolean): void {
    this.#isUnresponsive = isUnresponsive;
    for (const options of this.#peer.pendingOptions) this.#report(options);
    this.#connection.onResponsive(!isUnresponsive);
  }

  /** Reports to the client of a request whether the server answers. */
  #report({ client }: RequestOptions): void {
    const message = `${this.#connection.name} has not answered for ${TIMES.quietMs / 1_000} s`;
    const state = this.#isUnresponsive ? "unresponsive" : "responsive";
    client.onProgress?.(ownProgress(state, message));
  }

  #setTimer(ms: number): void {
    if (this.#isDisposed) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#check();
    }, ms);
    Deno.unrefTimer(this.#timer);
  }

  #check(): void {
    const since = this.#peer.waitingSince ?? this.#cancelledAt;
    if (since === undefined) return;
    const now = performance.now();
    const quietMs = now - Math.max(since, this.#lastMessageAt);
    const leftMs = this.#times.quietMs - quietMs;
    if (leftMs > 0) return this.#setTimer(leftMs);
    if (this.#peer.waitingSince === undefined) return this.#connection.onHung(quietMs);
    this.#ping();
    if (!this.#isPingLate()) return this.#setTimer(this.#times.pongMs);
    if (!this.#isUnresponsive) this.#setUnresponsive(true);
    this.#setTimer(this.#times.quietMs);
  }
}

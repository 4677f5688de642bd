/**
 * Watches whether a server still sends something while requests wait for it. A quiet server sends
 * nothing; an unresponsive one does not answer a ping either. A server that is busy may be both.
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

/** The connection whose server is watched. */
export interface WatchedConnection {
  /** The name of the server. */
  readonly name: string;
  /** Returns the request by which PML asks whether the server answers. */
  probe(): { readonly method: string; readonly params?: JsonObject };
  /** Is called when the server stops answering, and when it answers again. */
  onResponsive(isResponsive: boolean): void;
  /** Is called when the server is to be ended, because it sent nothing for `ms`. */
  onHung(ms: number): void;
}

/** How long a server is quiet before it gets a ping, and how long it may take to answer that. */
const TIMES = { quietMs: 10_000, pongMs: 1_000 };

/** Watches the server at the other end of a peer with one timer, which is set while requests wait. */
export class Responsiveness implements PeerObserver, Disposable {
  readonly #peer: RpcPeer;
  readonly #connection: WatchedConnection;
  readonly #times: typeof TIMES;
  #heardAt = -Infinity;
  /** When a ping was sent that has no answer. */
  #pingedAt: number | undefined;
  /** When the first request was cancelled after which the server has answered no ping. */
  #cancelledAt: number | undefined;
  #isUnresponsive = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isOver = false;

  /** Takes the peer, whose requests it follows, and the times to wait in milliseconds. */
  constructor(peer: RpcPeer, connection: WatchedConnection, times: typeof TIMES = TIMES) {
    this.#peer = peer;
    this.#connection = connection;
    this.#times = times;
    peer.observe(this);
  }

  /** Whether a request was cancelled, and the server has not answered a ping since. */
  get hung(): boolean {
    return this.#cancelledAt !== undefined && this.#isPingLate();
  }

  /** Notes that a message came. */
  onMessage(): void {
    this.#heardAt = performance.now();
    if (this.#isUnresponsive) this.#change(false);
  }

  /** Notes that a request begins. */
  began(options: RequestOptions): void {
    if (this.#timer === undefined) this.#wake(this.#times.quietMs);
    if (this.#isUnresponsive) this.#report(options);
  }

  /**
   * Notes that a request was cancelled: the server gets a ping. A server that sent nothing until the
   * deadline of a request is ended.
   */
  cancelled({ at, reason }: { readonly at: number; readonly reason: unknown }): void {
    const isLate = reason instanceof PmlError && reason.code === "TIMED_OUT";
    const isSilent = isLate && this.#heardAt <= at && this.#isPingLate();
    this.#cancelledAt ??= performance.now();
    this.#ping();
    if (this.#timer === undefined) this.#wake(this.#times.quietMs);
    if (isSilent) this.#connection.onHung(performance.now() - at);
  }

  /** Ends watching. */
  [Symbol.dispose](): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    if (this.#isUnresponsive) this.#change(false);
  }

  #ping(): void {
    if (this.#pingedAt !== undefined) return;
    this.#pingedAt = performance.now();
    const { method, params } = this.#connection.probe();
    // A ping that could not be sent does not mean that the server hangs.
    const over = () => {
      this.#pingedAt = this.#cancelledAt = undefined;
      this.onMessage();
    };
    this.#peer.request(method, params, { ...withoutClient(), lasts: true }).then(over, over);
  }

  #isPingLate(): boolean {
    return this.#pingedAt !== undefined &&
      performance.now() - this.#pingedAt >= this.#times.pongMs;
  }

  #change(isUnresponsive: boolean): void {
    this.#isUnresponsive = isUnresponsive;
    for (const options of this.#peer.waiting) this.#report(options);
    this.#connection.onResponsive(!isUnresponsive);
  }

  /** Reports to the client of a request whether the server answers. */
  #report({ client }: RequestOptions): void {
    const message = `${this.#connection.name} has not answered for ${TIMES.quietMs / 1_000} s`;
    const own = this.#isUnresponsive ? "unresponsive" : "responsive";
    client.onProgress?.(ownProgress(own, message));
  }

  #wake(ms: number): void {
    if (this.#isOver) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#look();
    }, ms);
    Deno.unrefTimer(this.#timer);
  }

  #look(): void {
    const since = this.#peer.waitingSince ?? this.#cancelledAt;
    if (since === undefined) return;
    const now = performance.now();
    const quietMs = now - Math.max(since, this.#heardAt);
    const leftMs = this.#times.quietMs - quietMs;
    if (leftMs > 0) return this.#wake(leftMs);
    if (this.#peer.waitingSince === undefined) return this.#connection.onHung(quietMs);
    this.#ping();
    if (!this.#isPingLate()) return this.#wake(this.#times.pongMs);
    if (!this.#isUnresponsive) this.#change(true);
    this.#wake(this.#times.quietMs);
  }
}

/**
 * Watches whether a server still sends something while requests wait for it. A quiet server sends
 * nothing; an unresponsive one does not answer a ping either. A server that is busy may be both.
 *
 * @module
 */

import type { RequestId } from "./wire.ts";

/** The options of `Responsiveness`. */
export interface ResponsivenessOptions {
  /** Returns an id that no other request has. */
  readonly nextId: () => RequestId;
  /** Sends a ping. */
  readonly ping: (id: RequestId) => void;
  /** Returns when the oldest request without an answer began; undefined if there is none. */
  readonly waitingSince: () => number | undefined;
  /** Is called when the server becomes unresponsive, and when it sends something again. */
  readonly onChange: (isUnresponsive: boolean) => void;
  /** Is called when the server is to be ended, because it sent nothing for `ms`. */
  readonly onHung: (ms: number) => void;
  /** The times to wait, in milliseconds. */
  readonly times?: typeof TIMES | undefined;
}

/** How long a server is quiet before it gets a ping, and how long it may take to answer that. */
export const TIMES = { quietMs: 10_000, pongMs: 1_000 };

/** Watches one connection with one timer, which is set only while requests wait. */
export class Responsiveness implements Disposable {
  readonly #options: ResponsivenessOptions;
  readonly #times: typeof TIMES;
  #heardAt = -Infinity;
  #ping: { readonly id: RequestId; readonly at: number } | undefined;
  /** When the first request was cancelled after which the server has answered no ping. */
  #cancelledAt: number | undefined;
  #isUnresponsive = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isOver = false;

  /** Takes the options; watches nothing yet. */
  constructor(options: ResponsivenessOptions) {
    this.#options = options;
    this.#times = options.times ?? TIMES;
  }

  /** Whether the server did not answer the ping that follows a quiet time. */
  get isUnresponsive(): boolean {
    return this.#isUnresponsive;
  }

  /** Whether a request was cancelled, and the server has not answered a ping since. */
  get hung(): boolean {
    return this.#cancelledAt !== undefined && this.#isPingLate();
  }

  /** Returns whether an id is that of the ping. */
  isPing(id: RequestId): boolean {
    return id === this.#ping?.id;
  }

  /** Notes that a message came. */
  heard(): void {
    this.#heardAt = performance.now();
    if (!this.#isUnresponsive) return;
    this.#isUnresponsive = false;
    this.#options.onChange(false);
  }

  /** Notes that the ping was answered, or could not be sent. The latter does not mean a hung server. */
  pinged(): void {
    this.#ping = this.#cancelledAt = undefined;
    this.heard();
  }

  /** Notes that a request begins. */
  began(): void {
    if (this.#timer === undefined) this.#wake(this.#times.quietMs);
  }

  /** Notes that a request was cancelled: the server gets a ping. */
  cancelled(): void {
    this.#cancelledAt ??= performance.now();
    this.#send();
    this.began();
  }

  /** Returns for how long nothing came, if that is since `at` and the server is unresponsive. */
  silentSince(at: number): number | undefined {
    const isSilent = this.#heardAt <= at && this.#isPingLate();
    return isSilent ? performance.now() - at : undefined;
  }

  /** Ends watching. */
  [Symbol.dispose](): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    if (this.#isUnresponsive) this.#options.onChange(false);
    this.#isUnresponsive = false;
  }

  #send(): void {
    if (this.#ping !== undefined) return;
    this.#ping = { id: this.#options.nextId(), at: performance.now() };
    this.#options.ping(this.#ping.id);
  }

  #isPingLate(): boolean {
    return this.#ping !== undefined && performance.now() - this.#ping.at >= this.#times.pongMs;
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
    const { waitingSince, onChange, onHung } = this.#options;
    const since = waitingSince() ?? this.#cancelledAt;
    if (since === undefined) return;
    const now = performance.now();
    const quietMs = now - Math.max(since, this.#heardAt);
    const leftMs = this.#times.quietMs - quietMs;
    if (leftMs > 0) return this.#wake(leftMs);
    if (waitingSince() === undefined) return onHung(quietMs);
    this.#send();
    if (!this.#isPingLate()) return this.#wake(this.#times.pongMs);
    if (!this.#isUnresponsive) {
      this.#isUnresponsive = true;
      onChange(true);
    }
    this.#wake(this.#times.quietMs);
  }
}

/**
 * Remembers what could not be reached, so that nobody waits for silence twice.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { soon } from "./waiting.ts";

interface Outage {
  readonly error: PmlError;
  /** When it may be looked for again. */
  readonly until: number;
  /** The look whether it is back, which never fails. */
  look: Promise<void> | undefined;
}

/** How a caller gets past an outage. */
export interface PassOptions {
  /** Looks whether it is back: succeeds where it is, and has no effect that a caller would miss. */
  readonly look: () => Promise<unknown>;
  /** How long the caller waits, where that is not a moment. */
  readonly waitMs?: number;
}

/** How long a caller waits for a look. */
const WAIT_MS = 70;

/**
 * Knows what is away, by a key that says all that it is reached by. While something is away, one
 * look at a time finds out whether it is back, and begins no sooner than a rest after the last one.
 * A caller waits for it no longer than a moment; then it gets the error that is remembered, and the
 * look goes on without it. What counts as an outage is up to the owner: `note` begins one; `forget`,
 * or a look that succeeds, ends it.
 */
export class Outages {
  readonly #restMs: number;
  readonly #all = new Map<string, Outage>();

  /** Knows of no outage yet; the rest between looks is `restMs`, a quarter more or less. */
  constructor(restMs = 0) {
    this.#restMs = restMs;
  }

  /** Returns why something is away; undefined where it is not known to be. */
  of(key: string): PmlError | undefined {
    return this.#all.get(key)?.error;
  }

  /** Tells whether a look may begin now: none is under way, and the rest is over. */
  isDue(key: string): boolean {
    const { look, until = 0 } = this.#all.get(key) ?? {};
    return look === undefined && performance.now() >= until;
  }

  /** Begins an outage, or tells its newest reason. */
  note(key: string, error: PmlError): void {
    const { look } = this.#all.get(key) ?? {};
    const until = performance.now() + this.#restMs * (0.75 + Math.random() / 2);
    this.#all.set(key, { error, look, until });
  }

  /** Ends an outage. */
  forget(key: string): void {
    this.#all.delete(key);
  }

  /** Takes what is under way as the look; nothing happens where nothing is away. */
  watch(key: string, look: Promise<unknown>): void {
    const outage = this.#all.get(key);
    if (outage === undefined) return;
    outage.look = look.then(() => this.forget(key), () => {
      const now = this.#all.get(key);
      if (now === undefined) return;
      now.look = undefined;
      this.note(key, now.error);
    });
  }

  /** Passes where nothing is away, or the look finds it soon; else throws what is remembered. */
  async pass(key: string, { look, waitMs = WAIT_MS }: PassOptions): Promise<void> {
    if (this.of(key) === undefined) return;
    if (this.isDue(key)) this.watch(key, look());
    await soon(this.#looked(key), waitMs);
    const still = this.of(key);
    if (still !== undefined) throw still;
  }

  /**
   * Returns what comes of work that goes on behind the caller. While something is away the caller
   * waits a moment for the look, and a moment for the work; then it throws what is remembered.
   */
  async briefly<T>(key: string, work: () => Promise<T>): Promise<T> {
    await this.#moment(key, this.#looked(key));
    return await this.#moment(key, work());
  }

  async #moment<T>(key: string, work: Promise<T>): Promise<T> {
    const error = this.of(key);
    if (error !== undefined && !await soon(work, WAIT_MS)) throw error;
    return await work;
  }

  #looked(key: string): Promise<void> {
    return this.#all.get(key)?.look ?? Promise.resolve();
  }
}

/** Tells whether a request was never sent, because nobody was there to take it. */
export function isUnsent(error: unknown): error is PmlError {
  return error instanceof PmlError && error.code === "UPSTREAM_DOWN" &&
    error.detail?.may_have_run === false;
}

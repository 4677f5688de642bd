/**
 * Remembers targets that cannot be reached, so that only one caller waits for each to fail.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { soon } from "./waiting.ts";

interface Outage {
  readonly error: PmlError;
  /** The time from which the next probe may begin. */
  readonly until: number;
  /** The probe that is under way. It never rejects. */
  probe: Promise<void> | undefined;
}

/** How long a caller waits for a probe, in milliseconds. */
const WAIT_MS = 70;

/**
 * The outages of targets. A key contains everything that is needed to reach a target. During an
 * outage, one probe at a time checks whether the target is back, with a rest between two probes. A
 * caller waits for the probe a short time; then it gets the remembered error, and the probe
 * continues. The owner decides: `note` begins an outage; `forget`, or a probe that
 * succeeds, ends it.
 */
export class Outages {
  readonly #restMs: number;
  readonly #all = new Map<string, Outage>();

  /** Takes the rest between two probes, which varies by a quarter. */
  constructor(restMs = 0) {
    this.#restMs = restMs;
  }

  /** Whether there is no outage. */
  get isEmpty(): boolean {
    return this.#all.size === 0;
  }

  /** Returns the error of an outage; undefined if there is none. */
  of(key: string): PmlError | undefined {
    return this.#all.get(key)?.error;
  }

  /** Returns whether a probe may begin: none is under way, and the rest is over. */
  isDue(key: string): boolean {
    const { probe, until = 0 } = this.#all.get(key) ?? {};
    return probe === undefined && performance.now() >= until;
  }

  /** Begins an outage, or sets its newest error. */
  note(key: string, error: PmlError): void {
    const { probe } = this.#all.get(key) ?? {};
    const until = performance.now() + this.#restMs * (0.75 + Math.random() / 2);
    this.#all.set(key, { error, probe, until });
  }

  /** Ends an outage. */
  forget(key: string): void {
    this.#all.delete(key);
  }

  /** Takes work that is under way as the probe. Does nothing if there is no outage. */
  watch(key: string, work: Promise<unknown>): void {
    const outage = this.#all.get(key);
    if (outage === undefined) return;
    outage.probe = work.then(() => this.forget(key), () => {
      const now = this.#all.get(key);
      if (now === undefined) return;
      now.probe = undefined;
      this.note(key, now.error);
    });
  }

  /**
   * Throws the remembered error, unless there is no outage or the probe ends it within `waitMs`.
   * `probe` resolves if the target can be reached, and must have no other effect.
   */
  async pass(key: string, probe: () => Promise<unknown>, waitMs = WAIT_MS): Promise<void> {
    if (this.of(key) === undefined) return;
    if (this.isDue(key)) this.watch(key, probe());
    await soon(this.#probed(key), waitMs);
    const still = this.of(key);
    if (still !== undefined) throw still;
  }

  /**
   * Returns the result of work that may continue after the caller. During an outage, waits a short
   * time for the probe, and a short time for the work. Then throws the remembered error.
   */
  async limitDuringOutage<T>(key: string, work: () => Promise<T>): Promise<T> {
    await this.#shortly(key, this.#probed(key));
    return await this.#shortly(key, work());
  }

  async #shortly<T>(key: string, work: Promise<T>): Promise<T> {
    const error = this.of(key);
    if (error !== undefined && !await soon(work, WAIT_MS)) throw error;
    return await work;
  }

  #probed(key: string): Promise<void> {
    return this.#all.get(key)?.probe ?? Promise.resolve();
  }
}

/** Returns whether an error means that a request was never sent. */
export function isUnsent(error: unknown): error is PmlError {
  return error instanceof PmlError && error.code === "UPSTREAM_DOWN" &&
    error.detail?.may_have_run === false;
}

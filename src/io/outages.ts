/**
 * Remembers targets that cannot be reached, so that only the first caller waits until a target
 * fails.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { settlesWithin } from "./waiting.ts";

interface Outage {
  readonly error: PmlError;
  /** The time from which the next probe may begin. */
  readonly until: number;
  /** The running probe. It never rejects. */
  probe: Promise<void> | undefined;
}

/** How long a caller waits for a probe, in milliseconds. */
const WAIT_MS = 70;

/**
 * The outages of targets. A key contains everything that is needed to reach a target. During an
 * outage, one probe at a time checks whether the target is available again, with a pause between
 * two probes. A caller waits for the probe for a short time; then it gets the remembered error, and
 * the probe continues. `record()` begins an outage; `forget()`, or a probe that succeeds, ends it.
 */
export class Outages {
  readonly #restMs: number;
  readonly #all = new Map<string, Outage>();

  /** Takes the pause between two probes in milliseconds, which varies by a quarter. */
  constructor(restMs = 0) {
    this.#restMs = restMs;
  }

  /** Whether there is no outage. */
  get isEmpty(): boolean {
    return this.#all.size === 0;
  }

  /** Returns the error of an outage; undefined if there is none. */
  errorOf(key: string): PmlError | undefined {
    return this.#all.get(key)?.error;
  }

  /** Returns whether a probe may begin: none is running, and the pause is over. */
  isDue(key: string): boolean {
    const { probe, until = 0 } = this.#all.get(key) ?? {};
    return probe === undefined && performance.now() >= until;
  }

  /** Begins an outage, or sets its newest error. */
  record(key: string, error: PmlError): void {
    const { probe } = this.#all.get(key) ?? {};
    const until = performance.now() + this.#restMs * (0.75 + Math.random() / 2);
    this.#all.set(key, { error, probe, until });
  }

  /** Ends an outage. */
  forget(key: string): void {
    this.#all.delete(key);
  }

  /** Uses running work as the probe. Does nothing if there is no outage. */
  setProbe(key: string, work: Promise<unknown>): void {
    const outage = this.#all.get(key);
    if (outage === undefined) return;
    outage.probe = work.then(() => this.forget(key), () => {
      const current = this.#all.get(key);
      if (current === undefined) return;
      current.probe = undefined;
      this.record(key, current.error);
    });
  }

  /**
   * Throws the remembered error, unless there is no outage or the probe ends it within `waitMs`.
   * `probe` resolves if the target can be reached, and must have no other effect.
   */
  async throwDuringOutage(
    key: string,
    probe: () => Promise<unknown>,
    waitMs = WAIT_MS,
  ): Promise<void> {
    if (this.errorOf(key) === undefined) return;
    if (this.isDue(key)) this.setProbe(key, probe());
    await settlesWithin(this.#probeOf(key), waitMs);
    const error = this.errorOf(key);
    if (error !== undefined) throw error;
  }

  /**
   * Returns the result of work. During an outage, waits a short time for the probe, and a short
   * time for the work. Then throws the remembered error, while the work may continue.
   */
  async limitDuringOutage<T>(key: string, work: () => Promise<T>): Promise<T> {
    await this.#waitShortly(key, this.#probeOf(key));
    return await this.#waitShortly(key, work());
  }

  async #waitShortly<T>(key: string, work: Promise<T>): Promise<T> {
    const error = this.errorOf(key);
    if (error !== undefined && !await settlesWithin(work, WAIT_MS)) throw error;
    return await work;
  }

  #probeOf(key: string): Promise<void> {
    return this.#all.get(key)?.probe ?? Promise.resolve();
  }
}

/** Returns whether an error means that a request was never sent. */
export function isUnsent(error: unknown): error is PmlError {
  return error instanceof PmlError && error.code === "UPSTREAM_DOWN" &&
    error.detail?.may_have_run === false;
}

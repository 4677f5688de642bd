/**
 * Cancels work. Creates an `AbortSignal` only on demand: few calls need one, and a signal takes
 * more memory than all other objects of a call together.
 *
 * @module
 */

/** Receives the cancellation of some work. */
export interface CancelListener {
  /** Receives the reason. Must not throw. */
  onCancel(reason: unknown): void;
}

/** Work that can be cancelled once. */
export class Cancellation implements Disposable {
  #isCancelled = false;
  #reason: unknown;
  #abort: AbortController | undefined;
  /** The first listener. Most instances have only one, so they need no `Set`. */
  #listener: CancelListener | undefined;
  #others: Set<CancelListener> | undefined;
  #stop: (() => void) | undefined;

  /**
   * Creates an instance that a signal cancels when it aborts. Dispose it to remove the listener.
   */
  static of(signal: AbortSignal): Cancellation {
    const cancellation = new Cancellation();
    if (signal.aborted) {
      cancellation.cancel(signal.reason);
      return cancellation;
    }
    const onAbort = () => cancellation.cancel(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    cancellation.#stop = () => signal.removeEventListener("abort", onAbort);
    return cancellation;
  }

  /** Whether the work was cancelled. */
  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  /** The reason of the cancellation; undefined before it. */
  get reason(): unknown {
    return this.#reason;
  }

  /** A signal that aborts on cancellation. The first read creates it. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#isCancelled) this.#abort.abort(this.#reason);
    }
    return this.#abort.signal;
  }

  /** Cancels the work. Only the first call has an effect. */
  cancel(reason: unknown): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    this.#reason = reason;
    const [listener, others] = [this.#listener, this.#others];
    this.#listener = this.#others = undefined;
    this[Symbol.dispose]();
    this.#abort?.abort(reason);
    listener?.onCancel(reason);
    for (const other of others ?? []) other.onCancel(reason);
  }

  /** Adds a listener. It is called at once if the work was cancelled already. */
  add(listener: CancelListener): void {
    if (this.#isCancelled) listener.onCancel(this.#reason);
    else if (this.#listener === undefined) this.#listener = listener;
    else (this.#others ??= new Set()).add(listener);
  }

  /** Removes a listener. */
  remove(listener: CancelListener): void {
    if (this.#listener === listener) this.#listener = undefined;
    else this.#others?.delete(listener);
  }

  /** Throws the reason if the work was cancelled. */
  throwIfCancelled(): void {
    if (this.#isCancelled) throw this.#reason;
  }

  /** Removes the listener from the signal of `of()`. */
  [Symbol.dispose](): void {
    this.#stop?.();
    this.#stop = undefined;
  }
}

/**
 * Work that can be cancelled, with an `AbortSignal` only on demand: few calls need one, and a signal
 * costs more memory than everything else that is created for a call.
 *
 * @module
 */

/** Is called when something is cancelled. */
export interface CancelListener {
  /** Receives the reason. Must not throw. */
  onCancel(reason: unknown): void;
}

/** Work that can be cancelled once. */
export class Cancellation implements Disposable {
  #isCancelled = false;
  #reason: unknown;
  #abort: AbortController | undefined;
  /** Most have one listener. */
  #listener: CancelListener | undefined;
  #others: Set<CancelListener> | undefined;
  #stop: (() => void) | undefined;

  /** Creates one that is cancelled when a signal aborts. Dispose it to remove its listener. */
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

  /** Whether it was cancelled. */
  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  /** The reason of the cancellation; undefined before it. */
  get reason(): unknown {
    return this.#reason;
  }

  /** A signal that aborts with it. It is created when it is read first. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#isCancelled) this.#abort.abort(this.#reason);
    }
    return this.#abort.signal;
  }

  /** Cancels it. Only the first time has an effect. */
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

  /** Throws the reason if it was cancelled. */
  throwIfCancelled(): void {
    if (this.#isCancelled) throw this.#reason;
  }

  /** Stops following the signal that it was created from. */
  [Symbol.dispose](): void {
    this.#stop?.();
    this.#stop = undefined;
  }
}

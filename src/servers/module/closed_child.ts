/**
 * A child without any access (it is closed to the outside) that runs functions of a module of PML
 * itself, one after the other. If a function takes too long, the child is killed, so it never runs
 * two functions at the same time.
 *
 * @module
 */

import type { PmlError } from "../../core/errors.ts";
import type { JsonObject } from "../../core/json.ts";
import { onAbort } from "../../io/waiting.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { ChildStarter } from "./child_starter.ts";
import type { ModuleHost } from "./module_host.ts";

/** A call of a function of the module. */
export interface ClosedCall {
  readonly fn: string;
  /** Plain JSON. */
  readonly request: object;
  /** How long the function may take, in milliseconds. */
  readonly ms: number;
  /** Returns the error for a function that takes longer. */
  tooSlow(): PmlError;
  /** Ends the function early. */
  readonly signal?: AbortSignal;
}

/** Starts the child for the first work, and ends it after `limits.idle_ms` without work. */
export class ClosedChild implements AsyncDisposable {
  readonly #starter: ChildStarter;
  readonly #host: ModuleHost;
  readonly #module: { readonly name: string; readonly code: () => Promise<string> };
  #sandbox: Sandbox | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #idle: ReturnType<typeof setTimeout> | undefined;

  /** Starts nothing. `module` names the module in messages, and loads its code. */
  constructor(
    starter: ChildStarter,
    host: ModuleHost,
    module: { readonly name: string; readonly code: () => Promise<string> },
  ) {
    this.#starter = starter;
    this.#host = host;
    this.#module = module;
  }

  /** Runs `work` with the child when all earlier work is done. */
  enqueue<T>(work: (sandbox: Sandbox) => Promise<T>): Promise<T> {
    const done = this.#last.then(async () => await work(await this.#start()));
    this.#last = done.catch(() => {}).then(() => this.#startIdleTimer());
    return done;
  }

  /** Ends the child. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#idle);
    const sandbox = this.#sandbox;
    this.#sandbox = undefined;
    await sandbox?.[Symbol.asyncDispose]();
  }

  async #start(): Promise<Sandbox> {
    clearTimeout(this.#idle);
    if (this.#sandbox?.isAlive) return this.#sandbox;
    await this.#sandbox?.[Symbol.asyncDispose]();
    const { name, code } = this.#module;
    const module = { name, code: new TextEncoder().encode(await code()) };
    // This child does not count under the limit of children. Otherwise it could wait for the place
    // of a call that waits for this child.
    const uncounted = new DisposableStack();
    return this.#sandbox = await this.#starter.openClosed(module, uncounted);
  }

  #startIdleTimer(): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => void this[Symbol.asyncDispose](), this.#host.limits.idleMs);
    Deno.unrefTimer(Number(this.#idle));
  }
}

/**
 * Calls a function of the module in the child. If the function takes too long or is aborted, kills
 * the child.
 */
export async function callWithin(
  sandbox: Sandbox,
  call: ClosedCall,
): Promise<unknown> {
  const { fn, request, ms } = call;
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(call.tooSlow()), ms);
  const { signal } = call;
  using _ = signal && onAbort(signal, () => timeout.abort(signal.reason));
  try {
    const args = request as JsonObject; // plain JSON
    return await sandbox.call({ fn, arguments: args, signal: timeout.signal, graceMs: 0 });
  } finally {
    clearTimeout(timer);
    // The abort kills the child only later. Waits for its end here, so that the next call gets a
    // new child.
    if (timeout.signal.aborted) await sandbox[Symbol.asyncDispose]();
  }
}

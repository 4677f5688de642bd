/**
 * A child without grants that runs functions of one module of PML, one after the other. A function
 * that takes too long ends with its child, so no other function may run in it.
 *
 * @module
 */

import type { PmlError } from "../../core/errors.ts";
import type { JsonObject } from "../../core/json.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { ChildStarter } from "./child_starter.ts";
import type { ModuleHost } from "./module_host.ts";

/** A call of a function of the module. */
export interface ClosedCall {
  readonly fn: string;
  /** Plain JSON. */
  readonly request: object;
  /** How long it may take, in milliseconds. */
  readonly ms: number;
  /** Returns the error if it takes longer. */
  tooSlow(): PmlError;
}

/** Starts the child with the first work, and ends it after `limits.idle_ms` without work. */
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

  /** Does some work with the child after all earlier work. */
  inTurn<T>(work: (sandbox: Sandbox) => Promise<T>): Promise<T> {
    const done = this.#last.then(async () => await work(await this.#start()));
    this.#last = done.catch(() => {}).then(() => this.#rest());
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
    if (this.#sandbox?.alive) return this.#sandbox;
    await this.#sandbox?.[Symbol.asyncDispose]();
    const { name, code } = this.#module;
    const module = { name, code: new TextEncoder().encode(await code()) };
    // It takes no place: a call that waits for a place waits for it.
    return this.#sandbox = await this.#starter.openClosed(module, new DisposableStack());
  }

  #rest(): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => void this[Symbol.asyncDispose](), this.#host.limits.idleMs);
    Deno.unrefTimer(Number(this.#idle));
  }
}

/** Calls a function of the module in the child. If it takes too long, the child is killed. */
export async function callWithin(
  sandbox: Sandbox,
  call: ClosedCall,
): Promise<unknown> {
  const { fn, request, ms } = call;
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(call.tooSlow()), ms);
  try {
    const args = request as JsonObject; // plain JSON
    return await sandbox.call({ fn, arguments: args, signal: timeout.signal, graceMs: 0 });
  } finally {
    clearTimeout(timer);
    // The next call must not get a child that is about to be killed.
    if (timeout.signal.aborted) await sandbox[Symbol.asyncDispose]();
  }
}

/**
 * Runs a process that answers requests, each by its number. Once something is wrong with it, it
 * ends, and all that waits for it fails.
 *
 * @module
 */

import type { Groups } from "./_options.ts";
import { killGroup, type Process, residentBytes, startProcess } from "./process.ts";
import type { Program } from "./program.ts";

/** How a process is heard. */
export interface AnsweringOptions {
  /** Records the process group, so that it ends with PML, however PML ends. */
  readonly groups: Pick<Groups, "add" | "remove">;
  /** Reads what it answers. What is thrown ends the process. */
  readonly read: (stdout: ReadableStream<Uint8Array>) => Promise<void>;
  /** Reads what else it writes. */
  readonly hear: (stderr: ReadableStream<Uint8Array>) => Promise<void>;
  /** Makes the error of a process that ended by itself. */
  readonly ended: (how: string) => Error;
}

/** A running process. */
export class AnsweringProcess {
  readonly #process: Process;
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  readonly #ended: Promise<void>;
  #broken: Error | undefined;

  /** Starts the process. */
  constructor(program: Program, options: AnsweringOptions) {
    this.#process = startProcess(program);
    options.groups.add(this.#process.pid);
    this.#stdin = this.#process.stdin.getWriter();
    this.#ended = this.#follow(options);
  }

  /** Whether it can take no more requests. */
  get isOver(): boolean {
    return this.#broken !== undefined;
  }

  /** Whether nothing waits for an answer. */
  get isIdle(): boolean {
    return this.#waiting.size === 0;
  }

  /** Returns the memory of the process. */
  bytes(): number {
    return residentBytes(this.#process.pid);
  }

  /** Sends bytes. */
  write(bytes: Uint8Array): void {
    // A broken pipe is reported by the end of the process.
    this.#stdin.write(bytes).catch(() => {});
  }

  /** Waits for the answer to a request. */
  async answer(id: number): Promise<unknown> {
    if (this.#broken !== undefined) throw this.#broken;
    const waiting = Promise.withResolvers<unknown>();
    this.#waiting.set(id, waiting);
    return await waiting.promise;
  }

  /** Returns what waits for the answer to a request, and waits no more; undefined if nothing does. */
  take(id: number): PromiseWithResolvers<unknown> | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    return waiting;
  }

  /** Ends the process at once. What waits for it fails with the first reason. */
  end(why: Error): void {
    this.#broken ??= why;
    killGroup(this.#process.pid);
    for (const { reject } of this.#waiting.values()) reject(this.#broken);
    this.#waiting.clear();
  }

  /** Ends the process, and waits until it has ended. */
  async close(why: Error): Promise<void> {
    this.end(why);
    await this.#ended;
  }

  async #follow({ groups, read, hear, ended }: AnsweringOptions): Promise<void> {
    const { stdout, stderr, status, pid } = this.#process;
    const heard = Promise.all([read(stdout), hear(stderr)]).catch((error) => this.end(error));
    const { code, signal } = await status;
    // Processes that it started would keep its output open.
    killGroup(pid);
    groups.remove(pid);
    await heard;
    this.end(ended(signal ?? `exit code ${code}`));
    await this.#stdin.close().catch(() => {}); // broken by its end
  }
}

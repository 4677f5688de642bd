/**
 * Runs a process that answers requests by their ids. Its first error ends the process and fails all
 * open requests.
 *
 * @module
 */

import type { Groups } from "./_options.ts";
import { killGroup, type Process, residentBytes, startProcess } from "./process.ts";
import type { Program } from "./program.ts";

/** The owner of a process, which reads its output. */
export interface ProcessOwner {
  /** Reads the answers from stdout. If it throws, the process is ended. */
  readAnswers(stdout: ReadableStream<Uint8Array>): Promise<void>;
  /** Reads the other output from stderr. */
  readErrors(stderr: ReadableStream<Uint8Array>): Promise<void>;
  /** Creates the error for a process that ended by itself. */
  endError(how: string): Error;
}

/** Records the groups of processes, so that they end with PML, even if PML is killed. */
type ProcessGroups = Pick<Groups, "add" | "remove">;

/** A running process. */
export class AnsweringProcess {
  readonly #process: Process;
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  readonly #ended: Promise<void>;
  /** Why the process ended or is being ended; undefined while it accepts requests. */
  #stopReason: Error | undefined;
  /** Whether the process has ended. Its id may then belong to another process. */
  #hasEnded = false;

  /** Starts the process. */
  constructor(program: Program, groups: ProcessGroups, owner: ProcessOwner) {
    this.#process = startProcess(program);
    groups.add(this.#process.pid);
    this.#stdin = this.#process.stdin.getWriter();
    this.#ended = this.#follow(groups, owner);
  }

  /** Whether the process has ended or is being ended, so that it accepts no requests. */
  get isOver(): boolean {
    return this.#stopReason !== undefined;
  }

  /** Whether no request is open. */
  get isIdle(): boolean {
    return this.#waiting.size === 0;
  }

  /** Returns the memory of the process in bytes. */
  memoryBytes(): number {
    return residentBytes(this.#process.pid);
  }

  /** Sends bytes. */
  write(bytes: Uint8Array): void {
    // The end of the process reports a broken pipe.
    this.#stdin.write(bytes).catch(() => {});
  }

  /** Waits for the answer to a request. */
  async answer(id: number): Promise<unknown> {
    if (this.#stopReason !== undefined) throw this.#stopReason;
    const waiting = Promise.withResolvers<unknown>();
    this.#waiting.set(id, waiting);
    return await waiting.promise;
  }

  /** Removes and returns the resolvers of an open request; undefined if there is none. */
  takeRequest(id: number): PromiseWithResolvers<unknown> | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    return waiting;
  }

  /** Kills the process. All open requests fail with the first reason. */
  end(why: Error): void {
    this.#stopReason ??= why;
    if (!this.#hasEnded) killGroup(this.#process.pid);
    for (const { reject } of this.#waiting.values()) reject(this.#stopReason);
    this.#waiting.clear();
  }

  /** Kills the process and waits for its end. */
  async close(why: Error): Promise<void> {
    this.end(why);
    await this.#ended;
  }

  async #follow(groups: ProcessGroups, owner: ProcessOwner): Promise<void> {
    const { stdout, stderr, status, pid } = this.#process;
    const output = Promise.all([owner.readAnswers(stdout), owner.readErrors(stderr)]).catch((
      error,
    ) => this.end(error));
    const { code, signal } = await status;
    // Processes that it started may keep its output open.
    killGroup(pid);
    this.#hasEnded = true;
    groups.remove(pid);
    await output;
    this.end(owner.endError(signal ?? `exit code ${code}`));
    await this.#stdin.close().catch(() => {}); // the pipe is broken after the end
  }
}

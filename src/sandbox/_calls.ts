/**
 * The calls that a child has not answered, and what each of them may make it say.
 *
 * @module
 */

import type { Progress } from "../core/call.ts";
import { type Json, type JsonObject, quoted } from "../core/json.ts";
import { progressOf } from "../core/progress.ts";
import { onAbort } from "../io/waiting.ts";
import { failure, failureFrom } from "./_failure.ts";
import { Meter } from "./_meter.ts";
import type { SandboxLimits } from "./_options.ts";
import { plainJson } from "./_plain.ts";
import { type OnRequest, type Requests, wantedOf } from "./_requests.ts";
import { reasonOf } from "./_said.ts";
import type { Frame } from "./_wire.ts";

/** The most characters of a report of progress. */
const PROGRESS_MAX = 4_096;

/** One call of a function of the module. */
export interface SandboxCall {
  readonly fn: string;
  readonly arguments: JsonObject;
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
  /** Answers what its code asks of PML while it runs. Without it such requests are refused. */
  readonly onRequest?: OnRequest;
  /** How long a cancelled call may take to stop before its child is killed; 0 is at once. */
  readonly graceMs?: number;
}

interface Pending {
  readonly meter: Meter;
  readonly onProgress: SandboxCall["onProgress"];
  readonly onRequest: OnRequest | undefined;
  readonly answer: PromiseWithResolvers<Json>;
  /** Lets go of the signal, of the timer that would kill, and of what its code asks. */
  release(): void;
}

/** Stops a call that was cancelled; gives the timer that kills the child where it goes on. */
type Cancel = (id: number) => ReturnType<typeof setTimeout>;

/** The calls of one child. */
export class Calls {
  readonly #limits: SandboxLimits;
  readonly #pending = new Map<number, Pending>();
  readonly #requests: Requests;
  #last = 0;
  #noise: Meter;

  /** Takes what one call may say, how long its result may be, and what answers requests. */
  constructor(limits: SandboxLimits, requests: Requests) {
    this.#limits = limits;
    this.#requests = requests;
    this.#noise = new Meter(limits);
  }

  /** How many calls have not stopped yet. */
  get size(): number {
    return this.#pending.size;
  }

  /** Takes a call under a new id. */
  add(
    { signal, onProgress, onRequest }: SandboxCall,
    cancel: Cancel,
  ): { id: number; answer: Promise<Json> } {
    const id = ++this.#last;
    const answer = Promise.withResolvers<Json>();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const aborting = onAbort(signal, () => {
      answer.reject(reasonOf(signal));
      this.#requests.end(id);
      timer = cancel(id);
    });
    this.#pending.set(id, {
      meter: new Meter(this.#limits),
      onProgress,
      onRequest: onRequest &&
        ((...asked) => signal.aborted ? Promise.reject(reasonOf(signal)) : onRequest(...asked)),
      answer,
      release: () => {
        this.#requests.end(id);
        clearTimeout(timer);
        aborting[Symbol.dispose]();
      },
    });
    return { id, answer: answer.promise };
  }

  /** Counts what was said in a call, or in none; gives what is too much, if anything is. */
  charge(bytes: number, id?: number): string | undefined {
    const call = id === undefined ? undefined : this.#pending.get(id);
    return (call?.meter ?? this.#noise).add(bytes);
  }

  /** Tells whoever made a call of its progress. */
  report(id: number, said: Record<string, unknown>): void {
    const progress = progressOf(said, PROGRESS_MAX);
    if (progress !== undefined) this.#pending.get(id)?.onProgress?.(progress);
  }

  /**
   * Has a request of a call answered, or dropped. Only a call that runs can make one. Returns what is
   * too much, if anything is.
   */
  want(frame: Frame): string | undefined {
    if (frame.type === "drop") return void this.#requests.drop(frame.id);
    const wanted = wantedOf(frame);
    const excess = this.charge(frame.json.length, wanted.call);
    const handler = this.#pending.get(wanted.call)?.onRequest;
    if (excess === undefined) void this.#requests.take(wanted, handler);
    return excess;
  }

  /** Ends a call with its result or its error; false where no call has the id. */
  settle(frame: Frame, name: string): boolean {
    const call = this.#pending.get(frame.id);
    if (call === undefined) return false;
    const isOldest = this.#pending.keys().next().value === frame.id;
    call.release();
    this.#pending.delete(frame.id);
    if (isOldest) this.#noise = new Meter(this.#limits);
    try {
      call.answer.resolve(this.#resultOf(frame, name));
    } catch (error) {
      call.answer.reject(error);
    }
    return true;
  }

  /** Ends all of them: the child is dead. */
  end(error: Error): void {
    for (const call of this.#pending.values()) {
      call.release();
      call.answer.reject(error);
    }
    this.#pending.clear();
  }

  #resultOf({ type, json }: Frame, name: string): Json {
    if (type === "failed") throw failureFrom(plainJson(json, "the error"));
    const { resultBytes } = this.#limits;
    const size = json.length;
    if (size > resultBytes) {
      const message = `Cannot return the result: it has ${size} bytes, more than ${resultBytes}`;
      throw failure("RESULT_TOO_LARGE", message, { detail: { size, max: resultBytes } });
    }
    return type === "text"
      ? new TextDecoder("utf-8", { ignoreBOM: true }).decode(json)
      : plainJson(json, `the result of ${quoted(name)}`);
  }
}

/**
 * The open calls of a child, with the limits and the requests of each call.
 *
 * @module
 */

import type { ProgressReport } from "../protocol/call.ts";
import { type Json, type JsonObject, quoted } from "../core/json.ts";
import { parseProgress } from "../protocol/progress.ts";
import { failureFrom, sandboxError } from "./_failure.ts";
import { Meter } from "./_meter.ts";
import type { SandboxLimits } from "./_options.ts";
import { plainJson } from "./_plain_json.ts";
import { type ChildRequests, type OnRequest, parseRequest } from "./_requests.ts";
import { reasonOf } from "./_child_frames.ts";
import type { Frame } from "./_wire.ts";

/** Keeps a byte order mark, which is a part of the text. */
const WITH_MARK = new TextDecoder("utf-8", { ignoreBOM: true });
/** The maximum length of a report of progress, in characters. */
const PROGRESS_MAX = 4_096;

/** One call of a function of the module. */
export interface SandboxCall {
  readonly fn: string;
  readonly arguments: JsonObject;
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: ProgressReport) => void;
  /** Answers the requests of the module's code during the call. Without it, PML refuses them. */
  readonly onRequest?: OnRequest;
  /** Milliseconds that a cancelled call may take to stop before its child is killed. */
  readonly graceMs?: number;
}

/** Stops a cancelled call. Returns the timer that kills the child if the call continues. */
type Cancel = (id: number, request: SandboxCall) => ReturnType<typeof setTimeout>;

/** A call that the child has not answered. It listens to the signal of its request. */
class OpenCall {
  readonly answer: PromiseWithResolvers<Json> = Promise.withResolvers<Json>();
  readonly meter: Meter;
  readonly #id: number;
  readonly #request: SandboxCall;
  readonly #calls: ChildCalls;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(id: number, request: SandboxCall, calls: ChildCalls) {
    this.#id = id;
    this.#request = request;
    this.#calls = calls;
    this.meter = new Meter(calls.limits);
    if (request.signal.aborted) this.handleEvent();
    else request.signal.addEventListener("abort", this, { once: true });
  }

  /** Cancels the call when its signal aborts. */
  handleEvent(): void {
    this.answer.reject(reasonOf(this.#request.signal));
    this.#calls.requests.end(this.#id);
    this.#timer = this.#calls.cancel(this.#id, this.#request);
  }

  get onProgress(): SandboxCall["onProgress"] {
    return this.#request.onProgress;
  }

  /** Answers the requests of the module's code, until the call is cancelled. */
  get onRequest(): OnRequest | undefined {
    const { signal, onRequest } = this.#request;
    return onRequest &&
      ((...args) => signal.aborted ? Promise.reject(reasonOf(signal)) : onRequest(...args));
  }

  /** Removes the listener of the signal, clears the kill timer and stops the call's requests. */
  release(): void {
    this.#calls.requests.end(this.#id);
    clearTimeout(this.#timer);
    this.#request.signal.removeEventListener("abort", this);
  }
}

/** The calls of one child. */
export class ChildCalls {
  readonly limits: SandboxLimits;
  /** The requests that the module's code makes during its calls. */
  readonly requests: ChildRequests;
  /** Stops a call whose signal aborted. */
  readonly cancel: Cancel;
  readonly #pending = new Map<number, OpenCall>();
  #last = 0;
  /** Counts messages that belong to no call. It starts again when the oldest call ends. */
  #noise: Meter;

  /** Creates an empty collection. */
  constructor(limits: SandboxLimits, requests: ChildRequests, cancel: Cancel) {
    this.limits = limits;
    this.requests = requests;
    this.cancel = cancel;
    this.#noise = new Meter(limits);
  }

  /** The number of calls that have not stopped yet. */
  get size(): number {
    return this.#pending.size;
  }

  /** Adds a call under a new id. */
  add(request: SandboxCall): { id: number; answer: Promise<Json> } {
    const id = ++this.#last;
    const call = new OpenCall(id, request, this);
    this.#pending.set(id, call);
    return { id, answer: call.answer.promise };
  }

  /**
   * Counts a message for its call, or for no call. Returns a text about the limit that it exceeds,
   * or undefined.
   */
  charge(bytes: number, id?: number): string | undefined {
    const call = id === undefined ? undefined : this.#pending.get(id);
    return (call?.meter ?? this.#noise).add(bytes);
  }

  /** Reports progress to the caller of a call. */
  report(id: number, fields: Record<string, unknown>): void {
    const progress = parseProgress(fields, PROGRESS_MAX);
    if (progress !== undefined) this.#pending.get(id)?.onProgress?.(progress);
  }

  /**
   * Answers or drops a request of a call. Only a running call can make requests. Returns a text
   * about the limit that the request exceeds, or undefined.
   */
  takeRequest(frame: Frame): string | undefined {
    if (frame.type === "drop") return void this.requests.drop(frame.id);
    const request = parseRequest(frame);
    const excess = this.charge(frame.json.length, request.call);
    const handler = this.#pending.get(request.call)?.onRequest;
    if (excess === undefined) void this.requests.take(request, handler);
    return excess;
  }

  /** Ends a call with its result or its error. Returns false if no call has the id. */
  settle(frame: Frame, name: string): boolean {
    const call = this.#pending.get(frame.id);
    if (call === undefined) return false;
    const isOldest = this.#pending.keys().next().value === frame.id;
    call.release();
    this.#pending.delete(frame.id);
    if (isOldest) this.#noise = new Meter(this.limits);
    try {
      call.answer.resolve(this.#resultOf(frame, name));
    } catch (error) {
      call.answer.reject(error);
    }
    return true;
  }

  /** Rejects all calls with the error of a dead child. */
  end(error: Error): void {
    for (const call of this.#pending.values()) {
      call.release();
      call.answer.reject(error);
    }
    this.#pending.clear();
  }

  #resultOf({ type, json }: Frame, name: string): Json {
    if (type === "failed") throw failureFrom(plainJson(json, "the error"));
    const { resultBytes } = this.limits;
    const size = json.length;
    if (size > resultBytes) {
      const message = `Cannot return the result: it has ${size} bytes, more than ${resultBytes}`;
      throw sandboxError("RESULT_TOO_LARGE", message, { detail: { size, max: resultBytes } });
    }
    return type === "text"
      ? WITH_MARK.decode(json)
      : plainJson(json, `the result of ${quoted(name)}`);
  }
}

/**
 * Requests of clients of revision 2026-07-28 that wait for input. The client gets a result of the
 * type `input_required`, and sends the request again with the responses. The work on the request is
 * paused in between, so it never runs twice.
 *
 * @module
 */

import { Cancellation, type CancelListener } from "../../core/cancellation.ts";
import { endingError, PmlError } from "../../core/errors.ts";
import { type Json, type JsonObject, memberOf } from "../../core/json.ts";
import { onAbort } from "../../io/waiting.ts";
import type { RequestContext } from "../../protocol/connection.ts";
import { differentRequestError, NOT_TWICE, processEndedError } from "../../protocol/failures.ts";
import type { RequestOwner } from "../_clients.ts";
import {
  type ClientRequest,
  identityOf,
  type PausableRequest,
  type RequestInput,
} from "./request_client.ts";

/** A result that asks the client for input. */
export interface InputRequired {
  readonly resultType: "input_required";
  readonly inputRequests: JsonObject;
  /** The value that the client sends back with the responses. */
  readonly requestState: string;
  readonly [field: string]: Json;
}

/** An input request without a response. */
interface OpenInput {
  readonly request: JsonObject;
  readonly response: PromiseWithResolvers<JsonObject>;
  /** Whether the client has received it. */
  isSent: boolean;
}

/** Ends the request that waits for the result of the work. */
interface Waiter {
  readonly resolve: (result: JsonObject) => void;
  readonly reject: (error: unknown) => void;
}

/** The names that a server may give its input requests. */
const INPUT_KEY = /^[\w.:-]{1,64}$/;
/** The name of PML's approval requests, which servers cannot use. */
export const APPROVAL_KEY = "approval";
/** The prefix of the states of work that has begun. */
const STATE_PREFIX = "run-";
/** The maximum number of requests that wait for input. Their calls still count as running. */
const WAITING_MAX = 32;

/** The work on a request, the input that it waits for, and the request that gets its result. */
export class PendingInput implements PausableRequest, CancelListener {
  /** Cancels the work, also while its client collects input. */
  readonly cancellation: Cancellation = new Cancellation();
  /** The first form of the request. Only its owner may resume the work, with an equal request. */
  readonly request: ClientRequest;
  /** Ends the work if the client does not send the request again in time. */
  timer: ReturnType<typeof setTimeout> | undefined;
  readonly #store: PendingInputs;
  #current: RequestContext | undefined;
  #waiter: Waiter | undefined;
  /** The open input requests by their keys. Most requests have none. */
  #inputs: Map<string, OpenInput> | undefined;
  #outcome: { readonly result: JsonObject } | { readonly error: unknown } | undefined;
  #isAboutToPause = false;

  /** Takes the request, and the store of paused work. */
  constructor(request: ClientRequest, store: PendingInputs) {
    this.request = request;
    this.#store = store;
  }

  /** The latest form of the request; undefined while its client collects input. */
  get current(): RequestContext | undefined {
    return this.#current;
  }

  /** Requests input of the client. Rejects with the reason of the signal. */
  async requestInput(
    { key: preferred = "", method, params, members, signal }: Parameters<RequestInput>[0],
  ): Promise<JsonObject> {
    const inputs = this.#inputs ??= new Map();
    const isFree = INPUT_KEY.test(preferred) && preferred !== APPROVAL_KEY &&
      !inputs.has(preferred);
    const key = isFree ? preferred : `asked-${crypto.randomUUID()}`;
    const response = Promise.withResolvers<JsonObject>();
    using _ = onAbort(signal, () => response.reject(signal.reason));
    const request = { ...members, method, params };
    inputs.set(key, { request, response, isSent: false });
    this.#pauseSoon();
    try {
      return await response.promise;
    } finally {
      inputs.delete(key);
    }
  }

  /** Resolves to the result of the work, or to a result with input requests to the client. */
  wait(context: RequestContext): Promise<JsonObject> {
    this.#current = context;
    context.cancellation.add(this);
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
      if (this.#outcome !== undefined) this.#settle();
      else if ((this.#inputs?.size ?? 0) > 0) this.#pauseSoon();
    });
  }

  /** Passes the responses that came with the repeated request to the work, and waits again. */
  resume(context: RequestContext): Promise<JsonObject> {
    const { inputResponses = {} } = context;
    for (const [key, { response, isSent }] of this.#inputs ?? []) {
      // Requests made while the client collected input have no response yet.
      if (!isSent) continue;
      const input = memberOf(inputResponses, key);
      // The transport has removed responses that are not objects.
      if (input === undefined) response.reject(noResponseError());
      else response.resolve(input as JsonObject);
      this.#inputs?.delete(key);
    }
    return this.wait(context);
  }

  /** Stores the result of the work, and passes it to the waiting request, if there is one. */
  follow(work: Promise<JsonObject>): void {
    work.then((result) => {
      this.#outcome = { result };
      this.#settle();
    }, (error) => {
      this.#outcome = { error };
      this.#settle();
    });
  }

  /** Cancels the work together with the request that waits for it. */
  onCancel(reason: unknown): void {
    this.cancellation.cancel(reason);
  }

  /** Returns the open input requests, and marks them as sent. */
  send(): JsonObject {
    const requests = new Map<string, JsonObject>();
    for (const [key, input] of this.#inputs ?? []) {
      input.isSent = true;
      requests.set(key, input.request);
    }
    return Object.fromEntries(requests);
  }

  /**
   * Pauses in the next microtask, because until then the work may request more input, or withdraw
   * this request.
   */
  #pauseSoon(): void {
    if (this.#isAboutToPause) return;
    this.#isAboutToPause = true;
    queueMicrotask(() => {
      this.#isAboutToPause = false;
      const hasUnsentInput = this.#waiter !== undefined && this.#outcome === undefined &&
        [...this.#inputs?.values() ?? []].some(({ isSent }) => !isSent);
      if (!hasUnsentInput) return;
      const waiter = this.#release();
      try {
        waiter?.resolve(this.#store.keep(this));
      } catch (error) {
        waiter?.reject(error);
      }
    });
  }

  #settle(): void {
    const waiter = this.#release();
    const outcome = this.#outcome;
    if (waiter === undefined || outcome === undefined) return;
    if ("error" in outcome) waiter.reject(outcome.error);
    else waiter.resolve(outcome.result);
  }

  /** Separates the work from the request that waits for it, and returns how to end the request. */
  #release(): Waiter | undefined {
    const waiter = this.#waiter;
    this.#current?.cancellation.remove(this);
    this.#current = this.#waiter = undefined;
    return waiter;
  }
}

/** Stores the paused work of requests while their clients collect input. */
export class PendingInputs implements Disposable {
  readonly #pausedWork = new Map<string, PendingInput>();
  readonly #waitMs: () => number;
  readonly #processName: () => string;

  /**
   * Takes functions that return how long a client may take, in milliseconds, and the name of this
   * process.
   */
  constructor(waitMs: () => number, processName: () => string = () => "") {
    this.#waitMs = waitMs;
    this.#processName = processName;
  }

  /** Begins the work on a request, and returns its result or the input requests to the client. */
  begin(
    request: ClientRequest,
    work: (pending: PendingInput) => Promise<JsonObject>,
  ): Promise<JsonObject> {
    const pending = new PendingInput(request, this);
    const result = pending.wait(request.context);
    pending.follow(work(pending));
    return result;
  }

  /**
   * Resumes the paused work of a repeated request. Returns undefined if the request has no state of
   * paused work. Throws if the work has ended, or belongs to another owner or request.
   */
  resume(request: ClientRequest): Promise<JsonObject> | undefined {
    const { requestState: state } = request.context;
    // Other states belong to approval requests.
    if (typeof state !== "string" || !state.startsWith(STATE_PREFIX)) return undefined;
    const pending = this.#pausedWork.get(state);
    // guard: passed-on-gone
    if (pending === undefined && !state.startsWith(this.#prefix)) throw processEndedError();
    if (pending === undefined) throw noWorkError();
    // guard: pending-party
    if (pending.request.client.owner !== request.client.owner) throw noWorkError();
    this.#pausedWork.delete(state);
    clearTimeout(pending.timer);
    if (identityOf(pending.request) !== identityOf(request)) {
      const error = differentRequestError();
      pending.cancellation.cancel(error);
      throw error;
    }
    return pending.resume(request.context);
  }

  /**
   * Stores paused work until its client sends the input. Returns the result that asks for the
   * input.
   */
  keep(pending: PendingInput): InputRequired {
    if (this.#pausedWork.size >= WAITING_MAX) {
      const message = `Cannot ask: ${WAITING_MAX} requests wait for answers already`;
      const error = new PmlError("OVERLOADED", message, { hint: "Answer or dismiss some of them" });
      pending.cancellation.cancel(error);
      throw error;
    }
    const requestState = `${this.#prefix}${crypto.randomUUID()}`;
    this.#pausedWork.set(requestState, pending);
    pending.timer = setTimeout(() => {
      this.#pausedWork.delete(requestState);
      pending.cancellation.cancel(
        new PmlError("TIMED_OUT", "Cannot go on: the question was not answered in time"),
      );
    }, this.#waitMs());
    Deno.unrefTimer(pending.timer);
    return { resultType: "input_required", inputRequests: pending.send(), requestState };
  }

  /** Cancels the kept work of a owner that has disconnected and cannot resume it. */
  leave(owner: RequestOwner): void {
    for (const [state, { request, timer, cancellation }] of this.#pausedWork) {
      if (request.client.owner !== owner) continue;
      this.#pausedWork.delete(state);
      clearTimeout(timer);
      cancellation.cancel(new Error("Connection closed"));
    }
  }

  /** Cancels all kept work. */
  [Symbol.dispose](): void {
    for (const { timer, cancellation } of this.#pausedWork.values()) {
      clearTimeout(timer);
      cancellation.cancel(endingError("go on"));
    }
    this.#pausedWork.clear();
  }

  get #prefix(): string {
    return `${STATE_PREFIX}${this.#processName()}`;
  }
}

/** Returns the error for input without paused work. The work may have run, so it is not repeated. */
function noWorkError(): PmlError {
  return new PmlError(
    "BAD_REQUEST",
    "Cannot go on: what waited for this answer is over",
    NOT_TWICE,
  );
}

function noResponseError(): PmlError {
  return new PmlError("CANCELLED", "Cannot go on: the client came without an answer");
}

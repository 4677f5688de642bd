/**
 * Requests of clients that cannot be asked while they wait: what is asked goes out as the answer,
 * the work goes on when the client comes again with what its person said.
 *
 * @module
 */

import type { ServerRequest } from "../core/call.ts";
import { Cancellation, type CancelListener } from "../core/cancellation.ts";
import { ending, PmlError } from "../core/errors.ts";
import { type Json, type JsonObject, memberOf } from "../core/json.ts";
import { onAbort } from "../io/waiting.ts";
import type { Party } from "./_clients.ts";
import { goneElsewhere, NOT_TWICE, otherRequest } from "../protocol/failures.ts";

/** What a request is answered with for now: what the client has to find out first. */
export interface Pause {
  readonly resultType: "input_required";
  readonly inputRequests: JsonObject;
  /** What the client has to bring along when it comes again. */
  readonly requestState: string;
  readonly [field: string]: Json;
}

/** Asks the client, however it can be asked. */
export type AskClient = (
  asked: Pick<ServerRequest, "key" | "method" | "params" | "signal">,
) => Promise<JsonObject>;

/** The work on a request. It is begun once, whatever is asked meanwhile. */
export type Work<C, T> = (run: Run<C>) => Promise<T>;

/** A request, each time that it comes. */
export interface Visit<C> {
  readonly context: C;
  /** The party of the client. Another party cannot go on with what waits. */
  readonly party: Party;
  /** Returns the part of the request that must be the same when it comes again. */
  readonly of: () => string;
  /** Cancels the request that waits now. */
  readonly cancellation: Cancellation;
  /** The state that the client brought along. */
  readonly state: string | undefined;
  readonly responses: Readonly<Record<string, unknown>>;
}

interface Open {
  readonly asked: JsonObject;
  readonly answer: PromiseWithResolvers<JsonObject>;
  isShown: boolean;
}

/** The request that waits for the result of the work, as it came last. */
interface Visitor {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** The work on a request, however often that comes. Few ask anything. */
export class Run<C> implements CancelListener {
  /** Cancels the work. */
  readonly cancellation: Cancellation = new Cancellation();
  readonly of: () => string;
  readonly party: Party;
  /** Ends the work if the client does not come back. */
  timer: ReturnType<typeof setTimeout> | undefined;
  readonly #pause: (run: Run<C>) => Pause;
  /** The request as it came last; undefined while none waits. */
  #visit: Visit<C> | undefined;
  #visitor: Visitor | undefined;
  #open: Map<string, Open> | undefined;
  #end: { readonly result: unknown } | { readonly error: unknown } | undefined;
  #isLooking = false;

  /** Begins with the first request. `pause` returns the questions to the client. */
  constructor({ of, party }: Visit<C>, pause: (run: Run<C>) => Pause) {
    this.of = of;
    this.party = party;
    this.#pause = pause;
  }

  /** The questions without an answer, by their keys. */
  get open(): Map<string, Open> {
    return this.#open ??= new Map();
  }

  /** Returns the request that waits now, if one does. */
  readonly latest = (): C | undefined => this.#visit?.context;

  /** Asks the client. */
  readonly ask: AskClient = async ({ key: named = "", method, params, signal }) => {
    const { open } = this;
    const isFree = KEY.test(named) && named !== APPROVAL_KEY && !open.has(named);
    const key = isFree ? named : `asked-${crypto.randomUUID()}`;
    const answer = Promise.withResolvers<JsonObject>();
    using _ = onAbort(signal, () => answer.reject(signal.reason));
    open.set(key, { asked: { method, params }, answer, isShown: false });
    this.#look();
    try {
      return await answer.promise;
    } finally {
      open.delete(key);
    }
  };

  /** Waits for the result of the work, or for a pause. */
  visit(visit: Visit<C>): Promise<unknown> {
    this.#visit = visit;
    visit.cancellation.add(this);
    return new Promise((resolve, reject) => {
      this.#visitor = { resolve, reject };
      if (this.#end !== undefined) this.#tell();
      else if ((this.#open?.size ?? 0) > 0) this.#look();
    });
  }

  /** Takes the result of the work, also while no request waits for it. */
  follow(work: Promise<unknown>): void {
    work.then((result) => {
      this.#end = { result };
      this.#tell();
    }, (error) => {
      this.#end = { error };
      this.#tell();
    });
  }

  /** Cancels the work with the request that waits for it. */
  onCancel(reason: unknown): void {
    this.cancellation.cancel(reason);
  }

  /** Pauses soon, if something is asked by then: it may be withdrawn, or more may be asked. */
  #look(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    queueMicrotask(() => {
      this.#isLooking = false;
      const isAsking = this.#visitor !== undefined && this.#end === undefined &&
        [...this.open.values()].some(({ isShown }) => !isShown);
      if (!isAsking) return;
      const visitor = this.#leave();
      try {
        visitor?.resolve(this.#pause(this));
      } catch (error) {
        visitor?.reject(error);
      }
    });
  }

  #tell(): void {
    const visitor = this.#leave();
    const end = this.#end;
    if (visitor === undefined || end === undefined) return;
    if ("error" in end) visitor.reject(end.error);
    else visitor.resolve(end.result);
  }

  /** Ends the wait of the request that came last. */
  #leave(): Visitor | undefined {
    const visitor = this.#visitor;
    this.#visit?.cancellation.remove(this);
    this.#visit = this.#visitor = undefined;
    return visitor;
  }
}

/** A name that a server may give to its request. */
const KEY = /^[\w.:-]{1,64}$/;
/** The name of PML's own question. No server can use it. */
export const APPROVAL_KEY = "approval";
/** How the states begin that stand for work which was begun. */
const RUN = "run-";
/** How much may wait for clients: each keeps its place among the calls that run. */
const WAITING_MAX = 32;

/** Keeps what waits for clients. */
export class Runs<C> implements Disposable {
  readonly #waiting = new Map<string, Run<C>>();
  readonly #waitMs: () => number;
  readonly #here: () => string;

  /** Gives up what nobody came back to in so many milliseconds. `here` names this process. */
  constructor(waitMs: () => number, here: () => string = () => "") {
    this.#waitMs = waitMs;
    this.#here = here;
  }

  /** Begins the work on a request, or goes on with it; returns its result, or a pause. */
  async visit<T>(visit: Visit<C>, work: Work<C, T>): Promise<T | Pause> {
    const known = this.#take(visit);
    const run = known ?? new Run<C>(visit, (run) => this.#pause(run));
    const result = run.visit(visit);
    if (known === undefined) run.follow(work(run));
    return await result as T | Pause;
  }

  /** Gives up everything that waits. */
  [Symbol.dispose](): void {
    for (const run of this.#waiting.values()) {
      clearTimeout(run.timer);
      run.cancellation.cancel(ending("go on"));
    }
    this.#waiting.clear();
  }

  #take({ of, party, state, responses }: Visit<C>): Run<C> | undefined {
    // Other states are those of PML's own questions.
    if (state === undefined || !state.startsWith(RUN)) return undefined;
    const run = this.#waiting.get(state);
    // guard: passed-on-gone
    if (run === undefined && !state.startsWith(`${RUN}${this.#here()}`)) throw goneElsewhere();
    if (run === undefined || run.party !== party) throw gone();
    this.#waiting.delete(state);
    clearTimeout(run.timer);
    if (run.of() !== of()) {
      const error = otherRequest();
      run.cancellation.cancel(error);
      throw error;
    }
    for (const [key, open] of run.open) {
      // What came meanwhile was not shown yet.
      if (!open.isShown) continue;
      const said = memberOf(responses, key);
      // The transport took what is no object out.
      if (said === undefined) open.answer.reject(unanswered());
      else open.answer.resolve(said as JsonObject);
      run.open.delete(key);
    }
    return run;
  }

  #pause(run: Run<C>): Pause {
    if (this.#waiting.size >= WAITING_MAX) {
      const message = `Cannot ask: ${WAITING_MAX} requests wait for answers already`;
      const error = new PmlError("OVERLOADED", message, { hint: "Answer or dismiss some of them" });
      run.cancellation.cancel(error);
      throw error;
    }
    const requestState = `${RUN}${this.#here()}${crypto.randomUUID()}`;
    this.#waiting.set(requestState, run);
    run.timer = setTimeout(() => {
      this.#waiting.delete(requestState);
      run.cancellation.cancel(
        new PmlError("TIMED_OUT", "Cannot go on: nobody answered the question"),
      );
    }, this.#waitMs());
    Deno.unrefTimer(run.timer);
    for (const open of run.open.values()) open.isShown = true;
    const inputRequests = Object.fromEntries([...run.open].map(([key, { asked }]) => [key, asked]));
    return { resultType: "input_required", inputRequests, requestState };
  }
}

/** Makes the error for an answer to nobody. What it was for had begun. */
function gone(): PmlError {
  return new PmlError(
    "BAD_REQUEST",
    "Cannot go on: what waited for this answer is over",
    NOT_TWICE,
  );
}

function unanswered(): PmlError {
  return new PmlError("CANCELLED", "Cannot go on: the client came without an answer");
}

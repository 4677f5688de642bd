/**
 * Requests of clients that cannot be asked while they wait: what is asked goes out as the answer,
 * the work goes on when the client comes again with what its person said.
 *
 * @module
 */

import type { ServerRequest } from "../core/call.ts";
import { ending, PmlError } from "../core/errors.ts";
import { type Json, type JsonObject, memberOf } from "../core/json.ts";
import { onAbort } from "../io/waiting.ts";
import type { Party } from "./_clients.ts";
import { goneElsewhere, NOT_TWICE, otherRequest } from "./results.ts";

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

/** What the work on a request has; it is begun once, whatever is asked meanwhile. */
export interface Begun<C> {
  readonly signal: AbortSignal;
  readonly ask: AskClient;
  /** Gives the context of the request that waits now, if one does. */
  readonly latest: () => C | undefined;
}

/** The work on a request. */
export type Work<C, T> = (begun: Begun<C>) => Promise<T>;

/** A request, each time that it comes. */
export interface Visit<C> {
  readonly context: C;
  /** The party of the client. Another party cannot go on with what waits. */
  readonly party: Party;
  /** Gives what must be the same when it comes again; few do. */
  readonly of: () => string;
  readonly signal: AbortSignal;
  /** The state that the client brought along. */
  readonly state: string | undefined;
  readonly responses: Readonly<Record<string, unknown>>;
}

interface Run<C> {
  readonly of: () => string;
  readonly party: Party;
  /** The request as it came last; nothing while none waits. */
  context: C | undefined;
  readonly abort: AbortController;
  readonly outcome: Promise<unknown>;
  readonly open: Map<string, Open>;
  asked: PromiseWithResolvers<"asked">;
  timer: ReturnType<typeof setTimeout> | undefined;
}

interface Open {
  readonly asked: JsonObject;
  readonly answer: PromiseWithResolvers<JsonObject>;
  isShown: boolean;
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

  /** Begins the work on a request, or goes on with it; gives what comes of it, or a pause. */
  async visit<T>(visit: Visit<C>, work: Work<C, T>): Promise<T | Pause> {
    const known = this.#take(visit);
    const run = known ?? begin(visit, work);
    run.context = visit.context;
    using _ = onAbort(visit.signal, () => run.abort.abort(visit.signal.reason));
    try {
      const over = run.outcome.then((value) => ({ value: value as T }));
      for (;;) {
        const came = await Promise.race([over, run.asked.promise]);
        if (came !== "asked") return came.value;
        if (run.open.size > 0) return this.#pause(run);
        // What was asked was taken back.
        run.asked = Promise.withResolvers();
      }
    } finally {
      run.context = undefined;
    }
  }

  /** Gives up everything that waits. */
  [Symbol.dispose](): void {
    for (const { abort, timer } of this.#waiting.values()) {
      clearTimeout(timer);
      abort.abort(ending("go on"));
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
      run.abort.abort(error);
      throw error;
    }
    run.asked = Promise.withResolvers();
    for (const [key, open] of run.open) {
      // What came meanwhile was not shown yet.
      if (!open.isShown) {
        run.asked.resolve("asked");
        continue;
      }
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
      run.abort.abort(error);
      throw error;
    }
    const requestState = `${RUN}${this.#here()}${crypto.randomUUID()}`;
    this.#waiting.set(requestState, run);
    run.timer = setTimeout(() => {
      this.#waiting.delete(requestState);
      run.abort.abort(new PmlError("TIMED_OUT", "Cannot go on: nobody answered the question"));
    }, this.#waitMs());
    Deno.unrefTimer(run.timer);
    for (const open of run.open.values()) open.isShown = true;
    const inputRequests = Object.fromEntries([...run.open].map(([key, { asked }]) => [key, asked]));
    return { resultType: "input_required", inputRequests, requestState };
  }
}

function begin<C, T>({ of, party, context }: Visit<C>, work: Work<C, T>): Run<C> {
  const abort = new AbortController();
  const open = new Map<string, Open>();
  const ask: AskClient = async ({ key: named = "", method, params, signal }) => {
    const isFree = KEY.test(named) && named !== APPROVAL_KEY && !open.has(named);
    const key = isFree ? named : `asked-${crypto.randomUUID()}`;
    const answer = Promise.withResolvers<JsonObject>();
    using _ = onAbort(signal, () => answer.reject(signal.reason));
    open.set(key, { asked: { method, params }, answer, isShown: false });
    run.asked.resolve("asked");
    try {
      return await answer.promise;
    } finally {
      open.delete(key);
    }
  };
  const outcome = Promise.resolve().then(() =>
    work({ signal: abort.signal, ask, latest: () => run.context })
  );
  // Nobody waits for it while the client is away.
  outcome.catch(() => {});
  const run: Run<C> = {
    of,
    party,
    context,
    abort,
    outcome,
    open,
    asked: Promise.withResolvers(),
    timer: undefined,
  };
  return run;
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

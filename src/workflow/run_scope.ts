/**
 * Starts and ends runs. A run has an id, time limits that pause while the user is asked, and
 * journal records of its start and end.
 *
 * @module
 */

import { type CallClient, type CallTool, changeClient, wrapQuestions } from "../protocol/call.ts";
import type { EventRecord } from "../audit/journal.ts";
import { durationText } from "../core/amounts.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import { onAbort } from "../io/waiting.ts";
import { Run, type RunOptions } from "./run.ts";
import type { WaitingRuns } from "./waiting_runs.ts";

/** The journal of runs. `CallPath` implements it. */
export interface RunJournal {
  /** Writes an event to the journal. */
  record(event: string, details: Pick<EventRecord, "actor" | "about">): void;
}

/** The collaborators of a run. */
export interface RunParts {
  readonly callTool: CallTool;
  /** Counts the runs that wait for the user; undefined inside another run, which already counts. */
  readonly waiting: WaitingRuns | undefined;
  readonly journal: RunJournal;
}

/** The options of `withRun`. */
export interface RunStart {
  readonly via: RunOptions["via"];
  readonly actor: string;
  readonly signal: AbortSignal;
  /** The client that waits for the run. */
  readonly client: CallClient;
  readonly maxCalls: number;
  /**
   * Limit in milliseconds of the time without calls, at most `totalMs`. Questions do not count.
   */
  readonly ms: number;
  /** Limit in milliseconds of the time with calls. Questions do not count here, either. */
  readonly totalMs: number;
  /** The details for the journal. */
  readonly about: JsonObject;
  /** The id of the run; a new one by default. */
  readonly id?: string;
  readonly depth?: number;
}

/** Runs the work until it ends, is aborted or exceeds its time limit. */
export async function withRun<T extends { readonly kind: string }>(
  start: RunStart,
  parts: RunParts,
  work: (run: Run) => Promise<T>,
): Promise<T> {
  const {
    via,
    actor,
    maxCalls,
    ms,
    totalMs,
    about,
    id = crypto.randomUUID(),
    depth = 0,
    ...context
  } = start;
  const { waiting, journal } = parts;
  const runWork = async (timed: TimedContext, untimed: Untimed) => {
    const callTool: CallTool = (call) => untimed(() => parts.callTool(call));
    const run = new Run({ ...context, ...timed, id, via, actor, maxCalls, depth, callTool });
    const since = performance.now();
    const end = (outcome: string) => {
      const duration = Math.round(performance.now() - since);
      const fields = { run: id, calls: run.callCount, outcome, ms: duration };
      journal.record(`${via} ended`, { actor, about: fields });
    };
    journal.record(`${via} began`, { actor, about: { run: id, ...about } });
    try {
      const result = await work(run);
      end(result.kind);
      return result;
    } catch (error) {
      end(asPmlError(error).code);
      throw error;
    }
  };
  // Questions pause both limits, because the inner limit wraps the client of the outer one.
  const totalLimit = { ...context, ms: totalMs, questions: { waiting, run: id } };
  return await withTimeLimit(totalLimit, () => timedOut(start, totalMs), (outer) => {
    return withTimeLimit({ ...context, ...outer, ms }, () => timedOut(start, ms), runWork);
  });
}

/** The signal and the client of timed work. */
interface TimedContext {
  readonly signal: AbortSignal;
  readonly client: CallClient;
}

/** Runs work whose time does not count. */
type Untimed = <A>(work: () => Promise<A>) => Promise<A>;

/** The options of `withTimeLimit`. */
export interface TimeLimitOptions extends TimedContext {
  readonly ms: number;
  /** The run that counts as waiting while the user is asked; undefined if no run counts here. */
  readonly questions?: { readonly waiting: WaitingRuns | undefined; readonly run: string };
}

/**
 * Runs work with a signal that aborts at the time limit, and a client whose questions pause the
 * limit.
 */
export async function withTimeLimit<T>(
  { signal, ms, questions, client }: TimeLimitOptions,
  createError: () => PmlError,
  work: (context: TimedContext, untimed: Untimed) => Promise<T>,
): Promise<T> {
  const abort = new AbortController();
  using _ = onAbort(signal, () => abort.abort(signal.reason));
  using clock = new RunClock(ms, () => abort.abort(createError()));
  const { onServerRequest } = client;
  const askUser = <A>(ask: () => Promise<A>) => {
    const askPaused = () => clock.pauseDuring(ask);
    return questions?.waiting?.during(questions.run, askPaused) ?? askPaused();
  };
  try {
    const timed = changeClient(client, {
      ...wrapQuestions(client, askUser),
      // Only an elicitation waits for the user. The client itself answers other requests, such as
      // `sampling/createMessage`, so the run does not count as waiting for the user.
      onServerRequest: onServerRequest && ((request) => {
        const ask = () => onServerRequest(request);
        return request.method === "elicitation/create" ? askUser(ask) : clock.pauseDuring(ask);
      }),
    });
    return await work({ client: timed, signal: abort.signal }, (wait) => clock.pauseDuring(wait));
  } finally {
    // Cancels calls that still run, because nothing would use their results.
    abort.abort(
      new PmlError("CANCELLED", "Cannot finish the call: the run that made it is over"),
    );
  }
}

/** Measures the time of a run. */
class RunClock implements Disposable {
  readonly #end: () => void;
  #remaining: number;
  #since = performance.now();
  #timer: ReturnType<typeof setTimeout>;
  #pauses = 0;

  constructor(ms: number, end: () => void) {
    this.#remaining = ms;
    this.#end = end;
    this.#timer = setTimeout(end, ms);
  }

  /** Runs work without counting its time. */
  async pauseDuring<T>(work: () => Promise<T>): Promise<T> {
    // guard: code-asked-time
    if (this.#pauses++ === 0) {
      clearTimeout(this.#timer);
      this.#remaining -= performance.now() - this.#since;
    }
    try {
      return await work();
    } finally {
      if (--this.#pauses === 0) {
        this.#since = performance.now();
        this.#timer = setTimeout(this.#end, Math.max(this.#remaining, 0));
      }
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    // Work that still waits must not restart the timer.
    this.#pauses = Infinity;
  }
}

function timedOut({ via, totalMs }: RunStart, ms: number): PmlError {
  const hint = ms < totalMs
    ? `Do less in one run, or raise timeout_ms (at most ${totalMs})`
    : "Do less in one run, or raise limits.call_max_ms in config.yaml";
  return new PmlError(
    "TIMED_OUT",
    `Cannot finish the ${via}: it took longer than ${durationText(ms)}`,
    {
      hint,
    },
  );
}

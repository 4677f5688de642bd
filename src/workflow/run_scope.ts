/**
 * Starts and ends runs. A run has an id, a time limit that pauses while the user is asked, and
 * journal records of its start and end.
 *
 * @module
 */

import {
  type CallClient,
  type CallTool,
  changedClient,
  wrappedQuestions,
} from "../protocol/call.ts";
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
  record(event: string, of: Pick<EventRecord, "actor" | "about">): void;
}

/** The collaborators of a run. */
export interface RunParts {
  readonly callTool: CallTool;
  /** Counts the runs that wait for the user; undefined for a run in another, which is counted. */
  readonly waiting: WaitingRuns | undefined;
  readonly journal: RunJournal;
}

/** The options of `inRun`. */
export interface RunStart {
  readonly via: RunOptions["via"];
  readonly actor: string;
  readonly signal: AbortSignal;
  /** The client that waits for the run. */
  readonly client: CallClient;
  readonly calls: number;
  /** Time limit in milliseconds, without calls and approvals. */
  readonly ms: number;
  /** Time limit in milliseconds including calls, which is also the maximum of `ms`. */
  readonly mostMs: number;
  /** The details for the journal. */
  readonly about: JsonObject;
  /** The id of the run; a new one by default. */
  readonly id?: string;
  readonly depth?: number;
}

/** Runs the work until it ends, is aborted or exceeds its time limit. */
export async function inRun<T extends { readonly kind: string }>(
  start: RunStart,
  parts: RunParts,
  work: (run: Run) => Promise<T>,
): Promise<T> {
  const {
    via,
    actor,
    calls,
    ms,
    mostMs,
    about,
    id = crypto.randomUUID(),
    depth = 0,
    ...meanwhile
  } = start;
  const { waiting, journal } = parts;
  const inWork = async (during: DuringWork, untimed: Untimed) => {
    const callTool: CallTool = (call) => untimed(() => parts.callTool(call));
    const run = new Run({ ...meanwhile, ...during, id, via, actor, calls, depth, callTool });
    const since = performance.now();
    const end = (outcome: string) => {
      const took = Math.round(performance.now() - since);
      const fields = { run: id, calls: run.calls, outcome, ms: took };
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
  const clocked = { ...meanwhile, ms: mostMs, questions: { waiting, run: id } };
  return await withTimeLimit(clocked, () => timedOut(start, mostMs), (ways) => {
    return withTimeLimit({ ...meanwhile, ...ways, ms }, () => timedOut(start, ms), inWork);
  });
}

/** The signal and the client of timed work. */
interface DuringWork {
  readonly signal: AbortSignal;
  readonly client: CallClient;
}

/** Runs work whose time does not count. */
type Untimed = <A>(work: () => Promise<A>) => Promise<A>;

/** The options of `withTimeLimit`. */
export interface Timed extends DuringWork {
  readonly ms: number;
  /** The run that waits for the user, unless enclosing timed work waits already. */
  readonly questions?: { readonly waiting: WaitingRuns | undefined; readonly run: string };
}

/**
 * Runs work with a signal that aborts at the time limit, and a client whose approval requests pause
 * the limit.
 */
export async function withTimeLimit<T>(
  { signal, ms, questions, client }: Timed,
  over: () => PmlError,
  work: (during: DuringWork, untimed: Untimed) => Promise<T>,
): Promise<T> {
  const abort = new AbortController();
  using _ = onAbort(signal, () => abort.abort(signal.reason));
  using clock = new RunClock(ms, () => abort.abort(over()));
  const { onAsk } = client;
  const pauseClock = <A>(ask: () => Promise<A>) => {
    const timeless = () => clock.pauseDuring(ask);
    return questions?.waiting?.during(questions.run, timeless) ?? timeless();
  };
  try {
    const timed = changedClient(client, {
      ...wrappedQuestions(client, pauseClock),
      // A model answers without the user, so the run does not count as waiting for the user.
      onAsk: onAsk && ((request) => {
        const ask = () => onAsk(request);
        return request.method === "elicitation/create" ? pauseClock(ask) : clock.pauseDuring(ask);
      }),
    });
    return await work({ client: timed, signal: abort.signal }, (wait) => clock.pauseDuring(wait));
  } finally {
    // The results of calls that still run would have no recipient.
    abort.abort(new PmlError("CANCELLED", "Cannot finish the call: the run that made it is over"));
  }
}

/** Measures the time of a run. */
class RunClock implements Disposable {
  readonly #end: () => void;
  #remaining: number;
  #since = performance.now();
  #timer: ReturnType<typeof setTimeout>;
  #asking = 0;

  constructor(ms: number, end: () => void) {
    this.#remaining = ms;
    this.#end = end;
    this.#timer = setTimeout(end, ms);
  }

  /** Runs work without counting its time. */
  async pauseDuring<T>(work: () => Promise<T>): Promise<T> {
    // guard: code-asked-time
    if (this.#asking++ === 0) {
      clearTimeout(this.#timer);
      this.#remaining -= performance.now() - this.#since;
    }
    try {
      return await work();
    } finally {
      if (--this.#asking === 0) {
        this.#since = performance.now();
        this.#timer = setTimeout(this.#end, Math.max(this.#remaining, 0));
      }
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    // Work that still waits must not restart the timer.
    this.#asking = Infinity;
  }
}

function timedOut({ via, mostMs }: RunStart, ms: number): PmlError {
  const hint = ms < mostMs
    ? `Do less in one run, or raise timeout_ms (at most ${mostMs})`
    : "Do less in one run, or raise limits.call_max_ms in config.yaml";
  return new PmlError(
    "TIMED_OUT",
    `Cannot finish the ${via}: it took longer than ${durationText(ms)}`,
    {
      hint,
    },
  );
}

/**
 * Begins and ends runs: a run has an id, a time limit that stops while the person is asked, and a
 * record of its beginning and its end.
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

/** How a run is begun. */
export interface RunStart {
  readonly via: RunOptions["via"];
  readonly actor: string;
  readonly signal: AbortSignal;
  /** The client that waits for it. */
  readonly client: CallClient;
  readonly calls: number;
  /** How long it may take without its calls. The time in which the user is asked does not count. */
  readonly ms: number;
  /** How long it may take with its calls, which is also the most that `ms` can be. */
  readonly mostMs: number;
  /** What the journal says of it. */
  readonly about: JsonObject;
  /** The run that it belongs to, if it is not one of its own. */
  readonly id?: string;
  readonly depth?: number;
}

/** Does the work of a run, until it is done, given up or over its time. */
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
      const said = { run: id, calls: run.calls, outcome, ms: took };
      journal.record(`${via} ended`, { actor, about: said });
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
  return await inTime(clocked, () => timedOut(start, mostMs), (ways) => {
    return inTime({ ...meanwhile, ...ways, ms }, () => timedOut(start, ms), inWork);
  });
}

/** The signal of timed work, and its client. */
interface DuringWork {
  readonly signal: AbortSignal;
  readonly client: CallClient;
}

/** Waits for something whose time does not count. */
type Untimed = <A>(work: () => Promise<A>) => Promise<A>;

/** What work has a time for. */
export interface Timed extends DuringWork {
  readonly ms: number;
  /** The run that waits for the user at each question, unless other timed work around it does. */
  readonly questions?: { readonly waiting: WaitingRuns | undefined; readonly run: string };
}

/**
 * Does work with a signal that aborts when its time is over, and with a client whose questions stop
 * the time.
 */
export async function inTime<T>(
  { signal, ms, questions, client }: Timed,
  over: () => PmlError,
  work: (during: DuringWork, untimed: Untimed) => Promise<T>,
): Promise<T> {
  const abort = new AbortController();
  using _ = onAbort(signal, () => abort.abort(signal.reason));
  using clock = new Clock(ms, () => abort.abort(over()));
  const { onAsk } = client;
  const held = <A>(ask: () => Promise<A>) => {
    const timeless = () => clock.held(ask);
    return questions?.waiting?.during(questions.run, timeless) ?? timeless();
  };
  try {
    const timed = changedClient(client, {
      ...wrappedQuestions(client, held),
      // A model answers by itself: that takes no place of what waits for the person.
      onAsk: onAsk && ((asked) => {
        const ask = () => onAsk(asked);
        return asked.method === "elicitation/create" ? held(ask) : clock.held(ask);
      }),
    });
    return await work({ client: timed, signal: abort.signal }, (wait) => clock.held(wait));
  } finally {
    // What still runs for it has nobody to give its result to.
    abort.abort(new PmlError("CANCELLED", "Cannot finish the call: the run that made it is over"));
  }
}

/** Counts the time of a run. */
class Clock implements Disposable {
  readonly #end: () => void;
  #left: number;
  #since = performance.now();
  #timer: ReturnType<typeof setTimeout>;
  #asking = 0;

  constructor(ms: number, end: () => void) {
    this.#left = ms;
    this.#end = end;
    this.#timer = setTimeout(end, ms);
  }

  /** Does not count the time of some work. */
  async held<T>(work: () => Promise<T>): Promise<T> {
    // guard: code-asked-time
    if (this.#asking++ === 0) {
      clearTimeout(this.#timer);
      this.#left -= performance.now() - this.#since;
    }
    try {
      return await work();
    } finally {
      if (--this.#asking === 0) {
        this.#since = performance.now();
        this.#timer = setTimeout(this.#end, Math.max(this.#left, 0));
      }
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    // Whoever still waits starts it no more.
    this.#asking = Infinity;
  }
}

function timedOut({ via, mostMs }: RunStart, ms: number): PmlError {
  const hint = ms < mostMs
    ? `Do less at once, or raise timeout_ms (at most ${mostMs})`
    : "Do less at once, or raise limits.call_max_ms in config.yaml";
  return new PmlError("TIMED_OUT", `Cannot finish the ${via}: it took longer than ${ms} ms`, {
    hint,
  });
}

/**
 * Waits a little after a server reports that a list has changed, so that many reports cost one
 * request. A list that keeps changing is requested less and less often.
 *
 * @module
 */

import type { ListName } from "../../protocol/lists.ts";
import type { TimerClock } from "../../io/pool.ts";

/** How long a first report waits for others, and one of a list that keeps changing at most. */
const [CHANGE_MS, CHANGE_MAX_MS] = [100, 30_000];
/** After so many milliseconds without a report, the next one counts as a first one. */
const QUIET_MS = 60_000;

const CLOCK: TimerClock = {
  now: () => performance.now(),
  later: (call, ms) => {
    const timer = setTimeout(call, ms);
    Deno.unrefTimer(timer);
    return () => clearTimeout(timer);
  },
};

/** A list that was reported as changed. */
interface ListChange {
  /** How long the next request waits, in milliseconds. */
  wait: number;
  /** When it was reported last. */
  at: number;
  /** Cancels the request that waits. */
  cancel: (() => void) | undefined;
}

/** Loads the lists again that servers report as changed. */
export class ListChanges implements Disposable {
  readonly #reload: (server: string, list: ListName) => Promise<boolean>;
  readonly #onChange: (list: ListName) => void;
  readonly #clock: TimerClock;
  readonly #all = new Map<string, ListChange>();

  /**
   * Takes a function that loads a list and returns whether it has changed, which must not fail, and
   * a function that is called if it has.
   */
  constructor(
    reload: (server: string, list: ListName) => Promise<boolean>,
    onChange: (list: ListName) => void,
    clock: TimerClock = CLOCK,
  ) {
    this.#reload = reload;
    this.#onChange = onChange;
    this.#clock = clock;
  }

  /** Notes that a server reported a change of a list. */
  note(server: string, list: ListName): void {
    const key = `${server} ${list}`;
    const at = this.#clock.now();
    const known = this.#all.get(key);
    const isFirst = known === undefined || known.cancel === undefined && at - known.at > QUIET_MS;
    const change: ListChange = isFirst ? { wait: CHANGE_MS, at, cancel: undefined } : known;
    change.at = at;
    this.#all.set(key, change);
    change.cancel ??= this.#clock.later(() => void this.#load(change, server, list), change.wait);
  }

  async #load(change: ListChange, server: string, list: ListName): Promise<void> {
    change.cancel = undefined;
    const isReal = await this.#reload(server, list);
    change.wait = Math.min(change.wait * 2, CHANGE_MAX_MS);
    if (isReal) this.#onChange(list);
  }

  /** Cancels all requests that wait. */
  [Symbol.dispose](): void {
    for (const { cancel } of this.#all.values()) cancel?.();
    this.#all.clear();
  }
}

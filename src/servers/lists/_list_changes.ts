/**
 * Waits a little after a server reports that a list has changed, so that many reports cost one
 * request. A list that keeps changing is requested less and less often.
 *
 * @module
 */

import type { OtherMembers } from "../../protocol/call.ts";
import type { ListName } from "../../protocol/lists.ts";
import type { TimerClock } from "../../io/pool.ts";

/** How long a first report waits for others, and one of a list that keeps changing at most. */
const [CHANGE_MS, CHANGE_MAX_MS] = [100, 30_000];
/** After so many milliseconds without a report, the next one counts as a first one. */
const QUIET_MS = 60_000;

/** The most characters of the members that are joined. The last report replaces longer ones. */
const JOINED_MAX = 64_000;

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
  /** The members of the reports that PML does not know. */
  members: OtherMembers | undefined;
  /** Cancels the request that waits. */
  cancel: (() => void) | undefined;
}

/** Loads the lists again that servers report as changed. */
export class ListChanges implements Disposable {
  readonly #reload: (server: string, list: ListName) => Promise<boolean>;
  readonly #onChange: (list: ListName, members?: OtherMembers) => void;
  readonly #clock: TimerClock;
  readonly #all = new Map<string, ListChange>();

  /**
   * Takes a function that loads a list and returns whether it has changed, which must not fail, and
   * a function that is called if it has, or if a report had members that PML does not know.
   */
  constructor(
    reload: (server: string, list: ListName) => Promise<boolean>,
    onChange: (list: ListName, members?: OtherMembers) => void,
    clock: TimerClock = CLOCK,
  ) {
    this.#reload = reload;
    this.#onChange = onChange;
    this.#clock = clock;
  }

  /** Notes that a server reported a change of a list. */
  note(server: string, list: ListName, members?: OtherMembers): void {
    const key = `${server} ${list}`;
    const at = this.#clock.now();
    const entry = this.#all.get(key);
    const isFirst = entry === undefined || entry.cancel === undefined && at - entry.at > QUIET_MS;
    const change: ListChange = isFirst
      ? { wait: CHANGE_MS, at, members: undefined, cancel: undefined }
      : entry;
    change.at = at;
    change.members = joined(change.members, members);
    this.#all.set(key, change);
    change.cancel ??= this.#clock.later(() => void this.#load(change, server, list), change.wait);
  }

  async #load(change: ListChange, server: string, list: ListName): Promise<void> {
    const { members } = change;
    change.cancel = change.members = undefined;
    const isReal = await this.#reload(server, list);
    change.wait = Math.min(change.wait * 2, CHANGE_MAX_MS);
    // The members of a report may be the news.
    if (isReal || members !== undefined) this.#onChange(list, members);
  }

  /** Cancels all requests that wait. */
  [Symbol.dispose](): void {
    for (const { cancel } of this.#all.values()) cancel?.();
    this.#all.clear();
  }
}

/** Joins the members of reports that lead to one notification. */
function joined(
  one: OtherMembers | undefined,
  other: OtherMembers | undefined,
): OtherMembers | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  if (JSON.stringify([one, other]).length > JOINED_MAX) return other;
  return {
    params: { ...one.params, ...other.params },
    message: { ...one.message, ...other.message },
  };
}

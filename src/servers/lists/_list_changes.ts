/**
 * Loads lists again that servers report as changed. Waits a little after a report, so that several
 * reports lead to one request. If a list keeps changing, each wait is longer.
 *
 * @module
 */

import type { OtherMembers } from "../../protocol/call.ts";
import type { ListName } from "../../protocol/lists.ts";
import type { TimerClock } from "../../io/pool.ts";

/** The first and the longest wait after a report, in milliseconds. */
const [CHANGE_MS, CHANGE_MAX_MS] = [100, 30_000];
/**
 * After this time without a report, the next wait is as short as the first one. In milliseconds.
 */
const QUIET_MS = 60_000;

/**
 * The maximum length of the joined members of several reports as JSON, in characters. If they are
 * longer, only the members of the last report are passed on.
 */
const JOINED_MAX = 64_000;

const CLOCK: TimerClock = {
  now: () => performance.now(),
  callLater: (call, ms) => {
    const timer = setTimeout(call, ms);
    Deno.unrefTimer(timer);
    return () => clearTimeout(timer);
  },
};

/** The reports about one list, and the next request for it. */
interface ListChange {
  /** How long the next request is delayed, in milliseconds. */
  wait: number;
  /** When the last change was reported, by the clock. */
  at: number;
  /** The members of the reports that PML does not know, joined. */
  members: OtherMembers | undefined;
  /** Cancels the delayed request. */
  cancel: (() => void) | undefined;
}

/** Loads the lists again that servers report as changed. */
export class ListChanges implements Disposable {
  readonly #reload: (server: string, list: ListName) => Promise<boolean>;
  readonly #onChange: (list: ListName, members?: OtherMembers) => void;
  readonly #clock: TimerClock;
  readonly #changes = new Map<string, ListChange>();

  /**
   * `reload` loads a list and returns whether it has changed; it must not fail. `onChange` is
   * called if the list has changed, or if a report had members that PML does not know.
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
    const entry = this.#changes.get(key);
    const isFirst = entry === undefined || entry.cancel === undefined && at - entry.at > QUIET_MS;
    const change: ListChange = isFirst
      ? { wait: CHANGE_MS, at, members: undefined, cancel: undefined }
      : entry;
    change.at = at;
    change.members = joinMembers(change.members, members);
    this.#changes.set(key, change);
    change.cancel ??= this.#clock.callLater(
      () => void this.#load(change, server, list),
      change.wait,
    );
  }

  async #load(change: ListChange, server: string, list: ListName): Promise<void> {
    const { members } = change;
    change.cancel = change.members = undefined;
    const hasChanged = await this.#reload(server, list);
    change.wait = Math.min(change.wait * 2, CHANGE_MAX_MS);
    // Unknown members may be of interest to clients, even if the list is the same.
    if (hasChanged || members !== undefined) this.#onChange(list, members);
  }

  /** Cancels all delayed requests. */
  [Symbol.dispose](): void {
    for (const { cancel } of this.#changes.values()) cancel?.();
    this.#changes.clear();
  }
}

/** Joins the members of two reports that lead to one notification. */
function joinMembers(
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

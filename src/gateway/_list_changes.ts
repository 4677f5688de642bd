/**
 * Waits a little after a server says that its list has changed, so that many such words cost one
 * question. A list that always changes is asked for less and less.
 *
 * @module
 */

import type { ListName } from "../core/lists.ts";

/** Changes that come together are looked at together; one that always changes waits longer. */
const CHANGE_MS = 100;
const CHANGE_MAX_MS = 30_000;
const QUIET_MS = 60_000;

/** When a list that is said to have changed is asked for again. */
interface Changing {
  wait: number;
  /** When it was said last. */
  at: number;
  timer: ReturnType<typeof setTimeout> | undefined;
}

/** What is done about changes. */
export interface ListChangesOptions {
  /** Asks for a list again; true if it is another one. It never fails. */
  readonly reload: (server: string, list: ListName) => Promise<boolean>;
  /** Told when a list has really changed. */
  readonly onChange: (list: ListName) => void;
}

/** Has changed lists asked for again, in time. */
export class ListChanges implements Disposable {
  readonly #options: ListChangesOptions;
  readonly #all = new Map<string, Changing>();

  /** Waits for the first change. */
  constructor(options: ListChangesOptions) {
    this.#options = options;
  }

  /** Takes note that a server says its list has changed. */
  note(server: string, list: ListName): void {
    const key = `${server} ${list}`;
    const now = performance.now();
    const known = this.#all.get(key);
    const isQuiet = known === undefined ||
      known.timer === undefined && now - known.at > QUIET_MS;
    const changing: Changing = isQuiet ? { wait: CHANGE_MS, timer: undefined, at: now } : known;
    changing.at = now;
    this.#all.set(key, changing);
    changing.timer ??= setTimeout(async () => {
      changing.timer = undefined;
      const isReal = await this.#options.reload(server, list);
      changing.wait = Math.min(changing.wait * 2, CHANGE_MAX_MS);
      if (isReal) this.#options.onChange(list);
    }, changing.wait);
    Deno.unrefTimer(changing.timer);
  }

  /** Looks at no change any more. */
  [Symbol.dispose](): void {
    for (const { timer } of this.#all.values()) clearTimeout(timer);
    this.#all.clear();
  }
}

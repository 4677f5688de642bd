/**
 * Says in which state a store on PostgreSQL is, and asks the server for that only now and then.
 *
 * @module
 */

import { setTimeout as delay } from "node:timers/promises";
import type { Queries } from "./_pg.ts";

/** How long a hub believes what the server said, from when it began to ask. */
const HELD_MS = 50;
/** A little longer than any hub believes what was so before a change: timers may be early. */
const SETTLED_MS = HELD_MS + 10;

/**
 * The stamp of a store, which is another one after each change. Several hubs answer alike, because
 * a change is told as done only after each of them has asked again.
 */
export class PgStamp {
  readonly #pg: Pick<Queries, "get">;
  #look: { readonly began: number; readonly stamp: Promise<string> } | undefined;

  /** Takes a server whose tables are up to date. */
  constructor(pg: Pick<Queries, "get">) {
    this.#pg = pg;
  }

  /** Returns the stamp. Throws if the server must be asked and does not answer. */
  now(): Promise<string> {
    const now = performance.now();
    // Who comes later than that waits for no look that began before: its change could be missing.
    if (this.#look !== undefined && now - this.#look.began < HELD_MS) return this.#look.stamp;
    const look = { began: now, stamp: this.#asked() };
    this.#look = look;
    look.stamp.catch(() => this.#look === look && this.#drop());
    return look.stamp;
  }

  /** Makes a change, and returns what became of it once every hub answers with it. */
  async settled<T>(change: Promise<T>): Promise<T> {
    try {
      const made = await change;
      await delay(SETTLED_MS);
      return made;
    } finally {
      this.#drop();
    }
  }

  async #asked(): Promise<string> {
    const row = await this.#pg.get("SELECT stamp::text AS stamp FROM changed");
    if (row === undefined) throw new Error("the table of changes is empty");
    return String(row.stamp);
  }

  #drop(): void {
    this.#look = undefined;
  }
}

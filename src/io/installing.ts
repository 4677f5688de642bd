/**
 * Follows an installer: tells those who wait what it does, and keeps the end of what it said.
 *
 * @module
 */

import { visible, visibleLines } from "../core/json.ts";

/** How often those who wait are told that it goes on, so that no deadline passes meanwhile. */
const TELL_MS = 1_000;
const TAIL = 4_000;
/** What npm says of each file that it fetches. */
const FETCHED = /^npm http \S+ (?:GET \d+ )?(\S+)/;

/** Told what is done now. */
export type Tell = (message: string) => void;

/** One installation that is under way. */
export class Installing implements Disposable {
  readonly #what: string;
  readonly #listeners = new Set<Tell>();
  readonly #since = Date.now();
  readonly #timer: ReturnType<typeof setInterval>;
  #fetched = 0;
  #now = "";
  #tail = "";
  #rest = "";

  /** Begins to tell. */
  constructor(what: string) {
    this.#what = what;
    this.#timer = setInterval(() => this.#tell(), TELL_MS);
  }

  /** What it said last, without what was fetched. */
  get tail(): string {
    return visibleLines((this.#tail + this.#rest).trim(), TAIL);
  }

  /** Has somebody told, now and from now on. */
  join(tell: Tell): void {
    this.#listeners.add(tell);
    tell(this.#said());
  }

  /** Takes a part of what the installer wrote. */
  hear(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = (lines.pop() ?? "").slice(-TAIL);
    for (const line of lines) {
      const [, url] = FETCHED.exec(line) ?? [];
      if (url !== undefined) {
        this.#fetched++;
        this.#now = url.split("/").at(-1)?.replace(/%2f/i, "/") ?? "";
      } else {
        this.#tail = `${this.#tail}${line}\n`.slice(-TAIL);
        this.#now = line.trim();
      }
    }
  }

  /** Stops telling. */
  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #tell(): void {
    for (const tell of this.#listeners) tell(this.#said());
  }

  #said(): string {
    const seconds = Math.round((Date.now() - this.#since) / 1_000);
    const count = this.#fetched === 0 ? [] : [`${this.#fetched} fetched`];
    const facts = [...(seconds === 0 ? [] : [`${seconds} s`]), ...count, visible(this.#now, 100)];
    const told = facts.filter((fact) => fact !== "").join(", ");
    return told === "" ? this.#what : `${this.#what}: ${told}`;
  }
}

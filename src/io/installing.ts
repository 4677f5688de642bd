/**
 * Reports the progress of an installer to its listeners, and keeps the end of its output.
 *
 * @module
 */

import { visible, visibleLines } from "../core/json.ts";
import { withoutColours } from "../core/program_output.ts";

/** How often progress is reported, in milliseconds: often enough to extend each deadline. */
const TELL_MS = 1_000;
const TAIL = 4_000;
/** The line that npm writes for each file that it downloads. */
const FETCHED = /^npm http \S+ (?:GET \d+ )?(\S+)/;

/** Receives a text about the current step. */
export type ReportStep = (message: string) => void;

/** An installation in progress. */
export class Installing implements Disposable {
  readonly #title: string;
  readonly #listeners = new Set<ReportStep>();
  readonly #since = Date.now();
  readonly #timer: ReturnType<typeof setInterval>;
  #fetched = 0;
  #now = "";
  #tail = "";
  #rest = "";

  /** Takes the title of the installation, and begins to report. */
  constructor(title: string) {
    this.#title = title;
    this.#timer = setInterval(() => this.#tell(), TELL_MS);
  }

  /** The end of the output, without the lines about downloads. */
  get tail(): string {
    return visibleLines((this.#tail + withoutColours(this.#rest)).trim(), TAIL);
  }

  /** Adds a listener, which is called at once. */
  join(tell: ReportStep): void {
    this.#listeners.add(tell);
    tell(this.#message());
  }

  /** Takes a part of the installer's output. */
  hear(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = (lines.pop() ?? "").slice(-TAIL);
    for (const coloured of lines) {
      const line = withoutColours(coloured);
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

  /** Stops reporting. */
  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #tell(): void {
    for (const tell of this.#listeners) tell(this.#message());
  }

  #message(): string {
    const seconds = Math.round((Date.now() - this.#since) / 1_000);
    const count = this.#fetched === 0 ? [] : [`${this.#fetched} fetched`];
    const facts = [...(seconds === 0 ? [] : [`${seconds} s`]), ...count, visible(this.#now, 100)];
    const details = facts.filter(Boolean).join(", ");
    return details === "" ? this.#title : `${this.#title}: ${details}`;
  }
}

/**
 * Reports the progress of an installer to its listeners, and keeps the end of its output.
 *
 * @module
 */

import { visible, visibleLines } from "../core/json.ts";
import { withoutColours } from "../core/program_output.ts";

/** How often progress is reported, in milliseconds: often enough to extend each deadline. */
const REPORT_MS = 1_000;
/** The maximum number of characters of the end of the output. */
const TAIL = 4_000;
/** The line that npm writes for each file that it downloads. */
const FETCHED = /^npm http \S+ (?:GET \d+ )?(\S+)/;

/** Receives a text about the current step. */
export type ReportStep = (message: string) => void;

/** An installation in progress. */
export class InstallProgress implements Disposable {
  readonly #title: string;
  readonly #listeners = new Set<ReportStep>();
  readonly #since = Date.now();
  readonly #timer: ReturnType<typeof setInterval>;
  #fetchedCount = 0;
  #currentStep = "";
  #tail = "";
  #partialLine = "";

  /** Takes the title of the installation, and begins to report. */
  constructor(title: string) {
    this.#title = title;
    this.#timer = setInterval(() => this.#report(), REPORT_MS);
  }

  /** The end of the output, without the lines about downloads. */
  get tail(): string {
    return visibleLines((this.#tail + withoutColours(this.#partialLine)).trim(), TAIL);
  }

  /** Adds a listener, which is called at once. */
  addListener(listener: ReportStep): void {
    this.#listeners.add(listener);
    listener(this.#message());
  }

  /** Takes a part of the installer's output. */
  addOutput(text: string): void {
    const lines = (this.#partialLine + text).split("\n");
    this.#partialLine = (lines.pop() ?? "").slice(-TAIL);
    for (const coloured of lines) {
      const line = withoutColours(coloured);
      const [, url] = FETCHED.exec(line) ?? [];
      if (url !== undefined) {
        this.#fetchedCount++;
        this.#currentStep = url.split("/").at(-1)?.replace(/%2f/i, "/") ?? "";
      } else {
        this.#tail = `${this.#tail}${line}\n`.slice(-TAIL);
        this.#currentStep = line.trim();
      }
    }
  }

  /** Stops reporting. */
  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #report(): void {
    for (const listener of this.#listeners) listener(this.#message());
  }

  #message(): string {
    const seconds = Math.round((Date.now() - this.#since) / 1_000);
    const count = this.#fetchedCount === 0 ? [] : [`${this.#fetchedCount} fetched`];
    const time = seconds === 0 ? [] : [`${seconds} s`];
    const facts = [...time, ...count, visible(this.#currentStep, 100)];
    const details = facts.filter(Boolean).join(", ");
    return details === "" ? this.#title : `${this.#title}: ${details}`;
  }
}

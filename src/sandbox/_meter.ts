/**
 * Bounds on what a child may say: a meter that kills, and a tap that thins out.
 *
 * @module
 */

import { visible } from "../core/json.ts";

const LINES_A_SECOND = 200;
const LINE_MAX = 4_096;

/** How loud a log line is. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** One line that a module logged. */
export interface LogEntry {
  readonly level: LogLevel;
  readonly text: string;
}

/** Counts the messages and bytes of one call. */
export class Meter {
  #bytes = 0;
  #messages = 0;
  readonly #limits: { readonly frameBytes: number; readonly frames: number };

  /** Takes the most bytes and messages. */
  constructor(limits: { readonly frameBytes: number; readonly frames: number }) {
    this.#limits = limits;
  }

  /** Counts one message, and gives what is too much, if anything is. */
  add(bytes: number): string | undefined {
    this.#bytes += bytes;
    this.#messages++;
    const { frameBytes, frames } = this.#limits;
    if (this.#bytes > frameBytes) return `it wrote more than ${frameBytes} bytes`;
    return this.#messages > frames ? `it sent more than ${frames} messages` : undefined;
  }
}

/** Passes log lines on, cut and at most so many a second. */
export class LogTap {
  readonly #onLog: (entry: LogEntry) => void;
  #second = 0;
  #lines = 0;

  /** Takes where the lines go. */
  constructor(onLog: (entry: LogEntry) => void) {
    this.#onLog = onLog;
  }

  /** Passes one line on, or counts it as left out. */
  say(level: LogLevel, text: string): void {
    const second = Math.floor(performance.now() / 1_000);
    if (second !== this.#second) this.#next(second);
    if (++this.#lines <= LINES_A_SECOND) this.#onLog({ level, text: visible(text, LINE_MAX) });
  }

  #next(second: number): void {
    const left = this.#lines - LINES_A_SECOND;
    this.#second = second;
    this.#lines = 0;
    if (left > 0) this.#onLog({ level: "warn", text: `${left} log lines were left out` });
  }
}

/** Reads a level that a module named. */
export function levelOf(text: unknown): LogLevel {
  return text === "debug" || text === "warn" || text === "error" ? text : "info";
}

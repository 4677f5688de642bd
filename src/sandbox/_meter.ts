/**
 * Limits the output of a child: `Meter` detects a child that sends too much, `LogTap` drops log
 * lines.
 *
 * @module
 */

import { visible } from "../core/json.ts";

/** The maximum number of log lines per second, and the maximum length of a line, in characters. */
const LINES_A_SECOND = 200;
const LINE_MAX = 4_096;

/** The level of a log line. */
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

  /**
   * Creates a meter. `frames` is the maximum number of messages, `frameBytes` their maximum size.
   */
  constructor(limits: { readonly frameBytes: number; readonly frames: number }) {
    this.#limits = limits;
  }

  /** Counts one message. Returns a text about the exceeded limit, or undefined. */
  add(bytes: number): string | undefined {
    this.#bytes += bytes;
    this.#messages++;
    const { frameBytes, frames } = this.#limits;
    if (this.#bytes > frameBytes) return `it wrote more than ${frameBytes} bytes`;
    return this.#messages > frames ? `it sent more than ${frames} messages` : undefined;
  }
}

/** Forwards log lines: truncates long lines, and limits the number of lines per second. */
export class LogTap {
  readonly #onLog: (entry: LogEntry) => void;
  #second = 0;
  #lines = 0;

  /** Creates a tap that sends its lines to `onLog`. */
  constructor(onLog: (entry: LogEntry) => void) {
    this.#onLog = onLog;
  }

  /** Forwards one line, or drops it and counts it. */
  write(level: LogLevel, text: string): void {
    const second = Math.floor(performance.now() / 1_000);
    if (second !== this.#second) this.#next(second);
    if (++this.#lines <= LINES_A_SECOND) this.#onLog({ level, text: visible(text, LINE_MAX) });
  }

  #next(second: number): void {
    const lines = this.#lines - LINES_A_SECOND;
    this.#second = second;
    this.#lines = 0;
    if (lines > 0) this.#onLog({ level: "warn", text: `${lines} log lines were left out` });
  }
}

/** Returns the level that a module passed; "info" if it is not a level. */
export function levelOf(text: unknown): LogLevel {
  return text === "debug" || text === "warn" || text === "error" ? text : "info";
}

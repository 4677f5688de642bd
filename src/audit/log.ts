/**
 * The log: lines for the user on stderr, without secrets and with visible control characters.
 *
 * @module
 */

import { visible } from "../core/json.ts";
import type { WarningLog } from "../io/private_files.ts";
import type { Redactor } from "./redact.ts";

const LEVELS = ["debug", "info", "warn", "error"] as const;
/** The maximum number of characters that are written, and that are searched for secrets. */
const [LONGEST_LINE, LONGEST_SEARCHED] = [4_000, 65_536];

/** The level of a line. */
export type Level = typeof LEVELS[number];

/** Named values that follow the text of a line. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Writes lines for the user to stderr, because stdout is for the protocol. */
export class Log implements WarningLog {
  readonly #redactor: Redactor;
  readonly #leastLevel: number;
  readonly #write: (line: string) => void;

  /** Opens a log. `level` is the lowest level that is written, and `write` receives each line. */
  constructor(
    redactor: Redactor,
    level: Level = "info",
    write: (line: string) => void = toStderr,
  ) {
    this.#redactor = redactor;
    this.#leastLevel = LEVELS.indexOf(level);
    this.#write = write;
  }

  /** Writes a detail for debugging. */
  debug(text: string, fields?: LogFields): void {
    this.#line("debug", text, fields);
  }

  /** Writes an event. */
  info(text: string, fields?: LogFields): void {
    this.#line("info", text, fields);
  }

  /** Writes a warning for the user. */
  warn(text: string, fields?: LogFields): void {
    this.#line("warn", text, fields);
  }

  /** Writes a failure. */
  error(text: string, fields?: LogFields): void {
    this.#line("error", text, fields);
  }

  #line(level: Level, text: string, fields: LogFields = {}): void {
    if (LEVELS.indexOf(level) < this.#leastLevel) return;
    const entries = Object.entries(fields).filter(([, value]) => value !== undefined)
      .map(([name, value]) => ` ${name}=${fieldText(value)}`);
    const line = `${text}${entries.join("")}`.slice(0, LONGEST_SEARCHED);
    const time = new Date().toISOString().slice(11, 23);
    // Secrets are removed before the line is truncated: half a secret would not be recognized.
    this.#write(
      `${time} ${level.padEnd(5)} ${visible(this.#redactor.redact(line), LONGEST_LINE)}`,
    );
  }
}

function toStderr(line: string): void {
  console.error(line);
}

function fieldText(value: unknown): string {
  if (typeof value === "string" && /^[\w./:@+-]+$/.test(value)) return value;
  return JSON.stringify(value instanceof Error ? `${value}` : value);
}

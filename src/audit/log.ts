/**
 * The log: lines for a person on stderr, with secrets taken out and control characters made visible.
 *
 * @module
 */

import { visible } from "../core/json.ts";
import type { Redactor } from "./redact.ts";

const LEVELS = ["debug", "info", "warn", "error"] as const;
const LONGEST_LINE = 4_000;
const LONGEST_READ = 65_536;

/** How much a line matters. */
export type Level = typeof LEVELS[number];

/** What a line says beside its text. */
export type LogFields = Readonly<Record<string, unknown>>;

/** How a log is opened. */
export interface LogOptions {
  readonly redactor: Redactor;
  /** The least level that is written; `info` unless told. */
  readonly level?: Level;
  /** Where lines go; stderr unless told. */
  readonly write?: ((line: string) => void) | undefined;
}

/** Writes lines for a person to stderr; stdout belongs to the protocol. */
export class Log {
  readonly #redactor: Redactor;
  readonly #least: number;
  readonly #write: (line: string) => void;

  /** Opens a log. */
  constructor(options: LogOptions) {
    this.#redactor = options.redactor;
    this.#least = LEVELS.indexOf(options.level ?? "info");
    this.#write = options.write ?? toStderr;
  }

  /** Says what only somebody who looks for a fault wants to know. */
  debug(text: string, fields?: LogFields): void {
    this.#line("debug", text, fields);
  }

  /** Says what happened. */
  info(text: string, fields?: LogFields): void {
    this.#line("info", text, fields);
  }

  /** Says what may surprise the person. */
  warn(text: string, fields?: LogFields): void {
    this.#line("warn", text, fields);
  }

  /** Says what went wrong. */
  error(text: string, fields?: LogFields): void {
    this.#line("error", text, fields);
  }

  #line(level: Level, text: string, fields: LogFields = {}): void {
    if (LEVELS.indexOf(level) < this.#least) return;
    const said = Object.entries(fields).filter(([, value]) => value !== undefined)
      .map(([name, value]) => ` ${name}=${fieldText(value)}`);
    const line = `${text}${said.join("")}`.slice(0, LONGEST_READ);
    const time = new Date().toISOString().slice(11, 23);
    // Secrets go before the line is cut: half of one would no longer be known.
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

/**
 * What a function of a module gets as its second argument. The types are PML's face to module
 * authors; the sandbox implements them.
 *
 * @module
 */

import type { Progress } from "./call.ts";

/** What a module may use beyond the file functions of `Deno`. */
export interface Host {
  /** The workspace, an absolute real path; relative paths start here. */
  readonly workspace: string;
  /** Aborts when the call is given up. */
  readonly signal: AbortSignal;
  /** Writes a line to PML's log: `log("text")` or `log("warn", "text")`. */
  log(...said: readonly [text: string] | readonly [level: string, text: string]): void;
  /** Tells how far the call has come, which also extends its deadline. */
  progress(progress: Progress): void;
  /**
   * Runs a program with the person's rights: an absolute file outside the workspace, found once by
   * its name, its arguments as they are, never a shell. Needs a run grant that names the program.
   * Rejects with `NotCapable` where the program is not granted or lies in the workspace, and where
   * `cwd` is no folder of it; with `NotFound` where there is no such program. A program that fails
   * resolves with its code.
   */
  exec(
    program: string,
    args?: readonly string[],
    options?: ExecOptions,
  ): Promise<ExecResult>;
  /** Opens a SQLite database of the workspace. */
  sqlite(path: string, options?: SqliteOptions): Promise<Database>;
  /**
   * Fetches from a host that a net grant names. The body is read whole, up to the limit of a
   * result; redirects are followed only to hosts that are granted too.
   */
  fetch(url: string | URL, init?: RequestInit): Promise<Response>;
  /** Gives a variable that the module declares and the person grants; undefined if it is not set. */
  env(name: string): string | undefined;
}

/** How a program is run. */
export interface ExecOptions {
  /** A folder of the workspace to run in; the workspace unless said. */
  readonly cwd?: string;
  /** What it reads from its standard input; nothing unless said. */
  readonly stdin?: string | Uint8Array;
  /**
   * Variables beside LANG, TZ, TERM, HOME, PATH and the granted ones; none of these can be set, nor
   * what changes how programs run, but by a module that may run any.
   */
  readonly env?: Readonly<Record<string, string>>;
  /** After how many milliseconds it is killed with everything that it started. */
  readonly timeoutMs?: number;
  /** How many bytes of each output are kept, its head and its tail; 1 MiB unless said, 16 MiB at most. */
  readonly maxBytes?: number;
  /** Is told what was written last, at most twenty times a second. */
  readonly onOutput?: (output: ExecOutput) => void;
}

/** The end of what a program has written so far. */
export interface ExecOutput {
  /** Which of the two it is of. */
  readonly stream: "stdout" | "stderr";
  /** At most 4 KiB of text. */
  readonly text: string;
}

/** What became of a program. */
export interface ExecResult {
  /** Its exit code; 128 and the number of the signal where one ended it. */
  readonly code: number;
  /** The signal that ended it, such as `SIGKILL`. */
  readonly signal: string | null;
  /** What it wrote, as UTF-8 text; where `omitted` is over 0, a line in the middle says so. */
  readonly stdout: string;
  /** As `stdout`. */
  readonly stderr: string;
  /** How many bytes were left out of the middle. */
  readonly omitted: { readonly stdout: number; readonly stderr: number };
  /** Whether `timeoutMs` ended it. */
  readonly timedOut: boolean;
}

/** How a database is opened. */
export interface SqliteOptions {
  /** Whether it may be changed, and made where it is missing; read-only unless said. */
  readonly write?: boolean;
}

/** A value of SQLite as modules see it. */
export type SqlValue = null | number | bigint | string | Uint8Array;

/** Values to bind: in order, or by name without the sign before it. */
export type SqlParameters = readonly SqlValue[] | Readonly<Record<string, SqlValue>>;

/** Rows, and whether there were more. */
export interface SqlRows {
  /** The names of the columns. */
  readonly columns: readonly string[];
  /** Each row, in the order of the columns. */
  readonly rows: readonly (readonly SqlValue[])[];
  /** Whether there are rows behind these. */
  readonly more: boolean;
}

/** What a statement changed. */
export interface SqlChanges {
  /** How many rows it changed. */
  readonly changes: number;
  /** The row id that was given last. */
  readonly lastInsertRowid: number | bigint;
}

/** An open database. */
export interface Database extends AsyncDisposable {
  /** Runs one statement and gives its rows from `offset` (0) on, `limit` (1,000) at most. */
  query(
    sql: string,
    parameters?: SqlParameters,
    page?: { readonly limit?: number; readonly offset?: number },
  ): Promise<SqlRows>;
  /** Runs one statement that changes something. */
  execute(sql: string, parameters?: SqlParameters): Promise<SqlChanges>;
  /** Closes it; the end of the call does too. */
  close(): Promise<void>;
}

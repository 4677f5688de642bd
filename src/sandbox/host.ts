/**
 * The second argument of a module's functions. Module authors use these types; the sandbox
 * implements them.
 *
 * @module
 */

import type { Progress } from "../protocol/call.ts";

/** The functions that a module may use in addition to the file functions of `Deno`. */
export interface Host {
  /** The workspace: an absolute real path. Relative paths start here. */
  readonly workspace: string;
  /** Aborts when the call is cancelled or its deadline passes. */
  readonly signal: AbortSignal;
  /** Writes a line to PML's log: `log("text")` or `log("warn", "text")`. */
  log(...args: readonly [text: string] | readonly [level: string, text: string]): void;
  /** Reports the progress of the call. This also extends its deadline. */
  progress(progress: Progress): void;
  /**
   * Runs a program with the user's rights, without a shell. PML looks up the program once by its
   * name; the file must be outside the workspace. Needs a run grant that names the program.
   * Rejects with `NotCapable` if the program is not granted or is in the workspace, or if `cwd`
   * is not a folder of the workspace; with `NotFound` if there is no such program. A program that
   * fails resolves with its exit code.
   */
  exec(
    program: string,
    args?: readonly string[],
    options?: ExecOptions,
  ): Promise<ExecResult>;
  /**
   * Opens a SQLite database in the workspace. Rejects with `NotCapable` if the path lacks a
   * read grant, or with `write` a write grant.
   */
  sqlite(path: string, options?: SqliteOptions): Promise<Database>;
  /**
   * Fetches from a host that a net grant names. Reads the whole body, up to the size limit of a
   * result. Follows redirects only to granted hosts. Rejects with `NotCapable` if no grant names the
   * host.
   */
  fetch(url: string | URL, init?: RequestInit): Promise<Response>;
  /**
   * Returns a variable that the module declares and the user grants; undefined if it is not set.
   */
  env(name: string): string | undefined;
  /**
   * Sends a request to a model: the client's, or the one that the user configured. PML asks the
   * user first, unless a rule allows `SERVER:@sampling`. Rejects with an error whose `code` is
   * `PERMISSION_DENIED`, `APPROVAL_DECLINED`, `KEY_MISSING`, `OVERLOADED` or another reason.
   */
  sample(request: SampleRequest): Promise<SampleResult>;
}

/** A request to a model, as in `sampling/createMessage` of MCP. */
export interface SampleRequest {
  /** The conversation. */
  readonly messages: readonly SampleMessage[];
  /** The system prompt. */
  readonly systemPrompt?: string;
  /** The maximum number of tokens of an answer. */
  readonly maxTokens: number;
  /** How varied answers are; 0 varies least. */
  readonly temperature?: number;
  /** Texts at which the model stops. */
  readonly stopSequences?: readonly string[];
  /** The preferred models, as names or parts of names. */
  readonly modelPreferences?: { readonly hints?: readonly { readonly name?: string }[] };
  /**
   * The tools that PML runs for the model, as globs of their names (`git__*`). A tool must match
   * `sampling.allowed_tool_patterns`, too. The user's rules apply to each call.
   */
  readonly allowedToolPatterns?: readonly string[];
  /** Tools that the module runs itself: an answer may then contain `tool_use` blocks. */
  readonly tools?: readonly {
    readonly name: string;
    readonly description?: string;
    readonly inputSchema: object;
  }[];
  /** Whether the model may, must, or must not use a tool. */
  readonly toolChoice?: { readonly mode: "auto" | "required" | "none" };
}

/** A message of a conversation with a model. */
export interface SampleMessage {
  /** The author of the message. */
  readonly role: "user" | "assistant";
  /** A text, or blocks as in MCP. */
  readonly content: string | SampleBlock | readonly SampleBlock[];
}

/** A block of a message: `text`, `image`, `audio`, `tool_use` or `tool_result`. */
export interface SampleBlock {
  /** The kind of the block. */
  readonly type: string;
  /** The fields of a block of this kind, such as `text`. */
  readonly [key: string]: unknown;
}

/** The answer of a model. */
export interface SampleResult {
  /** The author of the answer. */
  readonly role: "assistant";
  /** The name of the model that answered. */
  readonly model: string;
  /** One block, or several if the model uses tools of the module. */
  readonly content: SampleBlock | readonly SampleBlock[];
  /** `endTurn`, `stopSequence`, `maxTokens`, `toolUse`, `maxTurns` and others. */
  readonly stopReason?: string;
}

/** The options of a program that a module runs. */
export interface ExecOptions {
  /** A folder of the workspace to run in; by default the workspace. */
  readonly cwd?: string;
  /** The standard input; by default empty. */
  readonly stdin?: string | Uint8Array;
  /**
   * Variables in addition to LANG, TZ, TERM, HOME, PATH and the granted ones, which cannot be
   * replaced. Only a module that may run any program can set variables that change how programs
   * run.
   */
  readonly env?: Readonly<Record<string, string>>;
  /** Time limit in milliseconds. Afterwards the program and all that it started are killed. */
  readonly timeoutMs?: number;
  /**
   * The number of bytes that are kept of each output (its head and its tail); by default 1 MiB, at
   * most 16 MiB.
   */
  readonly maxBytes?: number;
  /** Called with the newest output, at most 20 times a second. */
  readonly onOutput?: (output: ExecOutput) => void;
}

/** The end of a program's output so far. */
export interface ExecOutput {
  /** Which of the two outputs this is. */
  readonly stream: "stdout" | "stderr";
  /** At most 4 KiB of text. */
  readonly text: string;
}

/** The result of a program that ran. */
export interface ExecResult {
  /** The exit code. If a signal ended the program: 128 plus the number of the signal. */
  readonly code: number;
  /** The signal that ended it, such as `SIGKILL`. */
  readonly signal: string | null;
  /** The standard output as UTF-8 text. If `omitted` is over 0, a line marks the gap. */
  readonly stdout: string;
  /** The standard error, like `stdout`. */
  readonly stderr: string;
  /** The number of bytes that were dropped from the middle of each output. */
  readonly omitted: { readonly stdout: number; readonly stderr: number };
  /** Whether the program was killed after `timeoutMs`. */
  readonly timedOut: boolean;
}

/** The options of a database. */
export interface SqliteOptions {
  /**
   * Whether the database may be changed, and created if it is missing; by default it is read-only.
   */
  readonly write?: boolean;
}

/** A value of SQLite as modules see it. */
export type SqlValue = null | number | bigint | string | Uint8Array;

/** The values to bind: in order, or by name without the prefix (such as `:`). */
export type SqlParameters = readonly SqlValue[] | Readonly<Record<string, SqlValue>>;

/** The rows of a query, and whether there are more. */
export interface SqlRows {
  /** The names of the columns. */
  readonly columns: readonly string[];
  /** The rows. The values of each row are in the order of the columns. */
  readonly rows: readonly (readonly SqlValue[])[];
  /** Whether there are more rows after these. */
  readonly more: boolean;
}

/** The changes that a statement made. */
export interface SqlChanges {
  /** The number of rows that it changed. */
  readonly changes: number;
  /** The row id of the last inserted row. */
  readonly lastInsertRowid: number | bigint;
}

/** An open database. */
export interface Database extends AsyncDisposable {
  /** Runs one statement and returns its rows: at most `limit` (1,000) from `offset` (0) on. */
  query(
    sql: string,
    parameters?: SqlParameters,
    page?: { readonly limit?: number; readonly offset?: number },
  ): Promise<SqlRows>;
  /** Runs one statement that changes the database. */
  execute(sql: string, parameters?: SqlParameters): Promise<SqlChanges>;
  /** Closes the database. It is also closed when the call ends. */
  close(): Promise<void>;
}

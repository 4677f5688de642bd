/**
 * The second argument of a module's functions. Module authors use these types; the sandbox
 * implements them.
 *
 * @module
 */

import type { Progress } from "../protocol/call.ts";

/** The functions that a module may use beside the file functions of `Deno`. */
export interface Host {
  /** The workspace: an absolute real path. Relative paths start here. */
  readonly workspace: string;
  /** Aborts when the call is cancelled or too late. */
  readonly signal: AbortSignal;
  /** Writes a line to PML's log: `log("text")` or `log("warn", "text")`. */
  log(...said: readonly [text: string] | readonly [level: string, text: string]): void;
  /** Reports the progress of the call. This also extends its deadline. */
  progress(progress: Progress): void;
  /**
   * Runs a program with the person's rights, without a shell. PML looks up the program once by its
   * name; the file must lie outside the workspace. Needs a run grant that names the program.
   * Rejects with `NotCapable` if the program is not granted or lies in the workspace, or if `cwd`
   * is not a folder of the workspace; with `NotFound` if there is no such program. A program that
   * fails resolves with its exit code.
   */
  exec(
    program: string,
    args?: readonly string[],
    options?: ExecOptions,
  ): Promise<ExecResult>;
  /** Opens a SQLite database in the workspace. */
  sqlite(path: string, options?: SqliteOptions): Promise<Database>;
  /**
   * Fetches from a host that a net grant names. The whole body is read, up to the limit of a
   * result. Redirects are followed only to hosts that are granted, too.
   */
  fetch(url: string | URL, init?: RequestInit): Promise<Response>;
  /**
   * Returns a variable that the module declares and the person grants; undefined if it is not set.
   */
  env(name: string): string | undefined;
  /**
   * Asks a model: the client's, or the one that the person configured. The person is asked first,
   * unless a rule allows `SERVER:@sampling`. Rejects with an error whose `code` says why there is no
   * answer: `PERMISSION_DENIED`, `APPROVAL_DECLINED`, `KEY_MISSING`, `OVERLOADED` and others.
   */
  sample(request: SampleRequest): Promise<SampleResult>;
}

/** A question to a model, as `sampling/createMessage` of MCP has it. */
export interface SampleRequest {
  /** The conversation. */
  readonly messages: readonly SampleMessage[];
  /** What the model is told before the conversation. */
  readonly systemPrompt?: string;
  /** The most tokens of an answer. */
  readonly maxTokens: number;
  /** How varied answers are: 0 is the least. */
  readonly temperature?: number;
  /** Texts at which the model stops. */
  readonly stopSequences?: readonly string[];
  /** The preferred models, as names or parts of names. */
  readonly modelPreferences?: { readonly hints?: readonly { readonly name?: string }[] };
  /**
   * The tools that PML runs for the model, as globs of their names (`git__*`): those that
   * `sampling.allowed_tool_patterns` allows, too. The person's rules judge each call.
   */
  readonly allowedToolPatterns?: readonly string[];
  /** Tools that the module runs itself: an answer then may hold `tool_use` blocks. */
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
  /** Who says it. */
  readonly role: "user" | "assistant";
  /** A text, or blocks as MCP has them. */
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
  /** Who says it: the model. */
  readonly role: "assistant";
  /** The name of the model that answered. */
  readonly model: string;
  /** One block, or several where the model uses tools of the module. */
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
   * More variables, beside LANG, TZ, TERM, HOME, PATH and the granted ones. Those cannot be
   * replaced. Variables that change how programs run can be set only by a module that may run any
   * program.
   */
  readonly env?: Readonly<Record<string, string>>;
  /** The time limit in milliseconds. After it the program and everything it started is killed. */
  readonly timeoutMs?: number;
  /**
   * How many bytes of each output are kept (its head and its tail); by default 1 MiB, at most 16
   * MiB.
   */
  readonly maxBytes?: number;
  /** Is called with the newest output, at most twenty times a second. */
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
  /** The standard output as UTF-8 text. If `omitted` is over 0, a line in the middle says so. */
  readonly stdout: string;
  /** The standard error, like `stdout`. */
  readonly stderr: string;
  /** How many bytes were left out of the middle of each output. */
  readonly omitted: { readonly stdout: number; readonly stderr: number };
  /** Whether the program was ended because `timeoutMs` was over. */
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

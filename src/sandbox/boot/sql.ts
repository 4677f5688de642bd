/**
 * A SQLite connection that can access only its own database, with limits on statements and results.
 *
 * @module
 */

import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { SqlChanges, SqlRows } from "../host.ts";
import { copyBytes } from "./handles.ts";

/** The error for a statement that is not run. */
export class SqlProblem extends Error {
  readonly code: string;

  /** Creates an error with the reason and an error code of PML. */
  constructor(why: string, code = "SANDBOX_DENIED") {
    super(why);
    this.code = code;
  }
}

/** The requested part of a result. */
export interface RowPage {
  readonly limit: number;
  readonly offset: number;
  /** The maximum total size of the values in bytes. */
  readonly bytes: number;
}

/** Members of Deno's `node:sqlite` that are missing in its types. */
interface NativeDatabase extends Omit<DatabaseSync, "prepare"> {
  prepare(sql: string): NativeStatement;
  readonly limits: Record<string, number>;
  setAuthorizer(judge: (action: number, one: string | null, two: string | null) => number): void;
}

interface NativeStatement extends Omit<StatementSync, "iterate"> {
  setReturnArrays(active: boolean): void;
  // The values are unknown, because the Worker sends them.
  iterate(...values: unknown[]): Iterator<unknown>;
}

/** The error text for a file that SQLite cannot read. */
export const NO_DATABASE = "it is not a SQLite database, or it is encrypted";

/** SQLite's message if another process has locked the database. */
export const LOCKED = "database is locked";

/** The memory limit of SQLite, in bytes. */
const HEAP = 256 << 20;
const LIMITS = {
  length: 64 << 20,
  sqlLength: 1 << 20,
  vdbeOp: 5_000_000,
  likePatternLength: 1_000,
  triggerDepth: 100,
  attach: 0,
};
const PRAGMAS = [
  "trusted_schema=0",
  "temp_store=2",
  "cell_size_check=1",
  `hard_heap_limit=${HEAP}`,
];
// Codes of actions for SQLite's authorizer (sqlite3.h, SQLITE_PRAGMA and others).
const [PRAGMA, ATTACH, DETACH, FUNCTION] = [19, 24, 25, 31];
const [TRANSACTION, SAVEPOINT] = [22, 32];
/** The actions of a statement that only reads: read a column, select, call a function, recurse. */
const READ_ACTIONS = [20, 21, FUNCTION, 33];
const DENIED_FUNCTIONS = ["load_extension", "fts3_tokenizer", "sqlite_log"];
const TOO_MANY_VALUES = 25;

// Pragmas that have no effect, or another effect, within a transaction.
const OUTSIDE_TRANSACTION =
  ("foreign_keys defer_foreign_keys recursive_triggers encoding page_size auto_vacuum " +
    "wal_checkpoint incremental_vacuum").split(" ");
// Pragmas that only read, and pragmas whose change stays in the database and cannot damage it.
const ALLOWED_PRAGMAS = new Set([
  ...OUTSIDE_TRANSACTION,
  ...("table_info table_xinfo table_list index_list index_info index_xinfo foreign_key_list " +
    "foreign_key_check integrity_check quick_check collation_list compile_options function_list " +
    "module_list pragma_list page_count freelist_count data_version user_version application_id " +
    "optimize").split(" "),
]);
// Without a journal on disk, a change cannot be undone if the child is killed meanwhile.
const JOURNAL = "journal_mode";
const JOURNALS = ["delete", "truncate", "wal"];

// The reasons by error number or error text, because Deno often returns only the text.
const REASONS: Readonly<Record<string, string>> = {
  776: "a program stopped in the middle of a change; open it for writing once, which undoes that",
  1544: "SQLite has to make files next to it, and its folder is not writable",
  [LOCKED]: "another program has it locked; try again",
  "out of memory": `it needs more than ${HEAP >> 20} MB of memory; narrow the statement`,
  "attempt to write a readonly database": "it is open for reading only",
  "disk I/O error": "the system cannot read or write it",
  "database disk image is malformed":
    "the database is damaged; PRAGMA integrity_check reports where",
  "unable to open database file":
    "a file that SQLite needs next to it cannot be opened: its folder may not be writable",
  "string or blob too big": `a value or row has more than ${LIMITS.length >> 20} MB`,
  "column index out of range": "there are more values than parameters in the statement",
  "file is not a database": NO_DATABASE,
};
const FULL = "database or disk is full";

/**
 * The transaction that a statement needs: one to read, one to write, or none, because the statement
 * begins or ends a transaction itself.
 */
export type StatementNeed = "reads" | "writes" | "stands alone";
const NEEDS: readonly StatementNeed[] = ["reads", "writes", "stands alone"];

/** A confined connection. */
export class Sql implements Disposable {
  readonly #db: NativeDatabase;
  readonly #empty: NativeStatement;
  #refusal: string | undefined;
  #need = 0;
  /** Whether the statement is from PML itself, so that it is not checked. */
  #isInternal = false;

  /** Confines a connection before it has read anything. */
  constructor(db: DatabaseSync, write: boolean) {
    // The types of `node:sqlite` are older than Deno.
    this.#db = db as unknown as NativeDatabase;
    Object.assign(this.#db.limits, LIMITS);
    for (const pragma of [...PRAGMAS, `query_only=${write ? 0 : 1}`]) db.exec(`PRAGMA ${pragma}`);
    this.#empty = this.#db.prepare("");
    this.#db.setAuthorizer((action, first, second) => {
      if (this.#isInternal) return 0;
      const why = refusalReason(action, first ?? "", second);
      this.#refusal ??= why;
      this.#need = Math.max(this.#need, needOf(action, first ?? "", second));
      return why === undefined ? 0 : 1;
    });
  }

  /** Returns the transaction that a statement needs, without running it. */
  need(sql: unknown): StatementNeed {
    // For statements that begin a transaction themselves, such as VACUUM, SQLite reports no action.
    this.#need = -1;
    this.#prepare(sql);
    return NEEDS[this.#need] ?? "stands alone";
  }

  /**
   * Opens all files that a statement needs, by beginning a transaction if there is none. Until the
   * transaction ends, SQLite opens, creates or removes no other file. Returns whether it began a
   * transaction.
   */
  begin(need: StatementNeed): boolean {
    const isNew = !this.#db.isTransaction;
    if (isNew) this.#db.exec(need === "writes" ? "BEGIN IMMEDIATE" : "BEGIN");
    try {
      this.#db.prepare("SELECT 1 FROM sqlite_schema").get();
      // Setting `user_version` to its own value creates the journal.
      if (need === "writes") this.#pragma(`user_version = ${this.#pragma("user_version")}`);
      return isNew;
    } catch (error) {
      if (isNew) this.end("ROLLBACK");
      throw error;
    }
  }

  /** Ends the transaction, unless SQLite has ended it because of an error. */
  end(how: "COMMIT" | "ROLLBACK"): void {
    if (this.#db.isTransaction) this.#db.exec(how);
  }

  /**
   * Returns the size of the database in bytes, including bytes that are not written yet. It is 0
   * outside a transaction.
   */
  size(): number {
    return this.#db.isTransaction ? this.#pragma("page_count") * this.#pragma("page_size") : 0;
  }

  /** Limits the growth of the database to `growth` bytes. */
  limitGrowth(growth: number): void {
    const pages = this.#pragma("page_count") + Math.floor(growth / this.#pragma("page_size"));
    this.#pragma(`max_page_count = ${Math.min(pages, 0xfffffffe)}`);
  }

  #pragma(text: string): number {
    this.#isInternal = true;
    try {
      return Number(Object.values(this.#db.prepare(`PRAGMA ${text}`).get() ?? {})[0]);
    } finally {
      this.#isInternal = false;
    }
  }

  /** Runs one statement and returns a page of its rows. */
  query(sql: unknown, parameters: unknown, { limit, offset, bytes }: RowPage): SqlRows {
    const statement = this.#prepare(sql);
    const rows: SqlRows["rows"][number][] = [];
    const page = (more: boolean) => {
      return { columns: statement.columns().map(({ name }) => name), rows, more };
    };
    let [rowIndex, remaining] = [0, bytes];
    for (const values of this.#run(statement, parameters)) {
      if (rowIndex++ < offset) continue;
      const row = values.map(numberIfSafe);
      remaining -= row.reduce((sum: number, value) => sum + sizeOf(value), 0);
      if (rows.length === limit || remaining < 0 && rows.length > 0) return page(true);
      if (remaining < 0) {
        throw new SqlProblem(`one row has more than ${bytes} bytes`, "RESULT_TOO_LARGE");
      }
      rows.push(row);
    }
    return page(false);
  }

  /** Runs one statement to its end and returns the number of its changes. */
  execute(sql: unknown, parameters: unknown): SqlChanges {
    const statement = this.#prepare(sql);
    const [totalBefore] = this.#counts();
    for (const _ of this.#run(statement, parameters));
    const [totalAfter, changes = 0, lastInsertRowid = 0] = this.#counts();
    // If a statement changes nothing, SQLite still returns the count of the last change.
    return { changes: totalBefore === totalAfter ? 0 : Number(changes), lastInsertRowid };
  }

  #counts(): readonly (number | bigint)[] {
    const sql = "SELECT total_changes(), changes(), last_insert_rowid()";
    const { rows: [counts = []] } = this.query(sql, [], { limit: 1, offset: 0, bytes: 100 });
    return counts as number[]; // the statement above returns numbers
  }

  *#run(statement: NativeStatement, parameters: unknown): Generator<unknown[]> {
    const iterator = iteratorOf(statement, parameters);
    try {
      for (let step = iterator.next(); !step.done; step = iterator.next()) {
        yield step.value as unknown[];
      }
      this.#assertNoError();
    } finally {
      iterator.return?.();
    }
  }

  /** Throws if SQLite failed. Deno's `iterate` ends without an error in that case. */
  #assertNoError(): void {
    try {
      // Running an empty statement throws an error with the text of the last failure.
      this.#empty.run();
    } catch (error) {
      const { message } = Object(error);
      if (message !== "not an error") throw new Error(message);
    }
  }

  /** Returns and forgets the reason why the last statement was refused. */
  takeRefusal(): SqlProblem | undefined {
    const why = this.#refusal;
    this.#refusal = undefined;
    return why === undefined ? undefined : new SqlProblem(why);
  }

  /** Compiles a text that contains exactly one statement. */
  #prepare(sql: unknown): NativeStatement {
    if (typeof sql !== "string" || sql.includes("\0")) {
      throw new SqlProblem("the SQL is no text", "");
    }
    // Deno crashes when it reads an empty statement.
    if (isEmptySql(sql)) throw new SqlProblem("there is no statement in it", "");
    const statement = this.#db.prepare(sql);
    if (!isEmptySql(sql.slice(statement.sourceSQL.length))) {
      throw new SqlProblem("it contains several statements; send them one by one", "");
    }
    statement.setReadBigInts(true);
    statement.setReturnArrays(true);
    return statement;
  }

  /** Closes the connection, which undoes an unfinished transaction. */
  [Symbol.dispose](): void {
    this.#db.close();
  }
}

/** Returns PML's text for an error of SQLite. */
export function sqlProblem(error: unknown): SqlProblem {
  if (error instanceof SqlProblem) return error;
  const { errcode = 0, message } = Object(error);
  if (message === FULL) {
    return new SqlProblem(
      "it would exceed limits.write_bytes of the module, or the disk is full",
    );
  }
  return new SqlProblem(REASONS[errcode] ?? REASONS[message] ?? String(message), "");
}

/**
 * Returns why an action of a statement is refused. The arguments of a pragma are its name and its
 * value. The second argument of a function is its name.
 */
function refusalReason(action: number, first: string, second: string | null): string | undefined {
  if (action === ATTACH || action === DETACH) {
    return "each database has its own connection: ATTACH, DETACH and VACUUM are not available";
  }
  if (action === FUNCTION && DENIED_FUNCTIONS.includes(second ?? "")) {
    return `the function ${second} is not available`;
  }
  if (action !== PRAGMA || ALLOWED_PRAGMAS.has(first)) return undefined;
  if (first === "schema_version" && second === null) return undefined;
  if (first === JOURNAL && (second === null || JOURNALS.includes(second.toLowerCase()))) {
    return undefined;
  }
  return `PRAGMA ${first}${second === null ? "" : ` = ${second.slice(0, 50)}`} is not available`;
}

/** Returns the index in `NEEDS` of the transaction that one action of a statement needs. */
function needOf(action: number, first: string, second: string | null): number {
  if (action === TRANSACTION || action === SAVEPOINT) return 2;
  if (action !== PRAGMA) return READ_ACTIONS.includes(action) ? 0 : 1;
  if (first === JOURNAL || OUTSIDE_TRANSACTION.includes(first)) return 2;
  const isWritable = /^(user_version|application_id)$/.test(first);
  return first === "optimize" || second !== null && isWritable ? 1 : 0;
}

/** Returns whether a text has only spaces, comments and semicolons. */
function isEmptySql(sql: string): boolean {
  return sql.replace(/[\s;]+|--[^\n]*|\/\*[^]*?(\*\/|$)/g, "") === "";
}

/** Binds the values and returns the rows. Nothing runs before the first `next()`. */
function iteratorOf(statement: NativeStatement, parameters: unknown): Iterator<unknown> {
  if (!Array.isArray(parameters)) {
    const names = Object.entries(Object(parameters)).map((
      [name, value],
    ) => [name, toSqlValue(value)]);
    return statement.iterate(...names.length === 0 ? [] : [Object.fromEntries(names)]);
  }
  // SQLite allows at most 32,766 parameters, so further values are never used.
  const values = parameters.slice(0, 40_000).map(toSqlValue);
  // SQLite uses NULL for missing values. If it accepts one more value, values are missing.
  if (!hasTooManyValues(() => statement.iterate(...values, null))) {
    throw new SqlProblem(`it has more parameters than the ${values.length} values passed`, "");
  }
  return statement.iterate(...values);
}

function hasTooManyValues(bind: () => unknown): boolean {
  try {
    bind();
    return false;
  } catch (error) {
    if (Object(error).errcode === TOO_MANY_VALUES) return true;
    throw error;
  }
}

function toSqlValue(value: unknown): unknown {
  if (value instanceof Uint8Array) return copyBytes(value);
  // SQLite would treat any JavaScript number as a REAL.
  if (Number.isSafeInteger(value)) return BigInt(value as number); // checked just before
  if (value === null || ["number", "bigint", "string"].includes(typeof value)) return value;
  throw new SqlProblem("a value to bind is no number, text, bytes or null", "");
}

/** Returns a value. Converts a BigInt to a number if the number is exact. */
function numberIfSafe(value: unknown): null | number | bigint | string | Uint8Array {
  const number = typeof value === "bigint" ? Number(value) : NaN;
  return Number.isSafeInteger(number) ? number : value as bigint; // SQLite returns one of these
}

function sizeOf(value: unknown): number {
  return 8 + (typeof value === "string" || value instanceof Uint8Array ? value.length : 0);
}

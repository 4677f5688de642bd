/**
 * One SQLite connection that reaches nothing but its own database, with limits on what a
 * statement may take and give.
 *
 * @module
 */

import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { SqlChanges, SqlRows } from "../../core/host.ts";
import { copied } from "./handles.ts";

/** Why a statement is not run: what is so, in a few words. */
export class Unfit extends Error {
  readonly code: string;

  /** Takes the reason and a code of PML. */
  constructor(why: string, code = "SANDBOX_DENIED") {
    super(why);
    this.code = code;
  }
}

/** Which rows of a result are wanted. */
export interface Page {
  readonly limit: number;
  readonly offset: number;
  /** How many bytes the values may have together. */
  readonly bytes: number;
}

/** What `node:sqlite` of Deno has and its types do not know. */
interface Native extends Omit<DatabaseSync, "prepare"> {
  prepare(sql: string): NativeStatement;
  readonly limits: Record<string, number>;
  setAuthorizer(judge: (action: number, one: string | null, two: string | null) => number): void;
}

interface NativeStatement extends Omit<StatementSync, "iterate"> {
  setReturnArrays(active: boolean): void;
  // Without the parameter that says what it takes: a Worker chose it.
  iterate(...values: unknown[]): Iterator<unknown>;
}

/** What a file is that SQLite cannot read. */
export const NO_DATABASE = "it is not a SQLite database, or it is encrypted";

/** What SQLite says where another has the database. */
export const LOCKED = "database is locked";

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
const [PRAGMA, ATTACH, DETACH, FUNCTION] = [19, 24, 25, 31];
const [TRANSACTION, SAVEPOINT] = [22, 32];
/** What a statement does that only reads: it reads a column, selects, calls a function, recurs. */
const READING = [20, 21, FUNCTION, 33];
const FUNCTIONS = ["load_extension", "fts3_tokenizer", "sqlite_log"];
const TOO_MANY_VALUES = 25;

// Those that do nothing, or something else, within a transaction.
const LONE = ("foreign_keys defer_foreign_keys recursive_triggers encoding page_size auto_vacuum " +
  "wal_checkpoint incremental_vacuum").split(" ");
// Those that look, and those whose change stays in the database and cannot spoil it.
const ALLOWED = new Set([
  ...LONE,
  ...("table_info table_xinfo table_list index_list index_info index_xinfo foreign_key_list " +
    "foreign_key_check integrity_check quick_check collation_list compile_options function_list " +
    "module_list pragma_list page_count freelist_count data_version user_version application_id " +
    "optimize").split(" "),
]);
// A journal that is not on the disk cannot undo a change when the child is killed in it.
const JOURNAL = "journal_mode";
const JOURNALS = ["delete", "truncate", "wal"];

// Deno gives the number of an error in some cases only, its text in all.
const WHY: Readonly<Record<string, string>> = {
  776: "a program stopped in the middle of a change; open it for writing once, which undoes that",
  1544: "SQLite has to make files beside it, and its folder is not writable",
  [LOCKED]: "another program has it locked; try again",
  "out of memory": `it needs more than ${HEAP >> 20} MB of memory; narrow the statement`,
  "attempt to write a readonly database": "it is open for reading only",
  "disk I/O error": "the system cannot read or write it",
  "database disk image is malformed": "the database is damaged; PRAGMA integrity_check tells where",
  "unable to open database file":
    "a file that SQLite needs beside it cannot be opened: its folder may not be writable",
  "string or blob too big": `a value or row has more than ${LIMITS.length >> 20} MB`,
  "column index out of range": "there are more values than parameters in the statement",
  "file is not a database": NO_DATABASE,
};
const FULL = "database or disk is full";

/**
 * What a statement needs: a transaction to read or to write in, or none, because it begins or ends
 * one by itself.
 */
export type Need = "reads" | "writes" | "stands alone";
const NEEDS: readonly Need[] = ["reads", "writes", "stands alone"];

/** A confined connection. */
export class Sql implements Disposable {
  readonly #db: Native;
  readonly #empty: NativeStatement;
  #refused: string | undefined;
  #need = 0;
  /** Whether what is prepared is PML's own. */
  #isOurs = false;

  /** Confines a connection before it has read anything. */
  constructor(db: DatabaseSync, write: boolean) {
    // The types of `node:sqlite` lag behind Deno.
    this.#db = db as unknown as Native;
    Object.assign(this.#db.limits, LIMITS);
    for (const pragma of [...PRAGMAS, `query_only=${write ? 0 : 1}`]) db.exec(`PRAGMA ${pragma}`);
    this.#empty = this.#db.prepare("");
    this.#db.setAuthorizer((action, one, two) => {
      if (this.#isOurs) return 0;
      const why = refusedBy(action, one ?? "", two);
      this.#refused ??= why;
      this.#need = Math.max(this.#need, needOf(action, one ?? "", two));
      return why === undefined ? 0 : 1;
    });
  }

  /** Looks at a statement without running it. */
  need(sql: unknown): Need {
    // Of what begins by itself, such as VACUUM, SQLite tells nothing.
    this.#need = -1;
    this.#prepared(sql);
    return NEEDS[this.#need] ?? "stands alone";
  }

  /**
   * Opens all files that a statement needs, in a transaction that is begun where there is none; no
   * other is opened, made or removed before that ends. Tells whether one was begun.
   */
  begin(need: Need): boolean {
    const isNew = !this.#db.isTransaction;
    if (isNew) this.#db.exec(need === "writes" ? "BEGIN IMMEDIATE" : "BEGIN");
    try {
      this.#db.prepare("SELECT 1 FROM sqlite_schema").get();
      // To write a number over itself begins the journal.
      if (need === "writes") this.#pragma(`user_version = ${this.#pragma("user_version")}`);
      return isNew;
    } catch (error) {
      if (isNew) this.end("ROLLBACK");
      throw error;
    }
  }

  /** Ends the transaction, if SQLite has not done so because of an error. */
  end(how: "COMMIT" | "ROLLBACK"): void {
    if (this.#db.isTransaction) this.#db.exec(how);
  }

  /** How many bytes the database has, those among them that are not written yet; within a transaction. */
  size(): number {
    return this.#db.isTransaction ? this.#pragma("page_count") * this.#pragma("page_size") : 0;
  }

  /** Lets the database grow by so many bytes. */
  bound(growth: number): void {
    const pages = this.#pragma("page_count") + Math.floor(growth / this.#pragma("page_size"));
    this.#pragma(`max_page_count = ${Math.min(pages, 0xfffffffe)}`);
  }

  #pragma(text: string): number {
    this.#isOurs = true;
    try {
      return Number(Object.values(this.#db.prepare(`PRAGMA ${text}`).get() ?? {})[0]);
    } finally {
      this.#isOurs = false;
    }
  }

  /** Runs one statement and gives a page of its rows. */
  query(sql: unknown, parameters: unknown, { limit, offset, bytes }: Page): SqlRows {
    const statement = this.#prepared(sql);
    const rows: SqlRows["rows"][number][] = [];
    const given = (more: boolean) => {
      return { columns: statement.columns().map(({ name }) => name), rows, more };
    };
    let [at, left] = [0, bytes];
    for (const values of this.#run(statement, parameters)) {
      if (at++ < offset) continue;
      const row = values.map(plain);
      left -= row.reduce((sum: number, one) => sum + sizeOf(one), 0);
      if (rows.length === limit || left < 0 && rows.length > 0) return given(true);
      if (left < 0) throw new Unfit(`one row has more than ${bytes} bytes`, "RESULT_TOO_LARGE");
      rows.push(row);
    }
    return given(false);
  }

  /** Runs one statement to its end and counts what it changed. */
  execute(sql: unknown, parameters: unknown): SqlChanges {
    const statement = this.#prepared(sql);
    const [before] = this.#counts();
    for (const _ of this.#run(statement, parameters));
    const [after, changes = 0, lastInsertRowid = 0] = this.#counts();
    // The count of the last change stays when a statement changes nothing.
    return { changes: before === after ? 0 : Number(changes), lastInsertRowid };
  }

  #counts(): readonly (number | bigint)[] {
    const sql = "SELECT total_changes(), changes(), last_insert_rowid()";
    const { rows: [counts = []] } = this.query(sql, [], { limit: 1, offset: 0, bytes: 100 });
    return counts as number[]; // as the statement has it
  }

  *#run(statement: NativeStatement, parameters: unknown): Generator<unknown[]> {
    const found = bound(statement, parameters);
    try {
      for (let step = found.next(); !step.done; step = found.next()) yield step.value as unknown[];
      this.#requireDone();
    } finally {
      found.return?.();
    }
  }

  /** Fails where SQLite did: there `iterate` of Deno ends without a word. */
  #requireDone(): void {
    try {
      // To run nothing is misuse, which is told in the text of what happened last.
      this.#empty.run();
    } catch (error) {
      const { message } = Object(error);
      if (message !== "not an error") throw new Error(message);
    }
  }

  /** Gives the reason why the last statement was refused, once. */
  refused(): Unfit | undefined {
    const why = this.#refused;
    this.#refused = undefined;
    return why === undefined ? undefined : new Unfit(why);
  }

  #prepared(sql: unknown): NativeStatement {
    if (typeof sql !== "string" || sql.includes("\0")) throw new Unfit("the SQL is no text", "");
    // An empty one must not get further: looking at it ends the process.
    if (isBare(sql)) throw new Unfit("there is no statement in it", "");
    const statement = this.#db.prepare(sql);
    if (!isBare(sql.slice(statement.sourceSQL.length))) {
      throw new Unfit("it holds several statements; send them one by one", "");
    }
    statement.setReadBigInts(true);
    statement.setReturnArrays(true);
    return statement;
  }

  /** Closes it, which undoes an unfinished transaction. */
  [Symbol.dispose](): void {
    this.#db.close();
  }
}

/** Says in our words why SQLite failed. */
export function unfit(error: unknown): Unfit {
  if (error instanceof Unfit) return error;
  const { errcode = 0, message } = Object(error);
  if (message === FULL) {
    return new Unfit(
      "it would grow beyond what the module may still write (limits.write_bytes), or the disk is full",
    );
  }
  return new Unfit(WHY[errcode] ?? WHY[message] ?? String(message), "");
}

function refusedBy(action: number, one: string, two: string | null): string | undefined {
  if (action === ATTACH || action === DETACH) {
    return "a database is open alone: ATTACH, DETACH and VACUUM are not available";
  }
  if (action === FUNCTION && FUNCTIONS.includes(two ?? "")) {
    return `the function ${two} is not available`;
  }
  if (action !== PRAGMA || ALLOWED.has(one)) return undefined;
  if (one === "schema_version" && two === null) return undefined;
  if (one === JOURNAL && (two === null || JOURNALS.includes(two.toLowerCase()))) return undefined;
  return `PRAGMA ${one}${two === null ? "" : ` = ${two.slice(0, 50)}`} is not available`;
}

/** Gives the place among all needs of what one step of a statement needs. */
function needOf(action: number, one: string, two: string | null): number {
  if (action === TRANSACTION || action === SAVEPOINT) return 2;
  if (action !== PRAGMA) return READING.includes(action) ? 0 : 1;
  if (one === JOURNAL || LONE.includes(one)) return 2;
  return one === "optimize" || two !== null && /^(user_version|application_id)$/.test(one) ? 1 : 0;
}

/** Tells whether there is nothing but blanks, comments and semicolons. */
function isBare(sql: string): boolean {
  return sql.replace(/[\s;]+|--[^\n]*|\/\*[^]*?(\*\/|$)/g, "") === "";
}

/** Binds the values; nothing has run before the first `next`. */
function bound(statement: NativeStatement, parameters: unknown): Iterator<unknown> {
  if (!Array.isArray(parameters)) {
    const names = Object.entries(Object(parameters)).map(([name, value]) => [name, fit(value)]);
    return statement.iterate(...names.length === 0 ? [] : [Object.fromEntries(names)]);
  }
  const values = parameters.slice(0, 40_000).map(fit);
  // SQLite takes what is missing for NULL: one value more has to be one too many.
  if (!overflows(() => statement.iterate(...values, null))) {
    throw new Unfit(`it has more parameters than the ${values.length} values given`, "");
  }
  return statement.iterate(...values);
}

function overflows(bind: () => unknown): boolean {
  try {
    bind();
    return false;
  } catch (error) {
    if (Object(error).errcode === TOO_MANY_VALUES) return true;
    throw error;
  }
}

function fit(value: unknown): unknown {
  if (value instanceof Uint8Array) return copied(value);
  // SQLite would take any number of JavaScript for a REAL.
  if (Number.isSafeInteger(value)) return BigInt(value as number); // looked at just before
  if (value === null || ["number", "bigint", "string"].includes(typeof value)) return value;
  throw new Unfit("a value to bind is no number, text, bytes or null", "");
}

function plain(value: unknown): null | number | bigint | string | Uint8Array {
  const number = typeof value === "bigint" ? Number(value) : NaN;
  return Number.isSafeInteger(number) ? number : value as bigint; // what SQLite has is one of these
}

function sizeOf(value: unknown): number {
  return 8 + (typeof value === "string" || value instanceof Uint8Array ? value.length : 0);
}

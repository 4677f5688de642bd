/**
 * The SQLite databases of a module. SQLite is native code that opens files beside a database
 * without asking Deno, so each step looks at them first, under the lock of the workspace.
 *
 * @module
 */

import type { DatabaseSync } from "node:sqlite";
import { lookAt, type PathGuard, type Place, type Try } from "./path_guard.ts";
import type { WorkspaceLock } from "./lock.ts";
import type { Power } from "./power.ts";
import { isSame } from "./protect.ts";
import { folderOf } from "./names.ts";
import { type Budget, failureOf, Refusal, refusal } from "./refusal.ts";
import { LOCKED, NO_DATABASE, Sql, Unfit, unfit } from "./sql.ts";

const OPEN_MAX = 16;
const ROWS = 1_000;
const ROWS_MAX = 10_000;
const BUSY_MS = 2_000;
const BUSY_STEP_MS = 10;
/** The largest database that is read as a whole where SQLite would have to make files beside it. */
const SNAPSHOT_MAX = 64 << 20;
const MAGIC = "SQLite format 3\0";
const WAL = 2;
/** What a journal ends with that names another file, which SQLite would delete. */
const SUPER_JOURNAL = "d9d505f920a163d7";

type Class = typeof DatabaseSync;

interface Opened {
  readonly sql: Sql;
  readonly attempt: Try;
  readonly place: Place;
  /** Whether it was read as a whole and lies in memory. */
  readonly snapshot: boolean;
}

/** What bounds databases. */
export interface DatabasesOptions {
  readonly resultBytes: number;
  /** Counts what the child writes. */
  readonly budget: Budget;
}

/** Opens databases for one Worker and runs its statements. */
export class Databases implements Disposable {
  readonly #walls: PathGuard;
  readonly #lock: WorkspaceLock;
  readonly #resultBytes: number;
  readonly #budget: Budget;
  readonly #opened = new Map<unknown, Opened>();
  /** Those that cannot be closed, because what SQLite would remove then may be others' files. */
  readonly #stuck: Opened[] = [];
  #last = 0;

  /** The requests; all but the first begin with the number of a database. */
  readonly ops: Readonly<Record<string, Power>> = {
    "sqlite.open": async ([path, write]) => {
      const { DatabaseSync } = await import("node:sqlite");
      const access = write === true ? "write" : "read";
      const attempt: Try = { op: "open", asked: typeof path === "string" ? path : "", access };
      return told(attempt, () => this.#open(attempt, DatabaseSync));
    },
    "sqlite.query": ([number, sql, parameters, limit, offset]) =>
      this.#run("query", [number, sql], (one) =>
        one.query(sql, parameters, {
          limit: count(limit, ROWS, ROWS_MAX),
          offset: count(offset, 0),
          // What is bytes or needs escapes grows on its way out.
          bytes: this.#resultBytes >> 2,
        })),
    "sqlite.execute": ([number, sql, parameters]) =>
      this.#run("change", [number, sql], (one) => one.execute(sql, parameters)),
    "sqlite.close": ([number]) => {
      const opened = this.#opened.get(number);
      this.#opened.delete(number);
      if (opened !== undefined) this.#lock.shared(() => this.#close(opened));
    },
  };

  /** Takes the walls and the lock that the files of the module have. */
  constructor(walls: PathGuard, lock: WorkspaceLock, options: DatabasesOptions) {
    this.#walls = walls;
    this.#lock = lock;
    this.#resultBytes = options.resultBytes;
    this.#budget = options.budget;
  }

  /** Closes all of them, which undoes unfinished transactions. */
  [Symbol.dispose](): void {
    for (const { sql } of this.#opened.values()) sql[Symbol.dispose]();
    this.#opened.clear();
  }

  #open(attempt: Try, Database: Class): number {
    if (this.#opened.size >= OPEN_MAX) throw new Unfit(`${OPEN_MAX} databases are open`, "");
    const opened = this.#lock.alone(() => this.#found(attempt, Database));
    this.#opened.set(++this.#last, opened);
    return this.#last;
  }

  #found(attempt: Try, Database: Class): Opened {
    const write = attempt.access === "write";
    if (write) this.#walls.target({ ...attempt, access: "read" });
    const place = write ? this.#walls.target(attempt) : this.#walls.follow(attempt);
    const { path } = place;
    const isWal = this.#isWal(place, attempt);
    this.#lookBeside(path, attempt);
    const snapshot = isWal && !write && !hasLog(path);
    using opening = new DisposableStack();
    // Who waits for another does so without the lock.
    const options = { readOnly: !write, timeout: 0 };
    const db = snapshot ? inMemory(path, Database) : new Database(path, options);
    const sql = opening.use(new Sql(db, write));
    const opened = { sql, attempt, place: { path, info: place.info ?? lookAt(path) }, snapshot };
    this.#requireSame(opened);
    opening.move();
    return opened;
  }

  /** Looks at what the file begins with. */
  #isWal(place: Place, attempt: Try): boolean {
    const { info } = place;
    for (const { place: { info: held }, snapshot } of this.#opened.values()) {
      if (!info || snapshot || !isSame(held, info)) continue;
      // To close a file takes away all locks that this process has on it, also those of SQLite.
      this.#walls.requireFile(place.path, info, attempt);
      return false;
    }
    const open = info ? { read: true } : { write: true };
    using file = this.#walls.openFile(place, { attempt, open });
    if (!info?.size) return false;
    const head = new Uint8Array(20);
    file.readSync(head);
    if (new TextDecoder("latin1").decode(head.subarray(0, 16)) === MAGIC) return head[18] === WAL;
    throw new Unfit(NO_DATABASE, "");
  }

  /** Refuses what SQLite must not meet beside a database: links, pipes, a journal that deletes. */
  #lookBeside(path: string, attempt: Try): void {
    for (const end of ["-journal", "-wal", "-shm"]) {
      const beside = { ...attempt, asked: `${path}${end}` };
      const { info } = this.#walls.entry(beside);
      if (!info) continue;
      this.#walls.requireFile(beside.asked, info, beside);
      if (end === "-journal" && endOf(beside.asked, info.size) === SUPER_JOURNAL) {
        throw refusal("SANDBOX_DENIED", beside, "it names another file, which SQLite would delete");
      }
    }
  }

  #requireSame({ place, attempt }: Opened): void {
    const now = lookAt(place.path);
    if (now?.isFile && isSame(place.info, now)) return;
    throw refusal("PATH_OUTSIDE_WORKSPACE", attempt, "it was replaced after it was opened");
  }

  #close(opened: Opened): void {
    const folder = folderOf(opened.place.path);
    if (opened.snapshot || isStraight(folder)) opened.sql[Symbol.dispose]();
    else this.#stuck.push(opened);
  }

  #run<T>(op: string, [number, text]: readonly unknown[], step: (sql: Sql) => T): T {
    const opened = this.#opened.get(number);
    if (opened === undefined) throw new Deno.errors.BadResource("The database is closed");
    const { sql, snapshot } = opened;
    const attempt = { ...opened.attempt, op };
    const run = () => this.#runFile({ ...opened, attempt }, text, step);
    return told(attempt, () => snapshot ? step(sql) : run(), sql);
  }

  /**
   * Runs a statement on a file. The lock is held while SQLite may open, make or remove files, and
   * not while the statement runs, which can take as long as it likes.
   */
  #runFile<T>(opened: Opened, text: unknown, step: (sql: Sql) => T): T {
    const { sql, attempt } = opened;
    const isReader = attempt.access !== "write";
    const need = isReader ? "reads" : this.#guarded(opened, () => sql.need(text));
    const begin = () => this.#guarded(opened, () => sql.begin(need));
    if (need === "reads") {
      const isNew = begin();
      try {
        return step(sql);
      } finally {
        if (isNew) sql.end("ROLLBACK");
      }
    }
    return this.#counted(opened, (bounded) => {
      if (need === "stands alone") return this.#guarded(opened, () => step(sql));
      const isNew = begin();
      try {
        return bounded(() => step(sql));
      } finally {
        if (isNew) this.#commit(opened);
      }
    });
  }

  /** Does a step under the lock on files that were looked at; waits where another has them. */
  #guarded<T>(opened: Opened, step: () => T): T {
    for (const since = performance.now();;) {
      try {
        return this.#lock.shared(() => {
          this.#requireSame(opened);
          this.#lookBeside(opened.place.path, opened.attempt);
          return step();
        });
      } catch (error) {
        if (Object(error).message !== LOCKED || performance.now() > since + BUSY_MS) throw error;
      }
      Atomics.wait(NEVER, 0, 0, BUSY_STEP_MS);
    }
  }

  /** Counts what `run` writes; what it runs as `bounded` goes as far as the child may write. */
  #counted<T>(
    { sql, attempt, place: { path } }: Opened,
    run: (bounded: (step: () => T) => T) => T,
  ): T {
    const sizeOf = (end: string) => lookAt(`${path}${end}`)?.size ?? 0;
    const log = sizeOf("-wal");
    let [grown, times] = [0, 1];
    try {
      return run((step) => {
        this.#budget.take(1, attempt);
        // What is new comes into the log first, if there is one, and then into the database too.
        if (lookAt(`${path}-wal`)) times = 2;
        sql.bound(this.#budget.left / times);
        const size = () => sql.size() + sizeOf("-journal");
        const before = size();
        try {
          return step();
        } finally {
          grown = Math.max(size() - before, 0);
        }
      });
    } finally {
      this.#budget.spend(times * grown);
      this.#budget.spend(sizeOf("-wal") - log - grown);
    }
  }

  /** Keeps what a statement changed: of one that failed, too, what SQLite did not undo. */
  #commit(opened: Opened): void {
    try {
      this.#guarded(opened, () => opened.sql.end("COMMIT"));
    } catch (error) {
      this.#guarded(opened, () => opened.sql.end("ROLLBACK"));
      throw error;
    }
  }
}

const NEVER = new Int32Array(new SharedArrayBuffer(4));

/** Tells whether no link leads to a folder; where it is gone, nothing is removed in it. */
function isStraight(folder: string): boolean {
  try {
    return Deno.realPathSync(folder) === folder;
  } catch {
    return true; // gone, or a file alone was granted
  }
}

/** Tells whether a write-ahead log is in use, which is read together with its index only. */
function hasLog(path: string): boolean {
  const [log, index] = [lookAt(`${path}-wal`), lookAt(`${path}-shm`)];
  if (log && index) return true;
  if (!log?.size) return false;
  throw new Unfit("its log (-wal) was left without its index; open it for writing once", "");
}

/** Reads a database as a whole, because SQLite makes files beside one that has a log. */
function inMemory(path: string, Database: Class): DatabaseSync {
  const bytes = Deno.statSync(path).size > SNAPSHOT_MAX ? undefined : Deno.readFileSync(path);
  if (bytes === undefined || hasLog(path)) {
    const why = "to read it in WAL mode SQLite makes files beside it";
    throw new Unfit(
      `${why}; open it for writing, or end WAL with PRAGMA journal_mode = delete`,
      "",
    );
  }
  // What a database in memory cannot have: the mode for writing and for reading.
  bytes.fill(1, 18, 20);
  const db = new Database(":memory:") as DatabaseSync & { deserialize(bytes: Uint8Array): void };
  db.deserialize(bytes);
  return db;
}

function endOf(path: string, size: number): string {
  using file = Deno.openSync(path);
  file.seekSync(Math.max(size - 8, 0), Deno.SeekMode.Start);
  const end = new Uint8Array(8);
  file.readSync(end);
  return end.toHex();
}

function told<T>(attempt: Try, step: () => T, sql?: Sql): T {
  try {
    return step();
  } catch (error) {
    if (error instanceof Refusal) throw error;
    // What Deno says of the system has a code like ENOENT, or a class of its own.
    if (sql === undefined && !(error instanceof Unfit || /^ERR_/.test(Object(error).code))) {
      const failure = failureOf(error, attempt);
      throw Object.assign(new Error(failure.message), failure);
    }
    const { message, code } = unfit(sql?.refused() ?? error);
    const found = refusal(code, attempt, message);
    throw code === "" ? Object.assign(new Error(found.message), { name: "SqliteError" }) : found;
  }
}

function count(value: unknown, unless: number, most = Number.MAX_SAFE_INTEGER): number {
  return Number.isSafeInteger(value) ? Math.min(Math.max(value as number, 0), most) : unless;
}

/**
 * The SQLite databases of a module. SQLite is native code, which opens files next to a database
 * without a check by Deno. So each step first checks these files, under the lock of the workspace.
 *
 * @module
 */

import type { DatabaseSync } from "node:sqlite";
import {
  type CheckedPath,
  lookAt,
  type PathAttempt,
  type PathGuard,
  realPath,
} from "./path_guard.ts";
import type { WorkspaceLock } from "./lock.ts";
import type { HostFunction } from "./host_function.ts";
import { isSameFile } from "./protect.ts";
import { parentOf } from "./names.ts";
import { refusalOf, SandboxRefusal, sentErrorOf, type WriteBudget } from "./refusal.ts";
import { LOCKED, NO_DATABASE, Sql, SqlProblem, sqlProblem } from "./sql.ts";

/** The maximum number of open databases. */
const OPEN_MAX = 16;
/** The number of rows of a page, by default and at most. */
const ROWS = 1_000;
const ROWS_MAX = 10_000;
/** How long, and how often, a step is tried while another process has locked the database. */
const BUSY_MS = 2_000;
const BUSY_STEP_MS = 10;
/**
 * The largest database, in bytes, that is read as a whole if SQLite would otherwise create files
 * next to it.
 */
const SNAPSHOT_MAX = 64 << 20;
/** The first 16 bytes of a database. */
const MAGIC = "SQLite format 3\0";
/** The value of byte 18 of a database in WAL mode. */
const WAL = 2;
/** The last bytes of a journal that names another file, which SQLite would delete. */
const SUPER_JOURNAL = "d9d505f920a163d7";

type DatabaseClass = typeof DatabaseSync;

/** An open database. */
interface OpenDatabase {
  readonly sql: Sql;
  readonly attempt: PathAttempt;
  readonly place: CheckedPath;
  /** Whether the database was read into memory as a whole. */
  readonly isInMemory: boolean;
}

/** The limits of databases. */
export interface DatabasesOptions {
  readonly resultBytes: number;
  /** Counts the bytes that the child writes. */
  readonly budget: WriteBudget;
}

/** Opens databases for one Worker and runs its statements. */
export class Databases {
  readonly #guard: PathGuard;
  readonly #lock: WorkspaceLock;
  readonly #resultBytes: number;
  readonly #budget: WriteBudget;
  readonly #opened = new Map<unknown, OpenDatabase>();
  /**
   * Databases that cannot be closed safely, because SQLite would remove files next to them, which
   * may be other files now.
   */
  readonly #stuck: OpenDatabase[] = [];
  #last = 0;

  /** The requests. Except for `sqlite.open`, the first argument is the number of a database. */
  readonly ops: Readonly<Record<string, HostFunction>> = {
    "sqlite.open": async ([path, write]) => {
      const { DatabaseSync } = await import("node:sqlite");
      const access = write === true ? "write" : "read";
      const attempt: PathAttempt = {
        op: "open",
        requestedPath: typeof path === "string" ? path : "",
        access,
      };
      return withRefusals(attempt, () => this.#open(attempt, DatabaseSync));
    },
    "sqlite.query": ([number, sql, parameters, limit, offset]) =>
      this.#run("query", [number, sql], (database) =>
        database.query(sql, parameters, {
          limit: countOr(limit, ROWS, ROWS_MAX),
          offset: countOr(offset, 0),
          // Bytes and characters that need escapes grow when they are sent.
          bytes: this.#resultBytes >> 2,
        })),
    "sqlite.execute": ([number, sql, parameters]) =>
      this.#run("change", [number, sql], (database) => database.execute(sql, parameters)),
    "sqlite.close": ([number]) => {
      const opened = this.#opened.get(number);
      this.#opened.delete(number);
      if (opened !== undefined) this.#lock.during(() => this.#close(opened));
    },
  };

  /** Creates an instance with the path guard and the lock of the module's files. */
  constructor(guard: PathGuard, lock: WorkspaceLock, options: DatabasesOptions) {
    this.#guard = guard;
    this.#lock = lock;
    this.#resultBytes = options.resultBytes;
    this.#budget = options.budget;
  }

  #open(attempt: PathAttempt, Database: DatabaseClass): number {
    if (this.#opened.size >= OPEN_MAX) throw new SqlProblem(`${OPEN_MAX} databases are open`, "");
    const opened = this.#lock.during(() => this.#openDatabase(attempt, Database), true);
    this.#opened.set(++this.#last, opened);
    return this.#last;
  }

  #openDatabase(attempt: PathAttempt, Database: DatabaseClass): OpenDatabase {
    const write = attempt.access === "write";
    if (write) this.#guard.target({ ...attempt, access: "read" });
    const place = write ? this.#guard.target(attempt) : this.#guard.follow(attempt);
    const { path } = place;
    const isWal = this.#isWal(place, attempt);
    this.#lookBeside(path, attempt);
    const isInMemory = isWal && !write && !hasLog(path);
    using opening = new DisposableStack();
    // SQLite must not wait for another process here, because this process has the lock.
    const options = { readOnly: !write, timeout: 0 };
    const db = isInMemory ? loadIntoMemory(path, Database) : new Database(path, options);
    const sql = opening.use(new Sql(db, write));
    const opened = { sql, attempt, place: { path, info: place.info ?? lookAt(path) }, isInMemory };
    this.#requireSame(opened);
    opening.move();
    return opened;
  }

  /**
   * Reads the start of the file and returns whether it is a database in WAL mode. Does not read a
   * file that is open as a database, and returns false for it.
   */
  #isWal(place: CheckedPath, attempt: PathAttempt): boolean {
    const { info } = place;
    for (const { place: { info: openInfo }, isInMemory } of this.#opened.values()) {
      if (!info || isInMemory || !isSameFile(openInfo, info)) continue;
      // The file is not opened here: closing it would drop all locks of this process on it, also
      // the locks of SQLite.
      this.#guard.requireFile(place.path, info, attempt);
      return false;
    }
    const open = info ? { read: true } : { write: true };
    using file = this.#guard.openFile(place, { attempt, open });
    if (!info?.size) return false;
    const head = new Uint8Array(20);
    file.readSync(head);
    if (new TextDecoder("latin1").decode(head.subarray(0, 16)) === MAGIC) return head[18] === WAL;
    throw new SqlProblem(NO_DATABASE, "");
  }

  /**
   * Refuses files next to a database that are dangerous to SQLite: links, pipes, and a journal that
   * deletes another file.
   */
  #lookBeside(path: string, attempt: PathAttempt): void {
    for (const end of ["-journal", "-wal", "-shm"]) {
      const beside = { ...attempt, requestedPath: `${path}${end}` };
      const { info } = this.#guard.entry(beside);
      if (!info) continue;
      this.#guard.requireFile(beside.requestedPath, info, beside);
      if (end === "-journal" && endOf(beside.requestedPath, info.size) === SUPER_JOURNAL) {
        throw refusalOf(
          "SANDBOX_DENIED",
          beside,
          "it names another file, which SQLite would delete",
        );
      }
    }
  }

  /** Throws if another file has replaced the database. */
  #requireSame({ place, attempt }: OpenDatabase): void {
    const now = lookAt(place.path);
    if (now?.isFile && isSameFile(place.info, now)) return;
    throw refusalOf("PATH_OUTSIDE_WORKSPACE", attempt, "it was replaced after it was opened");
  }

  #close(opened: OpenDatabase): void {
    const folder = parentOf(opened.place.path);
    if (opened.isInMemory || hasNoLinks(folder)) opened.sql[Symbol.dispose]();
    else this.#stuck.push(opened);
  }

  #run<T>(op: string, [number, text]: readonly unknown[], step: (sql: Sql) => T): T {
    const opened = this.#opened.get(number);
    if (opened === undefined) throw new Deno.errors.BadResource("The database is closed");
    const { sql, isInMemory } = opened;
    const attempt = { ...opened.attempt, op };
    const run = () => this.#runFile({ ...opened, attempt }, text, step);
    return withRefusals(attempt, () => isInMemory ? step(sql) : run(), sql);
  }

  /**
   * Runs a statement on a file. Takes the lock while SQLite may open, create or remove files, but
   * not while the statement runs, which can take a long time.
   */
  #runFile<T>(opened: OpenDatabase, text: unknown, step: (sql: Sql) => T): T {
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

  /**
   * Runs a step under the lock, after a check of the files. Waits if another process has locked the
   * database.
   */
  #guarded<T>(opened: OpenDatabase, step: () => T): T {
    for (const since = performance.now();;) {
      try {
        return this.#lock.during(() => {
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

  /**
   * Counts the bytes that `run` writes. `bounded` limits a step to the remaining budget of the
   * child.
   */
  #counted<T>(
    { sql, attempt, place: { path } }: OpenDatabase,
    run: (bounded: (step: () => T) => T) => T,
  ): T {
    const sizeOf = (end: string) => lookAt(`${path}${end}`)?.size ?? 0;
    const log = sizeOf("-wal");
    let [growth, factor] = [0, 1];
    try {
      return run((step) => {
        this.#budget.take(1, attempt);
        // New data is written into the log first, if there is one, and then into the database as
        // well.
        if (lookAt(`${path}-wal`)) factor = 2;
        sql.limitGrowth(this.#budget.remaining / factor);
        const size = () => sql.size() + sizeOf("-journal");
        const before = size();
        try {
          return step();
        } finally {
          growth = Math.max(size() - before, 0);
        }
      });
    } finally {
      this.#budget.spend(factor * growth);
      this.#budget.spend(sizeOf("-wal") - log - growth);
    }
  }

  /**
   * Commits the changes of a statement, even after an error, unless SQLite has undone them.
   */
  #commit(opened: OpenDatabase): void {
    try {
      this.#guarded(opened, () => opened.sql.end("COMMIT"));
    } catch (error) {
      this.#guarded(opened, () => opened.sql.end("ROLLBACK"));
      throw error;
    }
  }
}

const NEVER = new Int32Array(new SharedArrayBuffer(4));

/**
 * Returns whether the path of a folder contains no link. True for a missing folder, because SQLite
 * cannot remove anything in it.
 */
function hasNoLinks(folder: string): boolean {
  try {
    return realPath(folder) === folder;
  } catch {
    return true; // missing, or only a file was granted
  }
}

/**
 * Returns whether a write-ahead log is in use. Throws if the log has lost its index, because SQLite
 * needs both.
 */
function hasLog(path: string): boolean {
  const [log, index] = [lookAt(`${path}-wal`), lookAt(`${path}-shm`)];
  if (log && index) return true;
  if (!log?.size) return false;
  throw new SqlProblem("its log (-wal) was left without its index; open it for writing once", "");
}

/** Reads a whole database into memory, because SQLite would create files next to a WAL database. */
function loadIntoMemory(path: string, Database: DatabaseClass): DatabaseSync {
  const bytes = Deno.statSync(path).size > SNAPSHOT_MAX ? undefined : Deno.readFileSync(path);
  if (bytes === undefined || hasLog(path)) {
    const why = "to read it in WAL mode SQLite makes files next to it";
    throw new SqlProblem(
      `${why}; open it for writing, or end WAL with PRAGMA journal_mode = delete`,
      "",
    );
  }
  // A database in memory cannot be in WAL mode, so the bytes for the write mode and the read mode
  // are changed.
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

function withRefusals<T>(attempt: PathAttempt, step: () => T, sql?: Sql): T {
  try {
    return step();
  } catch (error) {
    if (error instanceof SandboxRefusal) throw error;
    // An error of the system has a code such as ENOENT, or its own class.
    if (sql === undefined && !(error instanceof SqlProblem || /^ERR_/.test(Object(error).code))) {
      const failure = sentErrorOf(error, attempt);
      throw Object.assign(new Error(failure.message), failure);
    }
    const { message, code } = sqlProblem(sql?.takeRefusal() ?? error);
    const refusal = refusalOf(code, attempt, message);
    throw code === ""
      ? Object.assign(new Error(refusal.message), { name: "SqliteError" })
      : refusal;
  }
}

function countOr(value: unknown, unless: number, most = Number.MAX_SAFE_INTEGER): number {
  return Number.isSafeInteger(value) ? Math.min(Math.max(value as number, 0), most) : unless;
}

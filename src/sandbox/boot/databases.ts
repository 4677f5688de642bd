/**
 * The SQLite databases of a module. SQLite is native code that opens files beside a database
 * without asking Deno, so each step looks at them first, under the lock of the workspace.
 *
 * @module
 */

import type { DatabaseSync } from "node:sqlite";
import { lookAt, type Place, type Try, type Walls } from "./ground.ts";
import type { WorkspaceLock } from "./lock.ts";
import type { Power } from "./power.ts";
import { isSame } from "./protect.ts";
import { failureOf, Refusal, refusal } from "./refusal.ts";
import { NO_DATABASE, Sql, Unfit, unfit } from "./sql.ts";

const OPEN_MAX = 16;
const ROWS = 1_000;
const ROWS_MAX = 10_000;
const BUSY_MS = 2_000;
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

/** Opens databases for one Worker and runs its statements. */
export class Databases implements Disposable {
  readonly #walls: Walls;
  readonly #lock: WorkspaceLock;
  readonly #resultBytes: number;
  readonly #opened = new Map<unknown, Opened>();
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
      this.#run("query", number, (one) =>
        one.query(sql, parameters, {
          limit: count(limit, ROWS, ROWS_MAX),
          offset: count(offset, 0),
          // What is bytes or needs escapes grows on its way out.
          bytes: this.#resultBytes >> 2,
        })),
    "sqlite.execute": ([number, sql, parameters]) =>
      this.#run("change", number, (one) => one.execute(sql, parameters)),
    "sqlite.close": ([number]) => {
      this.#opened.get(number)?.sql[Symbol.dispose]();
      this.#opened.delete(number);
    },
  };

  /** Takes the walls and the lock that the files of the module have. */
  constructor(walls: Walls, lock: WorkspaceLock, options: { readonly resultBytes: number }) {
    this.#walls = walls;
    this.#lock = lock;
    this.#resultBytes = options.resultBytes;
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
    const options = { readOnly: !write, timeout: BUSY_MS };
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

  #run<T>(op: string, number: unknown, step: (sql: Sql) => T): T {
    const opened = this.#opened.get(number);
    if (opened === undefined) throw new Deno.errors.BadResource("The database is closed");
    const { sql, snapshot } = opened;
    const attempt = { ...opened.attempt, op };
    return told(attempt, () => {
      if (snapshot) return step(sql);
      const look = () => {
        this.#requireSame(opened);
        this.#lookBeside(opened.place.path, attempt);
      };
      if (attempt.access === "write") {
        // Shared is enough to keep others from putting something in the way, and lets one go on
        // that holds the database.
        return this.#lock.shared(() => (look(), step(sql)));
      }
      // A reader meets the files beside it when it begins; the rest can take as long as it likes.
      using _end = this.#lock.shared(() => (look(), sql.reading()));
      return step(sql);
    }, sql);
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

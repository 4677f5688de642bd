/**
 * Runs the statements of the embedded store.
 *
 * @module
 */

import type { DatabaseSync, StatementSync } from "node:sqlite";

/** A value that a statement takes. */
export type SqlValue = string | number | null | Uint8Array;

/** The maximum number of cached statements. */
const MAX_STATEMENTS = 100;

/** A database that prepares each statement once. */
export class Sql {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  /** Creates an instance for a database whose tables are up to date. */
  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** Returns the first row. */
  get(sql: string, values: readonly SqlValue[]) {
    return this.#prepare(sql).get(...values);
  }

  /** Returns all rows. */
  all(sql: string, values: readonly SqlValue[]) {
    return this.#prepare(sql).all(...values);
  }

  /** Returns the number of changed rows. */
  run(sql: string, values: readonly SqlValue[]): number {
    return Number(this.#prepare(sql).run(...values).changes);
  }

  /** Runs `work` in a transaction. Other processes cannot change the database during it. */
  transaction<T>(work: () => T): T {
    this.#db.exec("BEGIN IMMEDIATE");
    try {
      const result = work();
      this.#db.exec("COMMIT");
      return result;
    } catch (error) {
      // After some errors, such as a full disk, SQLite has already rolled back.
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      throw error;
    }
  }

  /** Closes the file. */
  close(): void {
    this.#statements.clear();
    this.#db.close();
  }

  #prepare(sql: string): StatementSync {
    const statement = this.#statements.get(sql) ?? this.#db.prepare(sql);
    // Limited, because searches with different numbers of words have different SQL texts.
    if (this.#statements.size < MAX_STATEMENTS) this.#statements.set(sql, statement);
    return statement;
  }
}

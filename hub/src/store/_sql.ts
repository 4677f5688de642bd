/**
 * Runs the statements of the embedded store.
 *
 * @module
 */

import type { DatabaseSync, StatementSync } from "node:sqlite";

/** A value that a statement takes. */
export type SqlValue = string | number | null | Uint8Array;

const KEPT = 100;

/** A database whose statements are prepared once. */
export class Sql {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  /** Takes a database whose tables are up to date. */
  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** Returns the first row. */
  get(sql: string, values: readonly SqlValue[]) {
    return this.#prepared(sql).get(...values);
  }

  /** Returns all rows. */
  all(sql: string, values: readonly SqlValue[]) {
    return this.#prepared(sql).all(...values);
  }

  /** Returns how many rows were changed. */
  run(sql: string, values: readonly SqlValue[]): number {
    return Number(this.#prepared(sql).run(...values).changes);
  }

  /** Does all of the work or nothing. No other process changes anything meanwhile. */
  together<T>(work: () => T): T {
    this.#db.exec("BEGIN IMMEDIATE");
    try {
      const result = work();
      this.#db.exec("COMMIT");
      return result;
    } catch (error) {
      // After some errors, such as a full disk, SQLite has done so by itself.
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      throw error;
    }
  }

  /** Closes the file. */
  close(): void {
    this.#statements.clear();
    this.#db.close();
  }

  #prepared(sql: string): StatementSync {
    const statement = this.#statements.get(sql) ?? this.#db.prepare(sql);
    // Queries with another number of words are other texts.
    if (this.#statements.size < KEPT) this.#statements.set(sql, statement);
    return statement;
  }
}

/**
 * Runs statements on a PostgreSQL server, over a few connections.
 *
 * @module
 */

import { PmlError, quoted } from "@casys/pml/registry";
import postgres from "postgres";
import type { PgPlace } from "./_pg_url.ts";

/** A value that a statement takes. */
export type PgValue = string | number | null | Uint8Array;
/** A row. */
export type PgRow = Readonly<Record<string, unknown>>;

/** Runs statements, outside or inside a transaction. */
export interface Queries {
  /** Returns the first row. */
  get(text: string, values?: readonly PgValue[]): Promise<PgRow | undefined>;
  /** Returns all rows. */
  all(text: string, values?: readonly PgValue[]): Promise<readonly PgRow[]>;
  /** Returns the number of changed rows. */
  run(text: string, values?: readonly PgValue[]): Promise<number>;
}

/** The PostgreSQL schema with all tables. */
export const SCHEMA = "pml_hub";
const CONNECTIONS = 10;
/** The time limit for opening a connection, in seconds. */
const CONNECT_S = 5;
/** The time limit of a statement, of a lock and of an idle transaction, in milliseconds. */
const STATEMENT_MS = 10_000;
/** The maximum time that a caller waits, even if the server does not answer. */
const ANSWER_MS = 15_000;
/** The maximum number of callers that wait at once. */
const MAX_CALLERS = 1_000;
/** The advisory lock for all changes: the ASCII codes of "PMLH". */
const CHANGE_LOCK = 0x504d4c48;
/** The maximum time for closing, in seconds, because the server may not answer. */
const CLOSE_S = 1;

/** The connections to a server. */
export class Pg implements Queries {
  readonly #sql: postgres.Sql;
  readonly #label: string;
  #callers = 0;

  /** Creates an instance. The first statement opens the connection. */
  constructor({ host, port, database, user, password, ssl, label }: PgPlace) {
    this.#label = label;
    this.#sql = postgres({
      // The client splits a string at colons, but not the items of a list. Its types lack the lists.
      host: (host.startsWith("/") ? host : [host]) as string,
      port: [port] as unknown as number, // as above
      database,
      user,
      password,
      ssl,
      ...{ max: CONNECTIONS, connect_timeout: CONNECT_S, backoff: () => 0.1, fetch_types: false },
      onnotice: () => {},
      connection: {
        application_name: "pml-hub",
        search_path: `${SCHEMA}, public`,
        statement_timeout: STATEMENT_MS,
        lock_timeout: STATEMENT_MS,
        idle_in_transaction_session_timeout: STATEMENT_MS,
      },
    });
  }

  /** Returns the first row. */
  async get(text: string, values: readonly PgValue[] = []): Promise<PgRow | undefined> {
    const [row] = await this.all(text, values);
    return row;
  }

  /** Returns all rows. */
  all(text: string, values: readonly PgValue[] = []): Promise<readonly PgRow[]> {
    return this.#withTimeout(() => queriesOf(this.#sql).all(text, values));
  }

  /** Returns the number of changed rows. */
  run(text: string, values: readonly PgValue[] = []): Promise<number> {
    return this.#withTimeout(() => queriesOf(this.#sql).run(text, values));
  }

  /** Runs `work` in a transaction under the lock for changes. */
  transaction<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    return this.#withTimeout(async () => {
      let done: { readonly value: T } | undefined;
      await this.#sql.begin(async (sql) => {
        const queries = queriesOf(sql);
        await queries.run("SELECT pg_advisory_xact_lock($1)", [CHANGE_LOCK]);
        done = { value: await work(queries) };
      });
      if (done === undefined) throw new Error("a transaction ended before its work");
      return done.value;
    });
  }

  /**
   * Runs work without time limits in one transaction. "reading" reads all tables as they were at
   * one moment; "changing" takes the lock for changes.
   */
  async longTransaction(
    kind: "reading" | "changing",
    work: (queries: Queries) => Promise<void>,
  ): Promise<void> {
    const mode = kind === "reading" ? "isolation level repeatable read read only" : "";
    await this.#sql.begin(mode, async (sql) => {
      const queries = queriesOf(sql);
      await queries.run("SET LOCAL statement_timeout = 0");
      await queries.run("SET LOCAL idle_in_transaction_session_timeout = 0");
      if (kind === "changing") await queries.run("SELECT pg_advisory_xact_lock($1)", [CHANGE_LOCK]);
      await work(queries);
    });
  }

  /** Runs several statements without values. */
  async script(text: string, queries: Queries = this): Promise<void> {
    // Without values, the client uses the simple query protocol, which allows several statements.
    await queries.run(text);
  }

  /** Closes the connections. */
  async close(): Promise<void> {
    await this.#sql.end({ timeout: CLOSE_S });
  }

  /** Runs work, and throws `UPSTREAM_DOWN` if the server does not answer in time. */
  async #withTimeout<T>(work: () => Promise<T>): Promise<T> {
    if (this.#callers >= MAX_CALLERS) {
      throw this.#silentError("too many requests are waiting for it");
    }
    this.#callers++;
    const result = work().finally(() => this.#callers--);
    const timeout = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => timeout.reject(this.#silentError(`it has not answered for ${ANSWER_MS / 1_000} s`)),
      ANSWER_MS,
    );
    try {
      return await Promise.race([result, timeout.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  #silentError(why: string): PmlError {
    return new PmlError("UPSTREAM_DOWN", `Cannot query ${quoted(this.#label, 300)}: ${why}`, {
      hint: "Check the PostgreSQL server and the network to it",
    });
  }
}

function queriesOf(sql: postgres.Sql | postgres.TransactionSql): Queries {
  const query = (text: string, values: readonly PgValue[]) =>
    sql.unsafe<Record<string, unknown>[]>(text, values.map(withoutNul), {
      prepare: values.length > 0,
    });
  const all = async (text: string, values: readonly PgValue[] = []) => [
    ...await query(text, values),
  ];
  return {
    all,
    get: async (text, values) => (await all(text, values))[0],
    run: async (text, values = []) => (await query(text, values)).count,
  };
}

/** Replaces NUL, which PostgreSQL cannot store. In JSON, NUL is always escaped and stays. */
function withoutNul(value: PgValue): PgValue {
  return typeof value === "string" ? value.replaceAll("\0", "\ufffd") : value;
}

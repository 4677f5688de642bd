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

/** Runs statements: the server, or a transaction on it. */
export interface Queries {
  /** Returns the first row. */
  get(text: string, values?: readonly PgValue[]): Promise<PgRow | undefined>;
  /** Returns all rows. */
  all(text: string, values?: readonly PgValue[]): Promise<readonly PgRow[]>;
  /** Returns how many rows were changed. */
  run(text: string, values?: readonly PgValue[]): Promise<number>;
}

/** The schema of PostgreSQL in which all tables are. */
export const SCHEMA = "pml_hub";
const CONNECTIONS = 10;
const CONNECT_S = 5;
const STATEMENT_MS = 10_000;
/** How long a caller waits, whatever the server does. */
const ANSWER_MS = 15_000;
/** How many callers wait at once. */
const CALLERS = 1_000;
/** The lock under which everything is changed: the letters "PMLH". */
const CHANGES = 0x504d4c48;
/** How long closing waits, in seconds: the server may have closed the connection long ago. */
const CLOSE_S = 1;

/** The connections to a server. */
export class Pg implements Queries {
  readonly #sql: postgres.Sql;
  readonly #shown: string;
  #callers = 0;

  /** Connects when it is asked for the first time. */
  constructor({ host, port, database, user, password, ssl, label }: PgPlace) {
    this.#shown = label;
    this.#sql = postgres({
      // Lists, because a text would be split at colons; the types of the client leave them out.
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
    return this.#bounded(() => queriesOf(this.#sql).all(text, values));
  }

  /** Returns how many rows were changed. */
  run(text: string, values: readonly PgValue[] = []): Promise<number> {
    return this.#bounded(() => queriesOf(this.#sql).run(text, values));
  }

  /** Does all of the work or nothing. No other process changes anything meanwhile. */
  together<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    return this.#bounded(async () => {
      let made: { readonly value: T } | undefined;
      await this.#sql.begin(async (sql) => {
        const queries = queriesOf(sql);
        await queries.run("SELECT pg_advisory_xact_lock($1)", [CHANGES]);
        made = { value: await work(queries) };
      });
      if (made === undefined) throw new Error("a transaction ended before its work");
      return made.value;
    });
  }

  /**
   * Does work of any length within one transaction: it reads the database as it is at one moment, or
   * is alone in changing it.
   */
  async long(
    kind: "reading" | "changing",
    work: (queries: Queries) => Promise<void>,
  ): Promise<void> {
    const mode = kind === "reading" ? "isolation level repeatable read read only" : "";
    await this.#sql.begin(mode, async (sql) => {
      const queries = queriesOf(sql);
      await queries.run("SET LOCAL statement_timeout = 0");
      await queries.run("SET LOCAL idle_in_transaction_session_timeout = 0");
      if (kind === "changing") await queries.run("SELECT pg_advisory_xact_lock($1)", [CHANGES]);
      await work(queries);
    });
  }

  /** Runs several statements without values. */
  async script(text: string, queries: Queries = this): Promise<void> {
    // Without values it is the simple protocol, which takes more than one statement.
    await queries.run(text);
  }

  /** Closes the connections. */
  async close(): Promise<void> {
    await this.#sql.end({ timeout: CLOSE_S });
  }

  /** Bounds how long work waits for a server that does not answer. */
  async #bounded<T>(work: () => Promise<T>): Promise<T> {
    if (this.#callers >= CALLERS) throw this.#silent("too much waits for it");
    this.#callers++;
    const done = work().finally(() => this.#callers--);
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => late.reject(this.#silent(`it has not answered for ${ANSWER_MS / 1_000} s`)),
      ANSWER_MS,
    );
    try {
      return await Promise.race([done, late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  #silent(why: string): PmlError {
    return new PmlError("UPSTREAM_DOWN", `Cannot ask ${quoted(this.#shown, 300)}: ${why}`, {
      hint: "Look at the PostgreSQL server and the network to it",
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

/** PostgreSQL has no text with the character 0, and JSON has it only escaped. */
function withoutNul(value: PgValue): PgValue {
  return typeof value === "string" ? value.replaceAll("\0", "\ufffd") : value;
}

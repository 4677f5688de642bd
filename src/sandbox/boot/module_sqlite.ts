/**
 * The Worker's side of `host.sqlite`.
 *
 * @module
 */

import type { Database, Host, SqlChanges, SqlRows } from "../host.ts";

/** Sends a request to the host thread and resolves with its answer. */
export type AskHost = (op: string, args: readonly unknown[]) => Promise<unknown>;

/** Returns `host.sqlite`. Disposing it closes all databases that were opened with it. */
export function brokeredSqlite(askHost: AskHost): Host["sqlite"] & AsyncDisposable {
  const openNumbers = new Set<unknown>();
  const opening = new Set<Promise<void>>();
  const close = async (number: unknown) => {
    if (openNumbers.delete(number)) await askHost("sqlite.close", [number]);
  };
  const sqlite: Host["sqlite"] = async (path, { write = false } = {}) => {
    const opened = askHost("sqlite.open", [path, write]);
    const done = opened.then((number) => void openNumbers.add(number), () => {});
    opening.add(done);
    await done;
    opening.delete(done);
    const number = await opened;
    return databaseOf(askHost, { number, close: () => close(number) });
  };
  const closeAll = async () => {
    // The call may have ended without waiting for a database.
    await Promise.all(opening);
    await Promise.all([...openNumbers].map(close));
  };
  return Object.assign(sqlite, { [Symbol.asyncDispose]: closeAll });
}

/** The number of an open database, and how to close it. */
interface OpenHandle {
  readonly number: unknown;
  readonly close: () => Promise<void>;
}

// The answers of the host thread have the types below.
function databaseOf(askHost: AskHost, { number, close }: OpenHandle): Database {
  return {
    query: (sql, parameters = [], { limit, offset } = {}) =>
      askHost("sqlite.query", [number, sql, parameters, limit, offset]) as Promise<SqlRows>,
    execute: (sql, parameters = []) =>
      askHost("sqlite.execute", [number, sql, parameters]) as Promise<SqlChanges>,
    close,
    [Symbol.asyncDispose]: close,
  };
}

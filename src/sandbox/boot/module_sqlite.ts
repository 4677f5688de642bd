/**
 * The Worker's side of `host.sqlite`.
 *
 * @module
 */

import type { Database, Host, SqlChanges, SqlRows } from "../host.ts";

/** Sends a request to the host thread and resolves with its answer. */
export type AskHost = (op: string, args: readonly unknown[]) => Promise<unknown>;

/** Returns `host.sqlite`. Disposing it closes all databases that were opened with it. */
export function brokeredSqlite(later: AskHost): Host["sqlite"] & AsyncDisposable {
  const open = new Set<unknown>();
  const opening = new Set<Promise<void>>();
  const close = async (number: unknown) => {
    if (open.delete(number)) await later("sqlite.close", [number]);
  };
  const sqlite: Host["sqlite"] = async (path, { write = false } = {}) => {
    const opened = later("sqlite.open", [path, write]);
    const done = opened.then((number) => void open.add(number), () => {});
    opening.add(done);
    await done;
    opening.delete(done);
    const number = await opened;
    return databaseOf(later, { number, close: () => close(number) });
  };
  const closeAll = async () => {
    // The call may have ended without waiting for a database.
    await Promise.all(opening);
    await Promise.all([...open].map(close));
  };
  return Object.assign(sqlite, { [Symbol.asyncDispose]: closeAll });
}

/** The number of an open database, and how to close it. */
interface OpenHandle {
  readonly number: unknown;
  readonly close: () => Promise<void>;
}

// The answers of the host thread have the types below.
function databaseOf(later: AskHost, { number, close }: OpenHandle): Database {
  return {
    query: (sql, parameters = [], { limit, offset } = {}) =>
      later("sqlite.query", [number, sql, parameters, limit, offset]) as Promise<SqlRows>,
    execute: (sql, parameters = []) =>
      later("sqlite.execute", [number, sql, parameters]) as Promise<SqlChanges>,
    close,
    [Symbol.asyncDispose]: close,
  };
}

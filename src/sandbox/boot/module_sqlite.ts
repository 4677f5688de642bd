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
  const close = async (number: unknown) => {
    if (open.delete(number)) await later("sqlite.close", [number]);
  };
  const sqlite: Host["sqlite"] = async (path, { write = false } = {}) => {
    const number = await later("sqlite.open", [path, write]);
    open.add(number);
    return databaseOf(later, { number, close: () => close(number) });
  };
  const closeAll = async () => void await Promise.all([...open].map(close));
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

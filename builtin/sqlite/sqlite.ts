/**
 * The built-in module `sqlite`. It queries and changes databases of the workspace, one statement
 * for each call.
 *
 * @module
 */

import type { Host } from "../../src/sandbox/host.ts";
import { bindings, type Parameters, toJsonValue } from "./cells.ts";
import { withDatabase } from "./opening.ts";
import { formatTables, tablesOf } from "./tables.ts";

/** The arguments of all tools. The schema of each tool lists its arguments. */
interface Args {
  readonly path: string;
  readonly sql: string;
  readonly parameters?: Parameters;
  readonly limit?: number;
  readonly offset?: number;
  readonly create?: boolean;
  readonly table?: string;
}

/** The maximum length of one result that a model can use, in characters. */
const MAX_CHARACTERS = 200_000;

/** Runs a statement that reads, and returns a page of its rows. */
export function query({ path, sql, parameters, limit = 100, offset = 0 }: Args, host: Host) {
  return withDatabase(path, { host }, async (db) => {
    const found = await db.query(sql, bindings(parameters), { limit, offset });
    const rows = found.rows.map((row) => row.map(toJsonValue));
    const lines = rows.map((row) => JSON.stringify(row));
    let fittingCount = 0;
    for (let charactersLeft = MAX_CHARACTERS; fittingCount < rows.length; fittingCount++) {
      charactersLeft -= lines[fittingCount]?.length ?? 0;
      if (charactersLeft < 0) break;
    }
    if (fittingCount === 0 && rows.length > 0) {
      const why = `one row has more than ${MAX_CHARACTERS} characters`;
      throw new Error(`${why}; choose columns, or a part with substr(column, 1, 1000)`);
    }
    const more = found.more || fittingCount < rows.length;
    const next = `; there are more, from offset ${offset + fittingCount} on`;
    const text = [
      JSON.stringify(found.columns),
      ...lines.slice(0, fittingCount),
      `${fittingCount} rows${more ? next : ""}`,
    ].join("\n");
    return answer(text, { columns: found.columns, rows: rows.slice(0, fittingCount), more });
  });
}

/** Runs a statement that changes the database. */
export function execute({ path, sql, parameters, create = false }: Args, host: Host) {
  return withDatabase(path, { host, write: true, create }, async (db) => {
    if (/^\s*(begin|savepoint)\b/i.test(sql)) {
      throw new Error("a transaction ends with its call, and nothing of it is kept");
    }
    const { changes, lastInsertRowid } = await db.execute(sql, bindings(parameters));
    const last = toJsonValue(lastInsertRowid);
    const text = `${changes} rows changed${changes > 0 ? `; last row id ${last}` : ""}`;
    return answer(text, { changes, lastInsertRowid: last });
  });
}

/** Shows tables and views with their columns, keys, indexes and triggers. */
export function schema({ path, table }: Args, host: Host) {
  return withDatabase(path, { host }, async (db) => {
    const found = await tablesOf(db, table);
    return answer(formatTables(found), {
      tables: found.tables.map(({ sql: _, ...table }) => table),
      more: found.more,
    });
  });
}

function answer(text: string, structuredContent: object) {
  return { content: [{ type: "text", text }], structuredContent };
}

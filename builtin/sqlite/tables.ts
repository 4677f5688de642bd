/**
 * Reads the tables of a database.
 *
 * @module
 */

import type { Database } from "../../src/sandbox/host.ts";

const MAX_TABLES = 200;
const MAX_COUNTED = 10_000;
const MAX_CHARACTERS = 200_000;

const LIST = `SELECT l.name, l.type, s.sql FROM pragma_table_list l
  JOIN sqlite_schema s ON s.name = l.name AND s.type IN ('table', 'view')
  WHERE l.schema = 'main' AND l.type <> 'shadow' AND l.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
  AND (:table IS NULL OR l.name = :table COLLATE NOCASE) ORDER BY l.name`;
const DETAILS = `SELECT json_object(
  'columns', json((SELECT json_group_array(json_object('name', name, 'type', type,
    'notNull', json(iif("notnull", 'true', 'false')), 'default', dflt_value, 'primaryKey', pk,
    'generated', json(iif(hidden > 1, 'true', 'false')))) FROM pragma_table_xinfo(:table))),
  'foreignKeys', json((SELECT json_group_array(json_object('column', "from", 'table', "table",
    'to', "to", 'onDelete', on_delete)) FROM pragma_foreign_key_list(:table))),
  'indexes', json((SELECT json_group_array(json_object('name', name,
    'unique', json(iif("unique", 'true', 'false')),
    'columns', json((SELECT json_group_array(name) FROM pragma_index_info(i.name)))))
    FROM pragma_index_list(:table) i)),
  'triggers', json((SELECT json_group_array(name) FROM sqlite_schema
    WHERE type = 'trigger' AND tbl_name = :table)))`;
const INDEXES_AND_TRIGGERS =
  `SELECT sql FROM sqlite_schema WHERE tbl_name = ? AND type IN ('index', 'trigger')
  AND sql IS NOT NULL ORDER BY type, name`;

/** A table or a view. */
export interface Table {
  readonly name: string;
  readonly type: string;
  /** The statements that create it, its indexes and its triggers. */
  readonly sql: readonly string[];
  readonly rows?: number;
  readonly moreRows?: boolean;
  readonly error?: string;
}

/** Tables, and whether there are more. */
export interface Tables {
  readonly tables: readonly Table[];
  readonly more: boolean;
}

/** Returns all tables and views, or only `table`. Throws if there is no such table. */
export async function tablesOf(db: Database, table: string | null = null): Promise<Tables> {
  const { rows, more } = await db.query(LIST, { table }, { limit: MAX_TABLES });
  if (rows.length === 0 && table !== null) throw new Error(`no such table: ${table}`);
  const tables: Table[] = [];
  for (const [name, type, sql] of rows) {
    tables.push(
      await withDetails(db, { name: String(name), type: String(type), sql: [String(sql)] }),
    );
  }
  return { tables, more };
}

/** Formats tables as the statements that create them. */
export function formatTables({ tables, more }: Tables): string {
  if (tables.length === 0) return "The database has no tables";
  const texts = tables.map(({ sql, rows, moreRows, error }) => {
    const count = rows === undefined ? "" : ` -- ${moreRows ? "over " : ""}${rows} rows`;
    const [first = "", ...parts] = sql.map((statement) => `${statement};`);
    return [first + (error === undefined ? count : ` -- ${error}`), ...parts].join("\n");
  });
  const text = [...texts, ...more ? ["There are more; name one with table"] : []].join("\n\n");
  return text.length > MAX_CHARACTERS
    ? `${text.slice(0, MAX_CHARACTERS)}…\nThere is more; name one with table`
    : text;
}

// If a table cannot be read (for example a virtual table of an extension), other tables are shown.
async function withDetails(db: Database, { name, type, sql }: Table): Promise<Table> {
  try {
    const { rows: [[json] = []] } = await db.query(DETAILS, { table: name });
    const { rows: parts } = await db.query(INDEXES_AND_TRIGGERS, [name]);
    const found = { name, type, ...JSON.parse(String(json)), sql: [...sql, ...parts.map(String)] };
    if (type === "view") return found;
    const quoted = `"${name.replaceAll('"', '""')}"`;
    const counting = `SELECT count(*) FROM (SELECT 1 FROM ${quoted} LIMIT ${MAX_COUNTED + 1})`;
    const { rows: [[count] = []] } = await db.query(counting);
    const rows = Math.min(Number(count), MAX_COUNTED);
    return { ...found, rows, moreRows: Number(count) > MAX_COUNTED };
  } catch (error) {
    return { name, type, sql, error: error instanceof Error ? error.message : String(error) };
  }
}

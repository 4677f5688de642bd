/**
 * Checks that a database contains only rows that a hub writes, because a hub serves and signs its
 * content unchanged.
 *
 * @module
 */

import type { DatabaseSync } from "node:sqlite";
import { fqdnOf, integrityOf, isObject, parseJson, textOf } from "@casys/pml/registry";
import { keyIdOf } from "./key_id.ts";
import { openDatabase } from "./_database.ts";
import { KEY_KINDS_STEP, KEY_RECORDS_STEP, MIGRATIONS } from "./_migrations.ts";
import { tableOf } from "./_versions.ts";

/** A row that has a manifest. */
interface Row {
  readonly fqdn: string;
  readonly version: string;
  readonly manifest: string;
  readonly created: string;
  /** The columns that repeat members of the manifest; null for the table `waiting`. */
  readonly type: string | null;
  readonly routing: string | null;
  /** The hash of the code; null without code. */
  readonly code: string | null;
  /** 1 if the code is in the database. */
  readonly has_code: number;
}

/** Selects the triggers and views of a database. */
const SCHEMA_CODE =
  "SELECT name, sql FROM sqlite_schema WHERE type IN ('trigger', 'view') ORDER BY name";

/** Select the keys, and the same columns from their records. Both results must be equal. */
const KEYS = (kind: string) =>
  `SELECT id, owner, hash, created, revoked${kind && ", kind"} FROM keys ORDER BY id`;
const RECORDS = (kind: string) =>
  `SELECT i.id, i.owner, i.hash, i.at AS created, r.at AS revoked${kind && ", i.kind"}
  FROM key_records i LEFT JOIN key_records r
    ON r.id = i.id AND r.what = 'revoked' AND r.owner = i.owner AND r.hash = i.hash
      ${kind && "AND r.kind = i.kind"}
  WHERE i.what = 'issued' ORDER BY i.id`;
const RECORD_COUNT = `SELECT count(*) AS count FROM key_records WHERE what <> 'issued'`;

/** Returns whether a database with `steps` migrations contains only rows that a hub writes. */
export function hasOnlyHubRows(db: DatabaseSync, steps: number): boolean {
  using schemaDatabase = openDatabase(":memory:", MIGRATIONS.slice(0, steps));
  if (
    JSON.stringify(db.prepare(SCHEMA_CODE).all()) !==
      JSON.stringify(schemaDatabase.prepare(SCHEMA_CODE).all())
  ) {
    return false;
  }
  if (steps >= KEY_RECORDS_STEP && !areKeysRecorded(db, steps >= KEY_KINDS_STEP ? "kind" : "")) {
    return false;
  }
  for (const row of db.prepare("SELECT integrity, bytes FROM blobs").iterate()) {
    if (integrityOf(row.bytes as Uint8Array) !== row.integrity) return false; // the column is a BLOB
  }
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE name = 'waiting'").all();
  return ["servers", "capabilities", ...tables.map(({ name }) => String(name))].every((table) => {
    const mirroredColumns = table === "waiting" ? "NULL AS type, NULL AS routing" : "type, routing";
    const rows = db.prepare(`SELECT fqdn, version, manifest, created, ${mirroredColumns}, code,
      EXISTS (SELECT 1 FROM blobs WHERE integrity = code) AS has_code FROM ${table}`).iterate();
    for (const row of rows as Iterable<unknown>) {
      if (!isEntry(row as Row, table)) return false; // the query selects these columns
    }
    return true;
  });
}

/** Returns whether the records of keys match the keys. */
function areKeysRecorded(db: DatabaseSync, kind: "" | "kind"): boolean {
  const keys = db.prepare(KEYS(kind)).all();
  const revokedCount = keys.filter((key) => key.revoked !== null).length;
  return JSON.stringify(keys) === JSON.stringify(db.prepare(RECORDS(kind)).all()) &&
    db.prepare(RECORD_COUNT).get()?.count === revokedCount &&
    keys.every(({ id, hash }) => keyIdOf(String(hash)) === id);
}

function isEntry(row: Row, table: string): boolean {
  const { fqdn, version, created, code } = row;
  const manifest = manifestOf(row.manifest);
  const hasName = manifest.fqdn === fqdn && manifest.version === version &&
    fqdnOf(`${fqdn}@${version}`)?.version === version;
  const isInTable = table === "waiting" || tableOf(fqdn) === table;
  const hasMirroredMembers = [[row.type, manifest.type], [row.routing, manifest.routing]]
    .every(([column, member]) => column === null || column === textOf(member));
  const hasValidCode = code === null ||
    row.has_code === 1 && [undefined, code].includes(manifest.integrity as string);
  return hasName && isInTable && hasMirroredMembers && hasValidCode &&
    !Number.isNaN(Date.parse(created));
}

function manifestOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const json = parseJson(text);
    return isObject(json) ? json : {};
  } catch {
    return {}; // without a name, so `isEntry()` returns false
  }
}

/**
 * Adds versions to the embedded store, and chooses the newest version of each name. Each function
 * runs within a transaction of its caller.
 *
 * @module
 */

import { chosen, compareVersions, integrityOf, searchText, textOf } from "@casys/pml/registry";
import type { Sql } from "./_sql.ts";
import { pairsOf } from "./follows.ts";
import type { AddResult, OfferedVersion } from "./store.ts";

/** The name of a table of versions. */
export type Table = "servers" | "capabilities";

/** Returns the table with the versions of a name. */
export function tableOf(fqdn: string): Table {
  return fqdn.includes(":") ? "capabilities" : "servers";
}

/** Adds a version. `owner` is null for a version that the operator adds. */
export function addVersion(
  sql: Sql,
  offered: OfferedVersion,
  owner: string | null = null,
): AddResult {
  const { fqdn, version, manifest } = offered;
  const table = tableOf(fqdn);
  const text = JSON.stringify(manifest);
  const code = keepCode(sql, offered);
  const row = sql.get(
    `SELECT manifest, code FROM ${table} WHERE fqdn = ? AND version = ?`,
    [fqdn, version],
  );
  if (row !== undefined) {
    return row.manifest === text && row.code === code ? "same" : "refused";
  }
  sql.run(
    `INSERT INTO ${table} (fqdn, version, type, routing, manifest, code, created, owner)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      ...[fqdn, version, textOf(manifest.type), textOf(manifest.routing), text, code],
      ...[new Date().toISOString(), owner],
    ],
  );
  for (const pair of pairsOf(manifest)) {
    sql.run("INSERT INTO follows (fqdn, version, before, after) VALUES (?, ?, ?, ?)", [
      ...[fqdn, version, ...pair],
    ]);
  }
  return "added";
}

/** Stores the code of a version, equal code only once, and returns its hash. */
export function keepCode(sql: Sql, { code }: Pick<OfferedVersion, "code">): string | null {
  if (code === undefined) return null;
  const hash = integrityOf(code);
  sql.run("INSERT OR IGNORE INTO blobs (integrity, bytes) VALUES (?, ?)", [hash, code]);
  return hash;
}

/** Stores which version of a name is the newest, and the words of that version for searches. */
export function chooseNewest(sql: Sql, fqdn: string): void {
  const versions = versionsOf(sql, fqdn).map((version) => ({ version }));
  const newest = chosen({ entries: versions, tags: tagsOf(sql, fqdn) }, undefined);
  if (newest === undefined) return void sql.run("DELETE FROM newest WHERE fqdn = ?", [fqdn]);
  const { version } = newest;
  const row = sql.get(
    `SELECT manifest FROM ${tableOf(fqdn)} WHERE fqdn = ? AND version = ?`,
    [fqdn, version],
  );
  const words = searchText({ fqdn, manifest: JSON.parse(String(row?.manifest)) });
  sql.run(
    `INSERT INTO newest (fqdn, version, words) VALUES (?, ?, ?)
     ON CONFLICT (fqdn) DO UPDATE SET version = excluded.version, words = excluded.words`,
    [fqdn, version, words],
  );
}

/** Returns the versions of a name that are not hidden, the newest first. */
export function versionsOf(sql: Sql, fqdn: string): readonly string[] {
  const table = tableOf(fqdn);
  return sql.all(`SELECT version FROM ${table} WHERE fqdn = ? AND yanked IS NULL`, [fqdn])
    .map(({ version }) => String(version)).sort((a, b) => compareVersions(b, a));
}

/** Returns the tags of a name. */
export function tagsOf(sql: Sql, fqdn: string): Readonly<Record<string, string>> {
  const rows = sql.all("SELECT tag, version FROM tags WHERE fqdn = ? ORDER BY tag", [fqdn]);
  return Object.fromEntries(rows.map(({ tag, version }) => [tag, String(version)]));
}

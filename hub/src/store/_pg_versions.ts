/**
 * Adds versions to the store on PostgreSQL, and chooses the newest version of each name. Each function
 * runs within a transaction of its caller.
 *
 * @module
 */

import {
  chosen,
  compareVersions,
  integrityOf,
  isObject,
  type JsonObject,
  searchText,
  textOf,
} from "@casys/pml/registry";
import type { Queries } from "./_pg.ts";
import { pairsOf } from "./follows.ts";
import type { AddResult, OfferedVersion } from "./store.ts";
import { tableOf } from "./_versions.ts";

/** Adds a version. `owner` is null for a version that the operator adds. */
export async function addVersion(
  sql: Queries,
  offered: OfferedVersion,
  owner: string | null = null,
): Promise<AddResult> {
  const { fqdn, version, manifest } = offered;
  const table = tableOf(fqdn);
  const text = JSON.stringify(manifest);
  const code = await keepCode(sql, offered);
  const row = await sql.get(
    `SELECT manifest, code FROM ${table} WHERE fqdn = $1 AND version = $2`,
    [fqdn, version],
  );
  if (row !== undefined) {
    return row.manifest === text && row.code === code ? "same" : "refused";
  }
  await sql.run(
    `INSERT INTO ${table} (fqdn, version, type, routing, manifest, code, created, owner,
       description, install_command, install_args, proxy_to, env_required, warnings)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
    [
      ...[fqdn, version, textOf(manifest.type), textOf(manifest.routing), text, code],
      ...[new Date().toISOString(), owner, ...viewValues(manifest)],
    ],
  );
  for (const pair of pairsOf(manifest)) {
    await sql.run("INSERT INTO follows (fqdn, version, before, after) VALUES ($1, $2, $3, $4)", [
      ...[fqdn, version, ...pair],
    ]);
  }
  return "added";
}

/** Returns the values of a manifest for the columns of the view `pml_registry`. */
export function viewValues(manifest: JsonObject): readonly (string | null)[] {
  const { description, proxy_to, env_required, warnings } = manifest;
  const { command, args } = isObject(manifest.install) ? manifest.install : {};
  const text = (value: unknown) =>
    value === undefined || value === null
      ? null
      : typeof value === "string"
      ? value
      : JSON.stringify(value);
  const json = (value: unknown) => value === undefined ? null : JSON.stringify(value);
  return [
    ...[text(description), text(command), json(args)],
    ...[text(proxy_to), json(env_required), json(warnings)],
  ];
}

/** Stores the code of a version, equal code only once, and returns its hash. */
export async function keepCode(
  sql: Queries,
  { code }: Pick<OfferedVersion, "code">,
): Promise<string | null> {
  if (code === undefined) return null;
  const hash = integrityOf(code);
  await sql.run(
    "INSERT INTO blobs (integrity, bytes) VALUES ($1, $2) ON CONFLICT (integrity) DO NOTHING",
    [hash, code],
  );
  return hash;
}

/** Stores which version of a name is the newest, and the words of that version for searches. */
export async function chooseNewest(sql: Queries, fqdn: string): Promise<void> {
  const versions = (await versionsOf(sql, fqdn)).map((version) => ({ version }));
  const newest = chosen({ entries: versions, tags: await tagsOf(sql, fqdn) }, undefined);
  if (newest === undefined) return void await sql.run("DELETE FROM newest WHERE fqdn = $1", [fqdn]);
  const { version } = newest;
  const row = await sql.get(
    `SELECT manifest FROM ${tableOf(fqdn)} WHERE fqdn = $1 AND version = $2`,
    [fqdn, version],
  );
  const words = searchText({ fqdn, manifest: JSON.parse(String(row?.manifest)) });
  await sql.run(
    `INSERT INTO newest (fqdn, version, words) VALUES ($1, $2, $3)
     ON CONFLICT (fqdn) DO UPDATE SET version = excluded.version, words = excluded.words`,
    [fqdn, version, words],
  );
}

/** Returns the versions of a name that are not hidden, the newest first. */
export async function versionsOf(sql: Queries, fqdn: string): Promise<readonly string[]> {
  const table = tableOf(fqdn);
  const rows = await sql.all(
    `SELECT version FROM ${table} WHERE fqdn = $1 AND yanked IS NULL`,
    [fqdn],
  );
  return rows.map(({ version }) => String(version)).sort((a, b) => compareVersions(b, a));
}

/** Returns the tags of a name. */
export async function tagsOf(
  sql: Queries,
  fqdn: string,
): Promise<Readonly<Record<string, string>>> {
  const rows = await sql.all("SELECT tag, version FROM tags WHERE fqdn = $1 ORDER BY tag", [fqdn]);
  return Object.fromEntries(rows.map(({ tag, version }) => [String(tag), String(version)]));
}

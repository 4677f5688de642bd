/**
 * The store that needs no set-up: one file of SQLite. Several processes may use it at once.
 *
 * @module
 */

import { join } from "node:path";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import {
  type CatalogQuery,
  chosen,
  compareVersions,
  integrityOf,
  type JsonObject,
  searchText,
  textOf,
} from "@casys/pml/registry";
import { openDatabase } from "./_database.ts";
import type { Added, HubStore, Offered, RegistryRow, StoredEntry } from "./store.ts";

/** The name of the file in the folder of a hub. */
export const DATABASE = "hub.db";

type Table = "servers" | "capabilities";
type Tags = Readonly<Record<string, string>>;

/** A row of `servers` or `capabilities`, with the code if it has some. */
interface Row {
  readonly fqdn: string;
  readonly version: string;
  readonly manifest: string;
  readonly bytes?: Uint8Array | null;
  readonly created: string;
}

const COLUMNS = "v.fqdn, v.version, v.manifest, v.created";
const LEFT = "FROM newest n JOIN";
/** The fewest characters of a word that the index knows. */
const INDEXED = 3;

/** Opens the store of a folder, which is made if it is not there. */
export async function openEmbedded(folder: string): Promise<EmbeddedStore> {
  await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, DATABASE);
  const db = openDatabase(file);
  // The files beside it get the rights of this one.
  if (Deno.build.os !== "windows") await Deno.chmod(file, 0o600);
  return new EmbeddedStore(db);
}

/** A store in a file. */
export class EmbeddedStore implements HubStore {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  /** Takes a database whose tables are up to date. */
  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** Returns the entry of a version or a tag; without one, the newest. */
  readonly entry = (fqdn: string, version: string | undefined): Promise<StoredEntry | undefined> =>
    this.#now(() => {
      const table = tableOf(fqdn);
      const select = `SELECT ${COLUMNS}, b.bytes FROM ${table} v
        LEFT JOIN blobs b ON b.integrity = v.code`;
      const isNewest = version === undefined || version === "latest";
      const row = isNewest
        ? this.#get(`${select} JOIN newest n USING (fqdn, version) WHERE n.fqdn = ?`, [fqdn])
        : this.#get(`${select} WHERE v.fqdn = ? AND v.version = ?`, [fqdn, version]) ??
          this.#get(`${select} JOIN tags t USING (fqdn, version) WHERE t.fqdn = ? AND t.tag = ?`, [
            fqdn,
            version,
          ]);
      return row && entryOf(row as unknown as Row); // the columns of the query
    });

  /** Returns the newest entries that fit. */
  readonly page = ({ after, words, limit }: CatalogQuery): Promise<readonly StoredEntry[]> =>
    this.#now(() => {
      const indexed = words.filter((word) => [...word].length >= INDEXED);
      const short = words.filter((word) => !indexed.includes(word));
      const conditions = [
        "n.fqdn > ?",
        ...indexed.length === 0 ? [] : ["n.id IN (SELECT rowid FROM found WHERE found MATCH ?)"],
        ...short.map(() => "instr(n.words, ?) > 0"),
      ].join(" AND ");
      const match = indexed.map((word) => `"${word.replaceAll('"', '""')}"`).join(" AND ");
      const values = [after, ...indexed.length === 0 ? [] : [match], ...short];
      const part = (table: Table) =>
        `SELECT ${COLUMNS} ${LEFT} ${table} v USING (fqdn, version) WHERE ${conditions}
         ORDER BY n.fqdn LIMIT ?`;
      const rows = this.#all(
        `SELECT * FROM (${part("servers")})
         UNION ALL SELECT * FROM (${part("capabilities")}) ORDER BY fqdn LIMIT ?`,
        [...values, limit + 1, ...values, limit + 1, limit + 1],
      );
      return rows.map((row) => entryOf(row as unknown as Row)); // the columns of the query
    });

  /** Adds versions in one transaction. */
  add(entries: readonly Offered[]): Promise<readonly Added[]> {
    return this.#now(() =>
      this.#together(() => {
        const added = entries.map((entry) => this.#addOne(entry));
        for (const fqdn of new Set(entries.map(({ fqdn }) => fqdn))) this.#chooseNewest(fqdn);
        return added;
      })
    );
  }

  /** Sets the tags of a name. */
  tag(fqdn: string, tags: Tags): Promise<void> {
    return this.#now(() =>
      this.#together(() => {
        this.#run("DELETE FROM tags WHERE fqdn = ?", [fqdn]);
        for (const [tag, version] of Object.entries(tags)) {
          this.#run("INSERT INTO tags (fqdn, tag, version) VALUES (?, ?, ?)", [fqdn, tag, version]);
        }
        this.#chooseNewest(fqdn);
      })
    );
  }

  /** Returns the versions of a name, the newest first. */
  versions(fqdn: string): Promise<readonly string[]> {
    return this.#now(() => this.#versions(fqdn));
  }

  /** Returns when each version of a name was added. */
  dates(fqdn: string): Promise<ReadonlyMap<string, Date>> {
    return this.#now(() => {
      const rows = this.#all(`SELECT version, created FROM ${tableOf(fqdn)} WHERE fqdn = ?`, [
        fqdn,
      ]);
      return new Map(rows.map(({ version, created }) => [
        String(version),
        new Date(String(created)),
      ]));
    });
  }

  /** Returns the newest entries that were added last. Rows lie in the order of their adding. */
  latest(limit: number): Promise<readonly StoredEntry[]> {
    return this.#now(() => {
      const part = (table: Table) =>
        `SELECT ${COLUMNS} FROM ${table} v JOIN newest n USING (fqdn, version)
         ORDER BY v.rowid DESC LIMIT ?`;
      const rows = this.#all(
        `SELECT * FROM (${part("servers")}) UNION ALL SELECT * FROM (${part("capabilities")})
         ORDER BY created DESC, fqdn LIMIT ?`,
        [limit, limit, limit],
      );
      return rows.map((row) => entryOf(row as unknown as Row)); // the columns of the query
    });
  }

  /** Returns the names whose newest version runs in the cloud. */
  cloudNames(limit: number): Promise<readonly string[]> {
    return this.#now(() =>
      this.#all(
        `SELECT n.fqdn AS fqdn ${LEFT} servers v USING (fqdn, version)
         WHERE v.routing = 'cloud' ORDER BY n.fqdn LIMIT ?`,
        [limit],
      ).map(({ fqdn }) => String(fqdn))
    );
  }

  /** Returns the rows of a name in the view. */
  rows(fqdn: string): Promise<readonly RegistryRow[]> {
    return this.#now(() => {
      const rows = this.#all("SELECT * FROM pml_registry WHERE fqdn = ?", [fqdn]);
      const all = rows.map((row) => ({ ...row }) as unknown as RegistryRow); // the view's columns
      return all.sort((a, b) => compareVersions(b.version, a.version));
    });
  }

  /** Returns the number of names. */
  size(): Promise<number> {
    return this.#now(() => Number(this.#get("SELECT count(*) AS size FROM newest", [])?.size));
  }

  /** Writes all of it into a new file, as it is at one moment. */
  copyTo(file: string): Promise<void> {
    return this.#now(() => void this.#run("VACUUM INTO ?", [file]));
  }

  /** Closes the file. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#now(() => {
      this.#statements.clear();
      this.#db.close();
    });
  }

  #addOne({ fqdn, version, manifest, code }: Offered): Added {
    const table = tableOf(fqdn);
    const text = JSON.stringify(manifest);
    const integrity = code === undefined ? null : integrityOf(code);
    const known = this.#get(
      `SELECT manifest, code FROM ${table} WHERE fqdn = ? AND version = ?`,
      [fqdn, version],
    );
    if (known !== undefined) {
      return known.manifest === text && known.code === integrity ? "same" : "refused";
    }
    if (code !== undefined) {
      this.#run("INSERT OR IGNORE INTO blobs (integrity, bytes) VALUES (?, ?)", [integrity, code]);
    }
    this.#run(
      `INSERT INTO ${table} (fqdn, version, type, routing, manifest, code, created)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
      [
        ...[fqdn, version, textOf(manifest.type), textOf(manifest.routing), text, integrity],
        new Date().toISOString(),
      ],
    );
    return "added";
  }

  #chooseNewest(fqdn: string): void {
    const versions = this.#versions(fqdn).map((version) => ({ version }));
    const rows = this.#all("SELECT tag, version FROM tags WHERE fqdn = ?", [fqdn]);
    const tags = Object.fromEntries(rows.map(({ tag, version }) => [tag, String(version)]));
    const newest = chosen({ entries: versions, tags }, undefined);
    if (newest === undefined) return;
    const { version } = newest;
    const row = this.#get(
      `SELECT manifest FROM ${tableOf(fqdn)} WHERE fqdn = ? AND version = ?`,
      [fqdn, version],
    );
    const words = searchText({ fqdn, manifest: JSON.parse(String(row?.manifest)) });
    this.#run(
      `INSERT INTO newest (fqdn, version, words) VALUES (?, ?, ?)
       ON CONFLICT (fqdn) DO UPDATE SET version = excluded.version, words = excluded.words`,
      [fqdn, version, words],
    );
  }

  #versions(fqdn: string): readonly string[] {
    return this.#all(`SELECT version FROM ${tableOf(fqdn)} WHERE fqdn = ?`, [fqdn])
      .map(({ version }) => String(version)).sort((a, b) => compareVersions(b, a));
  }

  /** Does all of the work or nothing. */
  #together<T>(work: () => T): T {
    this.#db.exec("BEGIN IMMEDIATE");
    try {
      const made = work();
      this.#db.exec("COMMIT");
      return made;
    } catch (error) {
      this.#db.exec("ROLLBACK");
      throw error;
    }
  }

  /** The database answers at once, and a database server will not. */
  #now<T>(work: () => T): Promise<T> {
    return Promise.try(work);
  }

  #get(sql: string, values: readonly SqlValue[]) {
    return this.#prepared(sql).get(...values);
  }

  #all(sql: string, values: readonly SqlValue[]) {
    return this.#prepared(sql).all(...values);
  }

  #run(sql: string, values: readonly SqlValue[]) {
    return this.#prepared(sql).run(...values);
  }

  #prepared(sql: string): StatementSync {
    const statement = this.#statements.get(sql) ?? this.#db.prepare(sql);
    // Each number of short words makes a text of its own.
    if (this.#statements.size < 100) this.#statements.set(sql, statement);
    return statement;
  }
}

type SqlValue = string | number | null | Uint8Array;

function tableOf(fqdn: string): Table {
  return fqdn.includes(":") ? "capabilities" : "servers";
}

function entryOf({ fqdn, version, manifest, bytes, created }: Row): StoredEntry {
  return {
    fqdn,
    version,
    manifest: JSON.parse(manifest) as JsonObject, // it was one when it was added
    immutable: true,
    created: new Date(created),
    ...bytes && { code: bytes },
  };
}

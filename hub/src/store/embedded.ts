/**
 * The default store: one SQLite file, which several processes may use at once.
 *
 * @module
 */

import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import {
  type CatalogQuery,
  compareVersions,
  type JsonObject,
  parseExact,
} from "@casys/pml/registry";
import { openDatabase } from "./_database.ts";
import { claimForOperator, EmbeddedAdmin } from "./_embedded_admin.ts";
import { Sql } from "./_sql.ts";
import { Stamp } from "./_stamp.ts";
import { addVersion, chooseNewest, type Table, tableOf, versionsOf } from "./_versions.ts";
import { relatedOf, relatedQuery } from "./follows.ts";
import type {
  AddResult,
  HubStore,
  OfferedVersion,
  RegistryRow,
  Related,
  StoreAdmin,
  StoredEntry,
} from "./store.ts";

/** The name of the database file in the folder of a hub. */
export const DATABASE = "hub.db";

type Tags = Readonly<Record<string, string>>;

/** A row of `servers` or `capabilities`, with the code if the version has code. */
interface Row {
  readonly fqdn: string;
  readonly version: string;
  readonly manifest: string;
  readonly bytes?: Uint8Array | null;
  readonly created: string;
  readonly owner: string | null;
  readonly yanked: string | null;
}

/**
 * How long the stamp of the file is cached, in milliseconds. To read the stamp takes a tenth of the
 * time of an answer.
 */
const STAMP_VALID_MS = 5;
const COLUMNS = "v.fqdn, v.version, v.manifest, v.created, v.owner, v.yanked";
const NEWEST_JOIN = "FROM newest n JOIN";
/** The minimum number of characters of an indexed word: the index has trigrams. */
const MIN_INDEXED_LENGTH = 3;

/** Opens the store in a folder. Creates the folder and the store if they do not exist. */
export async function openEmbedded(folder: string): Promise<EmbeddedStore> {
  await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, DATABASE);
  const db = openDatabase(file);
  // SQLite creates its other files with the mode of this one.
  if (Deno.build.os !== "windows") await Deno.chmod(file, 0o600);
  return new EmbeddedStore(db);
}

/** A store in an SQLite file. */
export class EmbeddedStore implements HubStore {
  /** Makes the changes of publishers and the operator. */
  readonly admin: StoreAdmin;
  readonly #sql: Sql;
  readonly #stamp: Stamp;

  /** Creates a store on a database whose tables are up to date. */
  constructor(db: DatabaseSync) {
    this.#sql = new Sql(db);
    this.#stamp = new Stamp(() => {
      const row = this.#sql.get(
        "SELECT data_version, total_changes() AS own FROM pragma_data_version",
        [],
      );
      return `${row?.data_version} ${row?.own}`;
    }, STAMP_VALID_MS);
    this.admin = new EmbeddedAdmin(this.#sql, this.#stamp);
  }

  /** Returns the entry of a version or a tag; without either, the newest entry. */
  readonly entry = (fqdn: string, version: string | undefined): Promise<StoredEntry | undefined> =>
    this.#promise(() => {
      const table = tableOf(fqdn);
      const select = `SELECT ${COLUMNS}, b.bytes FROM ${table} v
        LEFT JOIN blobs b ON b.integrity = v.code`;
      const isNewest = version === undefined || version === "latest";
      const row = isNewest
        ? this.#sql.get(`${select} JOIN newest n USING (fqdn, version) WHERE n.fqdn = ?`, [fqdn])
        : this.#sql.get(`${select} WHERE v.fqdn = ? AND v.version = ?`, [fqdn, version]) ??
          this.#sql.get(
            `${select} JOIN tags t USING (fqdn, version)
            WHERE t.fqdn = ? AND t.tag = ? AND v.yanked IS NULL`,
            [fqdn, version],
          );
      return row && entryOf(row as unknown as Row); // the query selects these columns
    });

  /** Returns the newest entry of each name that matches the query. */
  readonly page = ({ after, words, limit }: CatalogQuery): Promise<readonly StoredEntry[]> =>
    this.#promise(() => {
      const indexed = words.filter((word) => [...word].length >= MIN_INDEXED_LENGTH);
      const short = words.filter((word) => !indexed.includes(word));
      const conditions = [
        "n.fqdn > ?",
        ...indexed.length === 0 ? [] : ["n.id IN (SELECT rowid FROM found WHERE found MATCH ?)"],
        ...short.map(() => "instr(n.words, ?) > 0"),
      ].join(" AND ");
      const match = indexed.map((word) => `"${word.replaceAll('"', '""')}"`).join(" AND ");
      const values = [after, ...indexed.length === 0 ? [] : [match], ...short];
      const select = (table: Table) =>
        `SELECT ${COLUMNS} ${NEWEST_JOIN} ${table} v USING (fqdn, version) WHERE ${conditions}
         ORDER BY n.fqdn LIMIT ?`;
      const rows = this.#sql.all(
        `SELECT * FROM (${select("servers")})
         UNION ALL SELECT * FROM (${select("capabilities")}) ORDER BY fqdn LIMIT ?`,
        [...values, limit + 1, ...values, limit + 1, limit + 1],
      );
      return rows.map((row) => entryOf(row as unknown as Row)); // the query selects these columns
    });

  /** Returns a text that changes with each change by this or another process. */
  stamp(): string | Promise<string> {
    return this.#stamp.now();
  }

  /** Adds versions in one transaction. */
  add(entries: readonly OfferedVersion[]): Promise<readonly AddResult[]> {
    return this.#stamp.applyChange(() =>
      this.#sql.transaction(() => {
        const added = entries.map((entry) => addVersion(this.#sql, entry));
        for (const fqdn of new Set(entries.map(({ fqdn }) => fqdn))) {
          chooseNewest(this.#sql, fqdn);
          claimForOperator(this.#sql, fqdn);
        }
        return added;
      })
    );
  }

  /** Sets the tags of a name. */
  tag(fqdn: string, tags: Tags): Promise<void> {
    return this.#stamp.applyChange(() =>
      this.#sql.transaction(() => {
        this.#sql.run("DELETE FROM tags WHERE fqdn = ?", [fqdn]);
        for (const [tag, version] of Object.entries(tags)) {
          this.#sql.run("INSERT INTO tags (fqdn, tag, version) VALUES (?, ?, ?)", [
            fqdn,
            tag,
            version,
          ]);
        }
        chooseNewest(this.#sql, fqdn);
      })
    );
  }

  /** Returns the versions of a name, the newest first. */
  versions(fqdn: string): Promise<readonly string[]> {
    return this.#promise(() => versionsOf(this.#sql, fqdn));
  }

  /** Returns when each version of a name was added. */
  dates(fqdn: string): Promise<ReadonlyMap<string, Date>> {
    return this.#promise(() => {
      const rows = this.#sql.all(`SELECT version, created FROM ${tableOf(fqdn)} WHERE fqdn = ?`, [
        fqdn,
      ]);
      return new Map(rows.map(({ version, created }) => [
        String(version),
        new Date(String(created)),
      ]));
    });
  }

  /** Returns the newest entries that were added last. The row ids show the order of adding. */
  latest(limit: number): Promise<readonly StoredEntry[]> {
    return this.#promise(() => {
      const select = (table: Table) =>
        `SELECT ${COLUMNS} FROM ${table} v JOIN newest n USING (fqdn, version)
         ORDER BY v.rowid DESC LIMIT ?`;
      const rows = this.#sql.all(
        `SELECT * FROM (${select("servers")}) UNION ALL SELECT * FROM (${select("capabilities")})
         ORDER BY created DESC, fqdn LIMIT ?`,
        [limit, limit, limit],
      );
      return rows.map((row) => entryOf(row as unknown as Row)); // the query selects these columns
    });
  }

  /** Returns the names whose newest version runs in the cloud. */
  cloudNames(limit: number): Promise<readonly string[]> {
    return this.#promise(() =>
      this.#sql.all(
        `SELECT n.fqdn AS fqdn ${NEWEST_JOIN} servers v USING (fqdn, version)
         WHERE v.routing = 'cloud' ORDER BY n.fqdn LIMIT ?`,
        [limit],
      ).map(({ fqdn }) => String(fqdn))
    );
  }

  /** Returns the tools that capabilities call right after or before a tool. */
  related(tool: string, limit: number): Promise<readonly Related[]> {
    return this.#promise(() =>
      (["after", "before"] as const).flatMap((place) =>
        this.#sql.all(relatedQuery(place, ["?", "?"]), [tool, limit])
          .map((row) => relatedOf(place, row))
      )
    );
  }

  /** Returns the rows of a name in the view `pml_registry`. */
  rows(fqdn: string): Promise<readonly RegistryRow[]> {
    return this.#promise(() => {
      const rows = this.#sql.all("SELECT * FROM pml_registry WHERE fqdn = ?", [fqdn]);
      const all = rows.map((row) => ({ ...row }) as unknown as RegistryRow); // the view's columns
      return all.sort((a, b) => compareVersions(b.version, a.version));
    });
  }

  /** Returns the number of names. */
  size(): Promise<number> {
    return this.#promise(() =>
      Number(this.#sql.get("SELECT count(*) AS size FROM newest", [])?.size)
    );
  }

  /** Writes a snapshot of the database to a new file. */
  copyTo(file: string): Promise<void> {
    return this.#promise(() => void this.#sql.run("VACUUM INTO ?", [file]));
  }

  /** Closes the file. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#promise(() => this.#sql.close());
  }

  /** Returns the result of synchronous work as a promise, as `HubStore` requires. */
  #promise<T>(work: () => T): Promise<T> {
    return Promise.try(work);
  }
}

function entryOf({ fqdn, version, manifest, bytes, created, owner, yanked }: Row): StoredEntry {
  return {
    fqdn,
    version,
    manifest: parseExact(manifest) as JsonObject, // the entry was checked when it was added
    immutable: true,
    created: new Date(created),
    ...bytes && { code: bytes },
    ...owner !== null && { owner },
    ...yanked !== null && { yanked },
  };
}

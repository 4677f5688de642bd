/**
 * The store that needs no set-up: one file of SQLite. Several processes may use it at once.
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
import { claimForOperator, EmbeddedDesk } from "./_desk.ts";
import { Sql } from "./_sql.ts";
import { Stamp } from "./_stamp.ts";
import { addVersion, chooseNewest, type Table, tableOf, versionsOf } from "./_versions.ts";
import { relatedOf, relatedQuery } from "./follows.ts";
import type { Added, Desk, HubStore, Offered, RegistryRow, Related, StoredEntry } from "./store.ts";

/** The name of the file in the folder of a hub. */
export const DATABASE = "hub.db";

type Tags = Readonly<Record<string, string>>;

/** A row of `servers` or `capabilities`, with the code if it has some. */
interface Row {
  readonly fqdn: string;
  readonly version: string;
  readonly manifest: string;
  readonly bytes?: Uint8Array | null;
  readonly created: string;
  readonly owner: string | null;
  readonly yanked: string | null;
}

/** How long the file is believed to be as it was. A look takes as long as a tenth of an answer. */
const HELD_MS = 5;
const COLUMNS = "v.fqdn, v.version, v.manifest, v.created, v.owner, v.yanked";
const LEFT = "FROM newest n JOIN";
/** The minimum length of a word in the index. */
const INDEXED = 3;

/** Opens the store of a folder, which is made if it is not there. */
export async function openEmbedded(folder: string): Promise<EmbeddedStore> {
  await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, DATABASE);
  const db = openDatabase(file);
  // SQLite creates its other files with the mode of this one.
  if (Deno.build.os !== "windows") await Deno.chmod(file, 0o600);
  return new EmbeddedStore(db);
}

/** A store in a file. */
export class EmbeddedStore implements HubStore {
  /** Makes the changes of publishers and the operator. */
  readonly desk: Desk;
  readonly #sql: Sql;
  readonly #stamp: Stamp;

  /** Takes a database whose tables are up to date. */
  constructor(db: DatabaseSync) {
    this.#sql = new Sql(db);
    this.#stamp = new Stamp(() => {
      const row = this.#sql.get(
        "SELECT data_version, total_changes() AS own FROM pragma_data_version",
        [],
      );
      return `${row?.data_version} ${row?.own}`;
    }, HELD_MS);
    this.desk = new EmbeddedDesk(this.#sql, this.#stamp);
  }

  /** Returns the entry of a version or a tag; without one, the newest. */
  readonly entry = (fqdn: string, version: string | undefined): Promise<StoredEntry | undefined> =>
    this.#now(() => {
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
      const rows = this.#sql.all(
        `SELECT * FROM (${part("servers")})
         UNION ALL SELECT * FROM (${part("capabilities")}) ORDER BY fqdn LIMIT ?`,
        [...values, limit + 1, ...values, limit + 1, limit + 1],
      );
      return rows.map((row) => entryOf(row as unknown as Row)); // the query selects these columns
    });

  /** Returns a text that changes with each change, of this process or of others. */
  stamp(): string | Promise<string> {
    return this.#stamp.now();
  }

  /** Adds versions in one transaction. */
  add(entries: readonly Offered[]): Promise<readonly Added[]> {
    return this.#stamp.settled(() =>
      this.#sql.together(() => {
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
    return this.#stamp.settled(() =>
      this.#sql.together(() => {
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
    return this.#now(() => versionsOf(this.#sql, fqdn));
  }

  /** Returns when each version of a name was added. */
  dates(fqdn: string): Promise<ReadonlyMap<string, Date>> {
    return this.#now(() => {
      const rows = this.#sql.all(`SELECT version, created FROM ${tableOf(fqdn)} WHERE fqdn = ?`, [
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
      const rows = this.#sql.all(
        `SELECT * FROM (${part("servers")}) UNION ALL SELECT * FROM (${part("capabilities")})
         ORDER BY created DESC, fqdn LIMIT ?`,
        [limit, limit, limit],
      );
      return rows.map((row) => entryOf(row as unknown as Row)); // the query selects these columns
    });
  }

  /** Returns the names whose newest version runs in the cloud. */
  cloudNames(limit: number): Promise<readonly string[]> {
    return this.#now(() =>
      this.#sql.all(
        `SELECT n.fqdn AS fqdn ${LEFT} servers v USING (fqdn, version)
         WHERE v.routing = 'cloud' ORDER BY n.fqdn LIMIT ?`,
        [limit],
      ).map(({ fqdn }) => String(fqdn))
    );
  }

  /** Returns the tools that capabilities call right after or before a tool. */
  related(tool: string, limit: number): Promise<readonly Related[]> {
    return this.#now(() =>
      (["after", "before"] as const).flatMap((place) =>
        this.#sql.all(relatedQuery(place, ["?", "?"]), [tool, limit])
          .map((row) => relatedOf(place, row))
      )
    );
  }

  /** Returns the rows of a name in the view. */
  rows(fqdn: string): Promise<readonly RegistryRow[]> {
    return this.#now(() => {
      const rows = this.#sql.all("SELECT * FROM pml_registry WHERE fqdn = ?", [fqdn]);
      const all = rows.map((row) => ({ ...row }) as unknown as RegistryRow); // the view's columns
      return all.sort((a, b) => compareVersions(b.version, a.version));
    });
  }

  /** Returns the number of names. */
  size(): Promise<number> {
    return this.#now(() => Number(this.#sql.get("SELECT count(*) AS size FROM newest", [])?.size));
  }

  /** Writes all of it into a new file, as it is at one moment. */
  copyTo(file: string): Promise<void> {
    return this.#now(() => void this.#sql.run("VACUUM INTO ?", [file]));
  }

  /** Closes the file. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#now(() => this.#sql.close());
  }

  /** The database answers at once, and a database server will not. */
  #now<T>(work: () => T): Promise<T> {
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

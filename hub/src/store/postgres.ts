/**
 * The store on a PostgreSQL server, which several hubs may use at once.
 *
 * @module
 */

import type { DatabaseSync } from "node:sqlite";
import {
  type CatalogQuery,
  compareVersions,
  type JsonObject,
  parseExact,
  PmlError,
  quoted,
} from "@casys/pml/registry";
import { copyFromPg, copyToPg } from "./_pg_copy.ts";
import { Pg, type PgRow, type Queries } from "./_pg.ts";
import { PostgresAdmin } from "./_pg_admin.ts";
import { migratePg, PG_MIGRATIONS } from "./_pg_migrations.ts";
import { claimForOperator } from "./_pg_namespaces.ts";
import { parsePgUrl } from "./_pg_url.ts";
import { addVersion, chooseNewest, versionsOf } from "./_pg_versions.ts";
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
import { Stamp } from "./_stamp.ts";
import { tableOf } from "./_versions.ts";

/** How long the stamp of the server is cached, in milliseconds. */
const STAMP_VALID_MS = 50;
const COLUMNS = "v.fqdn, v.version, v.manifest, v.created, v.owner, v.yanked";

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

/** Opens the store at a URL. Creates or updates its tables. */
export async function openPostgres(url: string, steps = PG_MIGRATIONS): Promise<PostgresStore> {
  const place = parsePgUrl(url);
  const pg = new Pg(place);
  try {
    await migratePg(pg, { label: place.label, steps });
    return new PostgresStore(pg);
  } catch (error) {
    await pg.close();
    if (error instanceof PmlError) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new PmlError("CONFIG_INVALID", `Cannot open ${quoted(place.label, 300)}: ${why}`, {
      hint:
        "Check DATABASE_URL, and that its user may create a schema. If the server has no TLS and the " +
        "network to it is private, add ?sslmode=disable",
      cause: error,
    });
  }
}

/** A store on a PostgreSQL server. */
export class PostgresStore implements HubStore {
  /** Makes the changes of publishers and the operator. */
  readonly admin: StoreAdmin;
  readonly #pg: Pg;
  readonly #stamp: Stamp;

  /** Creates a store on a server whose tables are up to date. */
  constructor(pg: Pg) {
    this.#pg = pg;
    this.#stamp = new Stamp(async () => {
      const row = await pg.get("SELECT stamp::text AS stamp FROM changed");
      if (row === undefined) throw new Error('the table "changed" is empty');
      return String(row.stamp);
    }, STAMP_VALID_MS);
    this.admin = new PostgresAdmin(pg, this.#stamp);
  }

  /** Returns the entry of a version or a tag; without either, the newest entry. */
  readonly entry = async (
    fqdn: string,
    version: string | undefined,
  ): Promise<StoredEntry | undefined> => {
    const select = `SELECT ${COLUMNS}, b.bytes FROM ${tableOf(fqdn)} v
      LEFT JOIN blobs b ON b.integrity = v.code`;
    const isNewest = version === undefined || version === "latest";
    const row = isNewest
      ? await this.#pg.get(`${select} JOIN newest n USING (fqdn, version) WHERE n.fqdn = $1`, [
        fqdn,
      ])
      : await this.#pg.get(`${select} WHERE v.fqdn = $1 AND v.version = $2`, [fqdn, version]) ??
        await this.#pg.get(
          `${select} JOIN tags t USING (fqdn, version)
           WHERE t.fqdn = $1 AND t.tag = $2 AND v.yanked IS NULL`,
          [fqdn, version],
        );
    return row && entryOf(row);
  };

  /** Returns the newest entry of each name that matches the query. */
  readonly page = async (
    { after, words, limit }: CatalogQuery,
  ): Promise<readonly StoredEntry[]> => {
    const conditions = words.map((_, index) => `AND words LIKE $${index + 3}`).join(" ");
    const rows = await this.#pg.all(
      `SELECT v.* FROM (
         SELECT fqdn, version FROM newest WHERE fqdn > $1 ${conditions} ORDER BY fqdn LIMIT $2
       ) n JOIN LATERAL (
         SELECT ${COLUMNS} FROM servers v WHERE v.fqdn = n.fqdn AND v.version = n.version
         UNION ALL
         SELECT ${COLUMNS} FROM capabilities v WHERE v.fqdn = n.fqdn AND v.version = n.version
       ) v ON true ORDER BY n.fqdn`,
      [after, limit + 1, ...words.map(patternOf)],
    );
    return rows.map(entryOf);
  };

  /** Returns a text that changes with each change. Reads it from the server at intervals. */
  stamp(): string | Promise<string> {
    return this.#stamp.now();
  }

  /** Adds versions in one transaction. */
  add(entries: readonly OfferedVersion[]): Promise<readonly AddResult[]> {
    return this.#change(async (sql) => {
      const added: AddResult[] = [];
      for (const entry of entries) added.push(await addVersion(sql, entry));
      for (const fqdn of new Set(entries.map(({ fqdn }) => fqdn))) {
        await chooseNewest(sql, fqdn);
        await claimForOperator(sql, fqdn);
      }
      return added;
    });
  }

  /** Sets the tags of a name. */
  tag(fqdn: string, tags: Readonly<Record<string, string>>): Promise<void> {
    return this.#change(async (sql) => {
      await sql.run("DELETE FROM tags WHERE fqdn = $1", [fqdn]);
      for (const [tag, version] of Object.entries(tags)) {
        await sql.run("INSERT INTO tags (fqdn, tag, version) VALUES ($1, $2, $3)", [
          ...[fqdn, tag, version],
        ]);
      }
      await chooseNewest(sql, fqdn);
    });
  }

  /** Returns the versions of a name, the newest first. */
  versions(fqdn: string): Promise<readonly string[]> {
    return versionsOf(this.#pg, fqdn);
  }

  /** Returns when each version of a name was added. */
  async dates(fqdn: string): Promise<ReadonlyMap<string, Date>> {
    const rows = await this.#pg.all(
      `SELECT version, created FROM ${tableOf(fqdn)} WHERE fqdn = $1`,
      [fqdn],
    );
    return new Map(rows.map(({ version, created }) => [
      String(version),
      new Date(String(created)),
    ]));
  }

  /** Returns the newest entries that were added last. */
  async latest(limit: number): Promise<readonly StoredEntry[]> {
    const select = (table: string) =>
      `SELECT * FROM (SELECT ${COLUMNS} FROM ${table} v JOIN newest n USING (fqdn, version)
       ORDER BY v.created DESC LIMIT $1) ${table}`;
    const rows = await this.#pg.all(
      `${select("servers")} UNION ALL ${
        select("capabilities")
      } ORDER BY created DESC, fqdn LIMIT $1`,
      [limit],
    );
    return rows.map(entryOf);
  }

  /** Returns the names whose newest version runs in the cloud. */
  async cloudNames(limit: number): Promise<readonly string[]> {
    const rows = await this.#pg.all(
      `SELECT n.fqdn FROM newest n JOIN servers v USING (fqdn, version)
       WHERE v.routing = 'cloud' ORDER BY n.fqdn LIMIT $1`,
      [limit],
    );
    return rows.map(({ fqdn }) => String(fqdn));
  }

  /** Returns the tools that capabilities call right after or before a tool. */
  async related(tool: string, limit: number): Promise<readonly Related[]> {
    const related = await Promise.all((["after", "before"] as const).map(async (place) => {
      const rows = await this.#pg.all(relatedQuery(place, ["$1", "$2"]), [tool, limit]);
      return rows.map((row) => relatedOf(place, row));
    }));
    return related.flat();
  }

  /** Returns the rows of a name in the view `pml_registry`. */
  async rows(fqdn: string): Promise<readonly RegistryRow[]> {
    const rows = await this.#pg.all("SELECT * FROM pml_registry WHERE fqdn = $1", [fqdn]);
    const all = rows.map((row) => ({ ...row }) as unknown as RegistryRow); // the view's columns
    return all.sort((a, b) => compareVersions(b.version, a.version));
  }

  /** Returns the number of names. */
  async size(): Promise<number> {
    return Number((await this.#pg.get("SELECT count(*) AS size FROM newest"))?.size);
  }

  /** Writes a snapshot of the store to a new file. Hubs may use the store at the same time. */
  async copyTo(file: string): Promise<void> {
    await copyFromPg(this.#pg, file);
  }

  /** Copies a backup to this store. Throws `USAGE` if the store is not empty. */
  async copyFrom(db: DatabaseSync): Promise<void> {
    await this.#stamp.applyChange(() => copyToPg(this.#pg, db));
  }

  #change<T>(work: (sql: Queries) => Promise<T>): Promise<T> {
    return this.#stamp.applyChange(() => this.#pg.transaction(work));
  }

  /** Closes the connections. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#pg.close();
  }
}

/** Returns the LIKE pattern of all texts that contain a word. */
function patternOf(word: string): string {
  return `%${word.replace(/[\\%_]/g, "\\$&")}%`;
}

function entryOf(row: PgRow): StoredEntry {
  // Every query for entries selects these columns.
  const { fqdn, version, manifest, bytes, created, owner, yanked } = row as unknown as Row;
  return {
    fqdn,
    version,
    manifest: parseExact(manifest) as JsonObject, // the entry was checked when it was added
    immutable: true,
    created: new Date(created),
    ...bytes && { code: new Uint8Array(bytes) },
    ...owner !== null && { owner },
    ...yanked !== null && { yanked },
  };
}

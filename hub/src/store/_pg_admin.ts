/**
 * Makes the changes of publishers and the operator in the store on PostgreSQL. Each change is one
 * transaction.
 *
 * @module
 */

import { integrityOf, type JsonObject, parseExact } from "@casys/pml/registry";
import { namespaceOf } from "./namespace.ts";
import type { Pg, PgRow, Queries } from "./_pg.ts";
import { claim, namespaceRefusal, ownerOfName, removeUnused } from "./_pg_namespaces.ts";
import { addVersion, chooseNewest, keepCode, tagsOf, versionsOf } from "./_pg_versions.ts";
import type {
  Change,
  DecideResult,
  KeyRecord,
  NamespaceRecord,
  NewKey,
  OfferedVersion,
  Publication,
  PublishResult,
  Refusal,
  StoreAdmin,
  WaitingEntry,
} from "./store.ts";
import type { Stamp } from "./_stamp.ts";
import { keyRecordOf, type KeyRow, KEYS } from "./_key_rows.ts";
import { republishResult } from "./_republish.ts";
import { secondsToWait, takeTurnSql, type TurnsLeft } from "./_turns.ts";
import { tableOf } from "./_versions.ts";

const NO_KEY = { why: "key" } as const;
const NOW = "extract(epoch FROM clock_timestamp())::double precision";
const TAKE_TURN = takeTurnSql({
  values: ["$1", "$2::double precision", NOW],
  least: "least",
  greatest: "greatest",
});
const MISSING = { why: "missing" } as const;

/** A publication, with its organisation. */
interface OwnedPublication extends Publication {
  readonly owner: string;
}

/** A row of `waiting`, with the code if the version has code. */
interface WaitingRow {
  readonly fqdn: string;
  readonly version: string;
  readonly manifest: string;
  readonly hash: string;
  readonly bytes: Uint8Array | null;
  readonly created: string;
  readonly owner: string;
}

/** Makes the changes in a store on PostgreSQL. */
export class PostgresAdmin implements StoreAdmin {
  readonly #pg: Pg;
  readonly #stamp: Stamp;

  /** Creates an instance for a server whose tables are up to date. `stamp` reports changes to readers. */
  constructor(pg: Pg, stamp: Stamp) {
    this.#pg = pg;
    this.#stamp = stamp;
  }

  /** Publishes a version, or stores it until the operator accepts or rejects it. */
  publish(publication: Publication): Promise<PublishResult> {
    return this.#changePublic(async (sql) => {
      const owner = await keyOwner(sql, publication.keyHash);
      return owner === undefined ? NO_KEY : await publish(sql, { ...publication, owner });
    });
  }

  /** Hides a version with a reason, or shows it again. */
  yank(
    { version, ...change }: Change & { readonly version: string },
    reason: string | undefined,
  ): Promise<Refusal | undefined> {
    return this.#changeOwned(change, async (sql) => {
      const { fqdn } = change;
      const count = await sql.run(
        `UPDATE ${tableOf(fqdn)} SET yanked = $1 WHERE fqdn = $2 AND version = $3`,
        [reason ?? null, fqdn, version],
      );
      return count === 0 ? MISSING : undefined;
    });
  }

  /** Sets a tag of a name, or removes it. */
  setTag(
    { tag, ...change }: Change & { readonly tag: string },
    version: string | undefined,
  ): Promise<Refusal | undefined> {
    return this.#changeOwned(change, async (sql) => {
      const { fqdn } = change;
      if (version === undefined) {
        const count = await sql.run("DELETE FROM tags WHERE fqdn = $1 AND tag = $2", [fqdn, tag]);
        return count === 0 ? MISSING : undefined;
      }
      if (!(await versionsOf(sql, fqdn)).includes(version)) return MISSING;
      await sql.run(
        `INSERT INTO tags (fqdn, tag, version) VALUES ($1, $2, $3)
         ON CONFLICT (fqdn, tag) DO UPDATE SET version = excluded.version`,
        [fqdn, tag, version],
      );
      return undefined;
    });
  }

  /**
   * Changes the versions or tags of a name if the organisation of the key owns the name, and then
   * chooses its newest version again. Without a key, the operator makes the change.
   */
  #changeOwned(
    { fqdn, keyHash }: Change,
    work: (sql: Queries) => Promise<Refusal | undefined>,
  ): Promise<Refusal | undefined> {
    return this.#changePublic(async (sql) => {
      if (keyHash !== undefined) {
        const owner = await keyOwner(sql, keyHash);
        if (owner === undefined) return NO_KEY;
        const holder = await ownerOfName(sql, fqdn);
        if (holder === undefined) return MISSING;
        if (holder.owner !== owner) return { why: "foreign", namespace: holder.namespace };
      }
      const refusal = await work(sql);
      if (refusal === undefined) await chooseNewest(sql, fqdn);
      return refusal;
    });
  }

  /** Returns the tags of a name. */
  tagsOf(fqdn: string): Promise<Readonly<Record<string, string>>> {
    return tagsOf(this.#pg, fqdn);
  }

  /** Stores the hash of a new key. */
  addKey({ id, owner, hash, kind }: NewKey): Promise<void> {
    const values = [id, owner, hash, new Date().toISOString(), kind];
    return this.#pg.transaction(async (sql) => {
      await sql.run(
        "INSERT INTO keys (id, owner, hash, created, kind) VALUES ($1, $2, $3, $4, $5)",
        values,
      );
      await sql.run(
        `INSERT INTO key_records (id, what, owner, hash, at, kind)
         VALUES ($1, 'issued', $2, $3, $4, $5)`,
        values,
      );
    });
  }

  /** Returns whether there is a client's key with this hash that is not revoked. */
  async isClientKey(hash: string): Promise<boolean> {
    return await this.#pg.get(
      "SELECT 1 AS valid FROM keys WHERE hash = $1 AND kind = 'client' AND revoked IS NULL",
      [hash],
    ) !== undefined;
  }

  /**
   * Counts a change of a key. Returns the refusal if the key has made its changes of this minute. Uses
   * the clock of PostgreSQL, because the clocks of several hubs differ.
   */
  async takeTurn(keyHash: string, perMinute: number): Promise<Refusal | undefined> {
    const values = [keyHash, perMinute] as const;
    if (await this.#pg.get(TAKE_TURN, values) !== undefined) return undefined;
    const row = await this.#pg.get(
      `SELECT t.turns, t.at, ${NOW} AS now FROM keys JOIN turns t USING (hash)
       WHERE hash = $1 AND kind = 'publisher' AND revoked IS NULL`,
      [keyHash],
    );
    if (row === undefined) return NO_KEY;
    const { turns, at, now } = row as unknown as TurnsLeft & { now: number }; // the query selects them
    return { why: "rate", seconds: secondsToWait({ turns, at }, { most: perMinute, now }) };
  }

  /** Returns all keys, the oldest first. */
  async keys(): Promise<readonly KeyRecord[]> {
    const rows = await this.#pg.all(`${KEYS} ORDER BY created, id`);
    return rows.map((row) => keyRecordOf(row as unknown as KeyRow)); // `KEYS` selects these columns
  }

  /** Revokes a key. */
  revokeKey(id: string): Promise<boolean> {
    const now = new Date().toISOString();
    return this.#pg.transaction(async (sql) => {
      const change = "UPDATE keys SET revoked = coalesce(revoked, $1) WHERE id = $2";
      if (await sql.run(change, [now, id]) === 0) return false;
      await sql.run(
        `INSERT INTO key_records (id, what, owner, hash, at, kind)
         SELECT id, 'revoked', owner, hash, revoked, kind FROM keys WHERE id = $1
         ON CONFLICT DO NOTHING`,
        [id],
      );
      return true;
    });
  }

  /** Assigns a namespace to an organisation, or to the operator. */
  give({ namespace, owner }: NamespaceRecord): Promise<void> {
    return this.#pg.transaction((sql) => claim(sql, { namespace, owner, isGiven: true }));
  }

  /** Returns all namespaces, ordered by name. */
  async namespaces(): Promise<readonly NamespaceRecord[]> {
    const rows = await this.#pg.all("SELECT namespace, owner FROM namespaces ORDER BY namespace");
    return rows.map(({ namespace, owner }) => {
      return { namespace: String(namespace), owner: String(owner) };
    });
  }

  /** Returns the waiting versions, the oldest first. */
  async waiting(limit: number): Promise<readonly WaitingEntry[]> {
    const rows = await this.#pg.all(`${WAITING} ORDER BY w.created, w.fqdn LIMIT $1`, [limit]);
    return rows.map(waitingOf);
  }

  /** Publishes a waiting version if it is accepted, or else removes it. */
  decide(
    { fqdn, version, hash }: {
      readonly fqdn: string;
      readonly version: string;
      readonly hash: string;
    },
    isAccepted: boolean,
  ): Promise<DecideResult> {
    return this.#changePublic(async (sql) => {
      const key = [fqdn, version];
      const row = await sql.get(`${WAITING} WHERE w.fqdn = $1 AND w.version = $2`, key);
      if (row === undefined) return "missing";
      const entry = waitingOf(row);
      if (entry.hash !== hash) return "other";
      const { owner } = entry;
      const holder = await ownerOfName(sql, fqdn);
      // The operator may have given the name to another organisation.
      if (isAccepted && await namespaceRefusal(sql, fqdn, { holder, owner })) return "foreign";
      if (isAccepted && await addVersion(sql, entry, owner) === "refused") return "exists";
      await sql.run("DELETE FROM waiting WHERE fqdn = $1 AND version = $2", key);
      if (isAccepted) await chooseNewest(sql, fqdn);
      else await removeUnused(sql, entry);
      return "done";
    });
  }

  /** Makes a change, and returns its result as soon as all hubs on this database use the new state. */
  #changePublic<T>(work: (sql: Queries) => Promise<T>): Promise<T> {
    return this.#stamp.applyChange(() => this.#pg.transaction(work));
  }
}

const WAITING = `SELECT w.fqdn, w.version, w.manifest, w.hash, b.bytes, w.created, w.owner
  FROM waiting w LEFT JOIN blobs b ON b.integrity = w.code`;

async function keyOwner(sql: Queries, keyHash: string): Promise<string | undefined> {
  const row = await sql.get(
    "SELECT owner FROM keys WHERE hash = $1 AND kind = 'publisher' AND revoked IS NULL",
    [keyHash],
  );
  return row && String(row.owner);
}

async function publish(sql: Queries, owned: OwnedPublication): Promise<PublishResult> {
  const { offered, owner, isModerated } = owned;
  const { fqdn } = offered;
  const holder = await ownerOfName(sql, fqdn);
  const refusal = await namespaceRefusal(sql, fqdn, { holder, owner }) ??
    await existingOrFullResult(sql, owned);
  if (refusal !== undefined) return refusal;
  if (holder === undefined) {
    await claim(sql, { namespace: namespaceOf(fqdn), owner, isGiven: false });
  }
  if (isModerated) {
    await keepWaiting(sql, offered, owner);
    return { state: "waiting", isNew: true };
  }
  await addVersion(sql, offered, owner);
  await chooseNewest(sql, fqdn);
  return { state: "public", isNew: true };
}

/** Returns the result if the version exists or would exceed a limit; undefined otherwise. */
async function existingOrFullResult(
  sql: Queries,
  { offered: { fqdn, version, manifest }, owner, shares, isModerated }: OwnedPublication,
): Promise<PublishResult | undefined> {
  const text = JSON.stringify(manifest);
  const table = tableOf(fqdn);
  for (const [state, stateTable] of [["public", table], ["waiting", "waiting"]] as const) {
    const row = await sql.get(
      `SELECT manifest FROM ${stateTable} WHERE fqdn = $1 AND version = $2`,
      [fqdn, version],
    );
    // Equal manifests have equal code: a manifest contains the hash of its code.
    if (row !== undefined) return republishResult(String(row.manifest), { text, state });
  }
  const count = async (from: string, values: readonly string[]) =>
    Number((await sql.get(`SELECT count(*) AS count FROM ${from}`, values))?.count);
  const full = (share: keyof typeof shares) => ({ why: "full", share }) as const;
  const versions = await count(`${table} WHERE fqdn = $1`, [fqdn]);
  if (versions >= shares.versions) return full("versions");
  if (isModerated && await count("waiting WHERE owner = $1", [owner]) >= shares.waiting) {
    return full("waiting");
  }
  const names = versions > 0 ? 0 : await count(
    `(SELECT fqdn FROM servers WHERE owner = $1 UNION SELECT fqdn FROM capabilities
     WHERE owner = $1) own`,
    [owner],
  );
  return names < shares.names ? undefined : full("names");
}

async function keepWaiting(sql: Queries, offered: OfferedVersion, owner: string): Promise<void> {
  const { fqdn, version, manifest } = offered;
  const text = JSON.stringify(manifest);
  const code = await keepCode(sql, offered);
  await sql.run(
    `INSERT INTO waiting (fqdn, version, manifest, hash, code, created, owner)
     VALUES ($1, $2, $3, $4, $5, $6, $7)`,
    [fqdn, version, text, hashOf(text), code, new Date().toISOString(), owner],
  );
}

function waitingOf(row: PgRow): WaitingEntry {
  // `WAITING` selects these columns.
  const { fqdn, version, manifest, hash, bytes, created, owner } = row as unknown as WaitingRow;
  return {
    fqdn,
    version,
    hash,
    owner,
    created: new Date(created),
    manifest: parseExact(manifest) as JsonObject, // the publication was checked
    ...bytes && { code: new Uint8Array(bytes) },
  };
}

function hashOf(text: string): string {
  return integrityOf(new TextEncoder().encode(text));
}

/**
 * Makes the changes of publishers and the operator in the embedded store. Each change is one
 * transaction.
 *
 * @module
 */

import { integrityOf, type JsonObject, parseExact } from "@casys/pml/registry";
import {
  domainOf,
  isTooWide,
  namespaceOf,
  namespacesOf,
  shapeOf,
  shapesLike,
} from "./namespace.ts";
import type { Sql } from "./_sql.ts";
import type { Stamp } from "./_stamp.ts";
import { keyRecordOf, type KeyRow, KEYS } from "./_key_rows.ts";
import { republishResult } from "./_republish.ts";
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
import { takeTurn } from "./_turns.ts";
import { addVersion, chooseNewest, keepCode, tableOf, tagsOf, versionsOf } from "./_versions.ts";

const NO_KEY = { why: "key" } as const;
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

/** Makes the changes in a store in a file. */
export class EmbeddedAdmin implements StoreAdmin {
  readonly #sql: Sql;
  readonly #stamp: Stamp;

  /** Creates an instance for a database. `stamp` reports changes to readers. */
  constructor(sql: Sql, stamp: Stamp) {
    this.#sql = sql;
    this.#stamp = stamp;
  }

  /** Publishes a version, or stores it until the operator accepts or rejects it. */
  publish(publication: Publication): Promise<PublishResult> {
    return this.#change(() => {
      const owner = this.#owner(publication.keyHash);
      return owner === undefined ? NO_KEY : this.#publish({ ...publication, owner });
    });
  }

  #publish(owned: OwnedPublication): PublishResult {
    const { offered, owner, isModerated } = owned;
    const { fqdn } = offered;
    const refusal = this.#namespaceRefusal(fqdn, owner) ?? this.#existingOrFullResult(owned);
    if (refusal !== undefined) return refusal;
    if (ownerOfName(this.#sql, fqdn) === undefined) {
      claim(this.#sql, { namespace: namespaceOf(fqdn), owner, isGiven: false });
    }
    if (isModerated) {
      this.#keepWaiting(offered, owner);
      return { state: "waiting", isNew: true };
    }
    addVersion(this.#sql, offered, owner);
    chooseNewest(this.#sql, fqdn);
    return { state: "public", isNew: true };
  }

  /** Returns why an organisation may not publish a name; undefined if it may. */
  #namespaceRefusal(fqdn: string, owner: string): Refusal | undefined {
    const holder = ownerOfName(this.#sql, fqdn);
    if (holder !== undefined) {
      return holder.owner === owner ? undefined : { why: "foreign", namespace: holder.namespace };
    }
    if (isTooWide(fqdn)) return { why: "too_wide" };
    const other = this.#sql.get(
      `SELECT namespace FROM namespaces
       WHERE shape IN (SELECT value FROM json_each(?)) AND owner <> ? LIMIT 1`,
      [JSON.stringify(shapesLike(fqdn)), owner],
    );
    return other && { why: "look_alike", namespace: String(other.namespace) };
  }

  /** Returns the result if the version exists or would exceed a limit; undefined otherwise. */
  #existingOrFullResult(
    { offered: { fqdn, version, manifest }, owner, shares, isModerated }: OwnedPublication,
  ) {
    const text = JSON.stringify(manifest);
    const table = tableOf(fqdn);
    for (const [state, stateTable] of [["public", table], ["waiting", "waiting"]] as const) {
      const row = this.#sql.get(
        `SELECT manifest FROM ${stateTable} WHERE fqdn = ? AND version = ?`,
        [fqdn, version],
      );
      // Equal manifests have equal code: a manifest contains the hash of its code.
      if (row !== undefined) return republishResult(String(row.manifest), { text, state });
    }
    const count = (from: string, values: readonly string[]) =>
      Number(this.#sql.get(`SELECT count(*) AS count FROM ${from}`, values)?.count);
    const full = (share: keyof typeof shares) => ({ why: "full", share }) as const;
    const versions = count(`${table} WHERE fqdn = ?`, [fqdn]);
    if (versions >= shares.versions) return full("versions");
    if (isModerated && count("waiting WHERE owner = ?", [owner]) >= shares.waiting) {
      return full("waiting");
    }
    const names = versions > 0 ? 0 : count(
      `(SELECT fqdn FROM servers WHERE owner = ? UNION SELECT fqdn FROM capabilities
       WHERE owner = ?)`,
      [owner, owner],
    );
    return names < shares.names ? undefined : full("names");
  }

  #keepWaiting(offered: OfferedVersion, owner: string): void {
    const { fqdn, version, manifest } = offered;
    const text = JSON.stringify(manifest);
    const code = keepCode(this.#sql, offered);
    this.#sql.run(
      `INSERT INTO waiting (fqdn, version, manifest, hash, code, created, owner)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
      [fqdn, version, text, hashOf(text), code, new Date().toISOString(), owner],
    );
  }

  /** Hides a version with a reason, or shows it again. */
  yank(
    { version, ...change }: Change & { readonly version: string },
    reason: string | undefined,
  ): Promise<Refusal | undefined> {
    return this.#changeOwned(change, () => {
      const { fqdn } = change;
      const count = this.#sql.run(
        `UPDATE ${tableOf(fqdn)} SET yanked = ? WHERE fqdn = ? AND version = ?`,
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
    return this.#changeOwned(change, () => {
      const { fqdn } = change;
      if (version === undefined) {
        const count = this.#sql.run("DELETE FROM tags WHERE fqdn = ? AND tag = ?", [fqdn, tag]);
        return count === 0 ? MISSING : undefined;
      }
      if (!versionsOf(this.#sql, fqdn).includes(version)) return MISSING;
      const insert = "INSERT OR REPLACE INTO tags (fqdn, tag, version) VALUES (?, ?, ?)";
      this.#sql.run(insert, [fqdn, tag, version]);
      return undefined;
    });
  }

  /**
   * Changes the versions or tags of a name if the organisation of the key owns the name, and then
   * chooses its newest version again. Without a key, the operator makes the change.
   */
  #changeOwned(
    { fqdn, keyHash }: Change,
    work: () => Refusal | undefined,
  ): Promise<Refusal | undefined> {
    return this.#change(() => {
      if (keyHash !== undefined) {
        const owner = this.#owner(keyHash);
        if (owner === undefined) return NO_KEY;
        const holder = ownerOfName(this.#sql, fqdn);
        if (holder === undefined) return MISSING;
        if (holder.owner !== owner) return { why: "foreign", namespace: holder.namespace };
      }
      const refusal = work();
      if (refusal === undefined) chooseNewest(this.#sql, fqdn);
      return refusal;
    });
  }

  /** Returns the tags of a name. */
  tagsOf(fqdn: string): Promise<Readonly<Record<string, string>>> {
    return Promise.try(() => tagsOf(this.#sql, fqdn));
  }

  /** Stores the hash of a new key. */
  addKey({ id, owner, hash, kind }: NewKey): Promise<void> {
    const now = new Date().toISOString();
    return this.#change(() => {
      const values = [id, owner, hash, now, kind];
      this.#sql.run(
        "INSERT INTO keys (id, owner, hash, created, kind) VALUES (?, ?, ?, ?, ?)",
        values,
      );
      this.#sql.run(
        `INSERT INTO key_records (id, what, owner, hash, at, kind)
         VALUES (?, 'issued', ?, ?, ?, ?)`,
        values,
      );
    });
  }

  /** Returns whether there is a client's key with this hash that is not revoked. */
  isClientKey(hash: string): Promise<boolean> {
    return Promise.try(() =>
      this.#sql.get(
        "SELECT 1 AS valid FROM keys WHERE hash = ? AND kind = 'client' AND revoked IS NULL",
        [hash],
      ) !== undefined
    );
  }

  /** Counts a change of a key. Returns the refusal if the key has made its changes of this minute. */
  takeTurn(keyHash: string, perMinute: number): Promise<Refusal | undefined> {
    return Promise.try(() => takeTurn(this.#sql, keyHash, perMinute));
  }

  #owner(keyHash: string): string | undefined {
    const row = this.#sql.get(
      "SELECT owner FROM keys WHERE hash = ? AND kind = 'publisher' AND revoked IS NULL",
      [keyHash],
    );
    return row && String(row.owner);
  }

  /** Returns all keys, the oldest first. */
  keys(): Promise<readonly KeyRecord[]> {
    return Promise.try(() =>
      this.#sql.all(`${KEYS} ORDER BY created, id`, [])
        .map((row) => keyRecordOf(row as unknown as KeyRow)) // `KEYS` selects these columns
    );
  }

  /** Revokes a key. */
  revokeKey(id: string): Promise<boolean> {
    const now = new Date().toISOString();
    return this.#change(() => {
      const sql = "UPDATE keys SET revoked = coalesce(revoked, ?) WHERE id = ?";
      if (this.#sql.run(sql, [now, id]) === 0) return false;
      this.#sql.run(REVOKED, [id]);
      return true;
    });
  }

  /** Assigns a namespace to an organisation, or to the operator. */
  give({ namespace, owner }: NamespaceRecord): Promise<void> {
    return this.#change(() => claim(this.#sql, { namespace, owner, isGiven: true }));
  }

  /** Returns all namespaces, ordered by name. */
  namespaces(): Promise<readonly NamespaceRecord[]> {
    return Promise.try(() =>
      this.#sql.all("SELECT namespace, owner FROM namespaces ORDER BY namespace", [])
        .map(({ namespace, owner }) => ({ namespace: String(namespace), owner: String(owner) }))
    );
  }

  /** Returns the waiting versions, the oldest first. */
  waiting(limit: number): Promise<readonly WaitingEntry[]> {
    return Promise.try(() =>
      this.#sql.all(`${WAITING} ORDER BY w.created, w.fqdn LIMIT ?`, [limit])
        .map((row) => waitingOf(row as unknown as WaitingRow)) // `WAITING` selects these columns
    );
  }

  /** Publishes a waiting version if it is accepted, or else removes it. */
  decide(
    { fqdn, version, hash }: Parameters<StoreAdmin["decide"]>[0],
    isAccepted: boolean,
  ): Promise<DecideResult> {
    return this.#change(() => {
      const row = this.#sql.get(`${WAITING} WHERE w.fqdn = ? AND w.version = ?`, [fqdn, version]);
      if (row === undefined) return "missing";
      const entry = waitingOf(row as unknown as WaitingRow); // `WAITING` selects these columns
      if (entry.hash !== hash) return "other";
      // The operator may have given the name to another organisation.
      if (isAccepted && this.#namespaceRefusal(fqdn, entry.owner)) return "foreign";
      if (isAccepted && addVersion(this.#sql, entry, entry.owner) === "refused") return "exists";
      this.#sql.run("DELETE FROM waiting WHERE fqdn = ? AND version = ?", [fqdn, version]);
      if (isAccepted) chooseNewest(this.#sql, fqdn);
      else removeUnused(this.#sql, entry);
      return "done";
    });
  }

  #change<T>(work: () => T): Promise<T> {
    return this.#stamp.applyChange(() => this.#sql.transaction(work));
  }
}

/** Records that a key was revoked, once. */
const REVOKED = `INSERT OR IGNORE INTO key_records
  (id, what, owner, hash, at, kind)
  SELECT id, 'revoked', owner, hash, revoked, kind FROM keys WHERE id = ?`;
const WAITING = `SELECT w.fqdn, w.version, w.manifest, w.hash, b.bytes, w.created, w.owner
  FROM waiting w LEFT JOIN blobs b ON b.integrity = w.code`;

/** Assigns the namespace of a name to the operator, unless the name has an owner. */
export function claimForOperator(sql: Sql, fqdn: string): void {
  if (ownerOfName(sql, fqdn) !== undefined) return;
  claim(sql, { namespace: fqdn.split(":", 1)[0] ?? "", owner: "", isGiven: true });
}

/**
 * Returns the owner of a name, with the longest namespace that has one. The owner of `com` owns names
 * below it only if the operator gave `com` to that owner.
 */
function ownerOfName(sql: Sql, fqdn: string): NamespaceRecord | undefined {
  const row = sql.get(
    `SELECT namespace, owner FROM namespaces
     WHERE namespace IN (SELECT value FROM json_each(?)) AND (given = 1 OR namespace <> ?)
     ORDER BY length(namespace) DESC LIMIT 1`,
    [JSON.stringify(namespacesOf(fqdn)), domainOf(fqdn)],
  );
  return row && { namespace: String(row.namespace), owner: String(row.owner) };
}

function claim(
  sql: Sql,
  { namespace, owner, isGiven }: NamespaceRecord & { readonly isGiven: boolean },
): void {
  sql.run(
    `INSERT INTO namespaces (namespace, owner, shape, given) VALUES (?, ?, ?, ?)
     ON CONFLICT (namespace) DO UPDATE SET owner = excluded.owner, given = excluded.given`,
    [namespace, owner, shapeOf(namespace), isGiven ? 1 : 0],
  );
}

/**
 * Removes the code of a rejected version, and the owner of its namespace, unless another version uses
 * them.
 */
function removeUnused(sql: Sql, { fqdn, code }: OfferedVersion): void {
  const namespace = namespaceOf(fqdn);
  const isWithin = `(fqdn = ?1 OR fqdn > ?1 || '.' AND fqdn < ?1 || '/'
    OR fqdn > ?1 || ':' AND fqdn < ?1 || ';')`;
  sql.run(
    `DELETE FROM namespaces WHERE namespace = ?1 AND given = 0
     AND NOT EXISTS (SELECT 1 FROM servers WHERE ${isWithin})
     AND NOT EXISTS (SELECT 1 FROM capabilities WHERE ${isWithin})
     AND NOT EXISTS (SELECT 1 FROM waiting WHERE ${isWithin})`,
    [namespace],
  );
  if (code === undefined) return;
  sql.run(
    `DELETE FROM blobs WHERE integrity = ?1
     AND NOT EXISTS (SELECT 1 FROM servers WHERE code = ?1)
     AND NOT EXISTS (SELECT 1 FROM capabilities WHERE code = ?1)
     AND NOT EXISTS (SELECT 1 FROM waiting WHERE code = ?1)`,
    [integrityOf(code)],
  );
}

function waitingOf(
  { fqdn, version, manifest, hash, bytes, created, owner }: WaitingRow,
): WaitingEntry {
  return {
    fqdn,
    version,
    hash,
    owner,
    created: new Date(created),
    manifest: parseExact(manifest) as JsonObject, // the publication was checked
    ...bytes && { code: bytes },
  };
}

function hashOf(text: string): string {
  return integrityOf(new TextEncoder().encode(text));
}

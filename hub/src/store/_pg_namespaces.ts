/**
 * Reads and changes the owners of namespaces in the store on PostgreSQL. Each function runs within a
 * transaction of its caller.
 *
 * @module
 */

import { integrityOf } from "@casys/pml/registry";
import {
  domainOf,
  isTooWide,
  namespaceOf,
  namespacesOf,
  shapeOf,
  shapesLike,
} from "./namespace.ts";
import type { Queries } from "./_pg.ts";
import type { NamespaceRecord, OfferedVersion, Refusal } from "./store.ts";

// Casts to text first, because the client would encode a value of type json a second time.
const LISTED_TEXTS = "(SELECT json_array_elements_text($1::text::json))";

/**
 * Returns the owner of a name, with the longest namespace that has one. The owner of `com` owns names
 * below it only if the operator gave `com` to that owner.
 */
export async function ownerOfName(
  sql: Queries,
  fqdn: string,
): Promise<NamespaceRecord | undefined> {
  const row = await sql.get(
    `SELECT namespace, owner FROM namespaces
     WHERE namespace IN ${LISTED_TEXTS} AND (given OR namespace <> $2)
     ORDER BY length(namespace) DESC LIMIT 1`,
    [JSON.stringify(namespacesOf(fqdn)), domainOf(fqdn)],
  );
  return row && { namespace: String(row.namespace), owner: String(row.owner) };
}

/** Returns the reason why an organisation may not publish under a name; undefined if it may. */
export async function namespaceRefusal(
  sql: Queries,
  fqdn: string,
  { holder, owner }: { readonly holder: NamespaceRecord | undefined; readonly owner: string },
): Promise<Refusal | undefined> {
  if (holder !== undefined) {
    return holder.owner === owner ? undefined : { why: "foreign", namespace: holder.namespace };
  }
  if (isTooWide(fqdn)) return { why: "too_wide" };
  const other = await sql.get(
    `SELECT namespace FROM namespaces WHERE shape IN ${LISTED_TEXTS} AND owner <> $2 LIMIT 1`,
    [JSON.stringify(shapesLike(fqdn)), owner],
  );
  return other && { why: "look_alike", namespace: String(other.namespace) };
}

/** Records the operator as the owner of a name, unless its namespace has an owner. */
export async function claimForOperator(sql: Queries, fqdn: string): Promise<void> {
  if (await ownerOfName(sql, fqdn) !== undefined) return;
  await claim(sql, { namespace: fqdn.split(":", 1)[0] ?? "", owner: "", isGiven: true });
}

/**
 * Records the owner of a namespace. `isGiven` is true if the operator assigned it, and false if the
 * owner claimed it by publishing there.
 */
export async function claim(
  sql: Queries,
  { namespace, owner, isGiven }: NamespaceRecord & { readonly isGiven: boolean },
): Promise<void> {
  await sql.run(
    `INSERT INTO namespaces (namespace, owner, shape, given) VALUES ($1, $2, $3, $4::integer = 1)
     ON CONFLICT (namespace) DO UPDATE SET owner = excluded.owner, given = excluded.given`,
    [namespace, owner, shapeOf(namespace), isGiven ? 1 : 0],
  );
}

/**
 * Removes the code of a rejected version, and the owner of its namespace, unless another version uses
 * them.
 */
export async function removeUnused(sql: Queries, { fqdn, code }: OfferedVersion): Promise<void> {
  const isWithin = `(fqdn = $1 OR fqdn > $1 || '.' AND fqdn < $1 || '/'
    OR fqdn > $1 || ':' AND fqdn < $1 || ';')`;
  await sql.run(
    `DELETE FROM namespaces WHERE namespace = $1 AND NOT given
     AND NOT EXISTS (SELECT 1 FROM servers WHERE ${isWithin})
     AND NOT EXISTS (SELECT 1 FROM capabilities WHERE ${isWithin})
     AND NOT EXISTS (SELECT 1 FROM waiting WHERE ${isWithin})`,
    [namespaceOf(fqdn)],
  );
  if (code === undefined) return;
  await sql.run(
    `DELETE FROM blobs WHERE integrity = $1
     AND NOT EXISTS (SELECT 1 FROM servers WHERE code = $1)
     AND NOT EXISTS (SELECT 1 FROM capabilities WHERE code = $1)
     AND NOT EXISTS (SELECT 1 FROM waiting WHERE code = $1)`,
    [integrityOf(code)],
  );
}

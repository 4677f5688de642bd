/**
 * Creates and updates the tables of the store on PostgreSQL. A released step never changes; each
 * change of the tables needs a new step.
 *
 * @module
 */

import { PmlError, quoted } from "@casys/pml/registry";
import { type Pg, type Queries, SCHEMA } from "./_pg.ts";

/**
 * Returns the SQL that creates a table of versions. The columns from `description` on are parts of the
 * manifest for the view `pml_registry`.
 */
const createVersions = (table: string) => `
  CREATE TABLE ${table} (
    fqdn text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    type text NOT NULL,
    routing text NOT NULL,
    manifest text NOT NULL,
    code text COLLATE "C" REFERENCES blobs (integrity),
    created text COLLATE "C" NOT NULL,
    owner text COLLATE "C",
    yanked text,
    description text, install_command text, install_args text,
    proxy_to text, env_required text, warnings text,
    PRIMARY KEY (fqdn, version)
  );
  CREATE INDEX ${table}_owner ON ${table} (owner) WHERE owner IS NOT NULL;
  CREATE INDEX ${table}_created ON ${table} (created);
  CREATE INDEX ${table}_code ON ${table} (code) WHERE code IS NOT NULL;`;

const selectRows = (table: string, recordType: string) => `
  SELECT '${recordType}' AS record_type, fqdn, type, routing, description, install_command,
    install_args, proxy_to, env_required, warnings, version,
    (SELECT '[' || coalesce(string_agg(to_json(tag)::text, ',' ORDER BY tag), '') || ']' FROM tags
      WHERE tags.fqdn = ${table}.fqdn AND tags.version = ${table}.version) AS version_tag
  FROM ${table} WHERE yanked IS NULL`;

/** The tables that answers to readers depend on. */
const ANSWER_TABLES = ["blobs", "servers", "capabilities", "tags", "newest"];

/** The steps in order. The first step has the number 1. */
export const PG_MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE blobs (integrity text COLLATE "C" PRIMARY KEY, bytes bytea NOT NULL);
  ${createVersions("servers")}
  ${createVersions("capabilities")}
  CREATE TABLE tags (
    fqdn text COLLATE "C" NOT NULL, tag text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL, PRIMARY KEY (fqdn, tag)
  );
  -- One row for each name: its newest version, and the words by which searches find it.
  CREATE TABLE newest (
    fqdn text COLLATE "C" PRIMARY KEY, version text COLLATE "C" NOT NULL,
    words text COLLATE "C" NOT NULL
  );
  CREATE TABLE keys (
    id text COLLATE "C" PRIMARY KEY, owner text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL UNIQUE, created text COLLATE "C" NOT NULL, revoked text
  );
  -- The owner is empty for the operator. Names that look alike have the same shape. "given" is true
  -- if the operator gave the namespace, and false if the owner's first publication did.
  CREATE TABLE namespaces (
    namespace text COLLATE "C" PRIMARY KEY, owner text COLLATE "C" NOT NULL,
    shape text COLLATE "C" NOT NULL, given boolean NOT NULL
  );
  CREATE INDEX namespaces_shape ON namespaces (shape);
  CREATE TABLE waiting (
    fqdn text COLLATE "C" NOT NULL, version text COLLATE "C" NOT NULL, manifest text NOT NULL,
    hash text NOT NULL, code text COLLATE "C" REFERENCES blobs (integrity),
    created text COLLATE "C" NOT NULL, owner text COLLATE "C" NOT NULL,
    PRIMARY KEY (fqdn, version)
  );
  CREATE INDEX waiting_owner ON waiting (owner);
  CREATE VIEW pml_registry AS
  ${selectRows("servers", "mcp-server")} UNION ALL ${selectRows("capabilities", "capability")};
  -- Without the extension a search reads all texts; its answer is the same.
  DO $$ BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    CREATE INDEX newest_words ON newest USING gin (words gin_trgm_ops);
  EXCEPTION WHEN OTHERS THEN NULL; END $$;
  `,
  `
  -- In this version of this capability, a call of the tool "after" directly follows "before".
  CREATE TABLE follows (
    fqdn text COLLATE "C" NOT NULL, version text COLLATE "C" NOT NULL,
    before text COLLATE "C" NOT NULL, after text COLLATE "C" NOT NULL,
    PRIMARY KEY (fqdn, version, before, after)
  );
  CREATE INDEX follows_before ON follows (before);
  CREATE INDEX follows_after ON follows (after);
  `,
  `
  -- One row. Each transaction that changes answers writes a new stamp, whichever program makes it.
  -- The stamp is random, because a counter would repeat earlier values after a restore.
  CREATE TABLE changed (stamp uuid NOT NULL);
  INSERT INTO changed VALUES (gen_random_uuid());
  CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = ${SCHEMA}, pg_catalog, pg_temp AS $$ BEGIN
      -- Once in a transaction is enough, and a thousand versions of one row are slow.
      UPDATE changed SET stamp = gen_random_uuid() WHERE xmin <> pg_current_xact_id()::xid;
      RETURN NULL;
    END $$;
  ${
    ANSWER_TABLES.map((table) =>
      `CREATE TRIGGER ${table}_changed
    AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON ${table}
    FOR EACH STATEMENT EXECUTE FUNCTION note_change();`
    ).join("\n  ")
  }
  -- How many changes each key had left at the time "at", in seconds since 1970.
  CREATE TABLE turns (
    hash text COLLATE "C" PRIMARY KEY, turns double precision NOT NULL, at double precision NOT NULL
  );
  `,
  `
  -- "cl" looks like "d".
  UPDATE namespaces SET shape = replace(shape, 'cl', 'd');
  `,
  `
  -- When each key was issued or revoked. A backup whose keys differ is not restored.
  CREATE TABLE key_records (
    id text COLLATE "C" NOT NULL, what text COLLATE "C" NOT NULL, owner text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL, at text COLLATE "C" NOT NULL,
    PRIMARY KEY (id, what)
  );
  INSERT INTO key_records SELECT id, 'issued', owner, hash, created FROM keys;
  INSERT INTO key_records SELECT id, 'revoked', owner, hash, revoked FROM keys
    WHERE revoked IS NOT NULL;
  `,
  `
  -- A key belongs to a publisher or to a client.
  ALTER TABLE keys ADD COLUMN kind text COLLATE "C" NOT NULL DEFAULT 'publisher';
  ALTER TABLE key_records ADD COLUMN kind text COLLATE "C" NOT NULL DEFAULT 'publisher';
  `,
];

/** Brings a database up to date. Throws `CONFIG_INVALID` if a newer hub wrote it. */
export async function migratePg(
  pg: Pg,
  { label, steps = PG_MIGRATIONS }: {
    readonly label: string;
    readonly steps?: readonly string[];
  },
): Promise<void> {
  const place = { label, steps };
  if (await versionOf(pg, place) === steps.length) return;
  // Two hubs may start on one database at once, so each checks again under the lock.
  await pg.transaction(async (queries) => {
    const appliedCount = await versionOf(queries, place);
    if (appliedCount === steps.length) return;
    await pg.script("SET LOCAL statement_timeout = 0", queries);
    if (appliedCount === 0) {
      await pg.script(
        `CREATE SCHEMA IF NOT EXISTS ${SCHEMA};
         CREATE TABLE ${SCHEMA}.schema_versions (version integer PRIMARY KEY, applied text NOT NULL)`,
        queries,
      );
    }
    for (const [at, step] of steps.slice(appliedCount).entries()) {
      await pg.script(step, queries);
      await queries.run(`INSERT INTO ${SCHEMA}.schema_versions VALUES ($1, $2)`, [
        ...[appliedCount + at + 1, new Date().toISOString()],
      ]);
    }
  });
}

/** Returns the number of steps that the database has; 0 if it has no tables. */
async function versionOf(
  queries: Queries,
  { label, steps }: { readonly label: string; readonly steps: readonly string[] },
): Promise<number> {
  // Does not use `to_regclass`, which may miss a table that was just created.
  const server = await queries.get(
    `SELECT current_setting('server_version_num')::integer AS number,
       current_setting('server_encoding') AS encoding,
       EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = $1 AND tablename = 'schema_versions')
         AS made`,
    [SCHEMA],
  );
  if (server?.encoding !== "UTF8") throw unusable(label, `its encoding is ${server?.encoding}`);
  if (Number(server.number) < 130_000) throw unusable(label, "it is older than PostgreSQL 13");
  if (server.made !== true) return 0;
  const row = await queries.get(`SELECT max(version) AS version FROM ${SCHEMA}.schema_versions`);
  const version = Number(row?.version ?? 0);
  if (version <= steps.length) return version;
  const why = `its tables have version ${version}, and this hub supports only ${steps.length}`;
  throw unusable(label, why, "Install the newer hub that wrote it, or restore an older backup");
}

function unusable(
  label: string,
  why: string,
  hint = "Give a database of PostgreSQL 13 or newer that was made with ENCODING 'UTF8'",
): PmlError {
  return new PmlError("CONFIG_INVALID", `Cannot use ${quoted(label, 300)}: ${why}`, { hint });
}

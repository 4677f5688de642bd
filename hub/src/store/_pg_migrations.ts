/**
 * Makes the tables of the store on PostgreSQL, and brings them up to date. A step that was released
 * never changes; a change of the tables is a further step.
 *
 * @module
 */

import { PmlError, quoted } from "@casys/pml/registry";
import { type Pg, type Queries, SCHEMA } from "./_pg.ts";

/** Columns with the parts of a manifest that the view shows, always as text. */
const VERSIONS = (table: string) => `
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

const ROWS = (table: string, recordType: string) => `
  SELECT '${recordType}' AS record_type, fqdn, type, routing, description, install_command,
    install_args, proxy_to, env_required, warnings, version,
    (SELECT '[' || coalesce(string_agg(to_json(tag)::text, ',' ORDER BY tag), '') || ']' FROM tags
      WHERE tags.fqdn = ${table}.fqdn AND tags.version = ${table}.version) AS version_tag
  FROM ${table} WHERE yanked IS NULL`;

/** The tables of which answers to readers are made. */
const ANSWERED = ["blobs", "servers", "capabilities", "tags", "newest"];

/** The steps in their order. The number of the first one is 1. */
export const PG_MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE blobs (integrity text COLLATE "C" PRIMARY KEY, bytes bytea NOT NULL);
  ${VERSIONS("servers")}
  ${VERSIONS("capabilities")}
  CREATE TABLE tags (
    fqdn text COLLATE "C" NOT NULL, tag text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL, PRIMARY KEY (fqdn, tag)
  );
  -- One row for each name, with the data of its catalog entry and the words of the search.
  CREATE TABLE newest (
    fqdn text COLLATE "C" PRIMARY KEY, version text COLLATE "C" NOT NULL,
    words text COLLATE "C" NOT NULL
  );
  CREATE TABLE keys (
    id text COLLATE "C" PRIMARY KEY, owner text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL UNIQUE, created text COLLATE "C" NOT NULL, revoked text
  );
  -- The owner is empty for the operator. Names that look alike have the same shape.
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
  ${ROWS("servers", "mcp-server")} UNION ALL ${ROWS("capabilities", "capability")};
  -- Without the extension a search reads all texts; its answer is the same.
  DO $$ BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    CREATE INDEX newest_words ON newest USING gin (words gin_trgm_ops);
  EXCEPTION WHEN OTHERS THEN NULL; END $$;
  `,
  `
  -- Pairs of tools: each version of a capability calls "after" right after "before".
  CREATE TABLE follows (
    fqdn text COLLATE "C" NOT NULL, version text COLLATE "C" NOT NULL,
    before text COLLATE "C" NOT NULL, after text COLLATE "C" NOT NULL,
    PRIMARY KEY (fqdn, version, before, after)
  );
  CREATE INDEX follows_before ON follows (before);
  CREATE INDEX follows_after ON follows (after);
  `,
  `
  -- One row, which is another one after each transaction that changes answers, whoever makes it.
  -- A number would come again after a restore, so it is random.
  CREATE TABLE changed (stamp uuid NOT NULL);
  INSERT INTO changed VALUES (gen_random_uuid());
  CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = ${SCHEMA}, pg_catalog, pg_temp AS $$ BEGIN
      -- Once in a transaction is enough, and a thousand versions of one row are slow.
      UPDATE changed SET stamp = gen_random_uuid() WHERE xmin <> pg_current_xact_id()::xid;
      RETURN NULL;
    END $$;
  ${
    ANSWERED.map((table) =>
      `CREATE TRIGGER ${table}_changed
    AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON ${table}
    FOR EACH STATEMENT EXECUTE FUNCTION note_change();`
    ).join("\n  ")
  }
  -- The number of changes that each key could still make at a time ("at", in seconds since 1970).
  CREATE TABLE turns (
    hash text COLLATE "C" PRIMARY KEY, turns double precision NOT NULL, at double precision NOT NULL
  );
  `,
  `
  -- "cl" looks like "d".
  UPDATE namespaces SET shape = replace(shape, 'cl', 'd');
  `,
  `
  -- When each key was issued or revoked. A backup is refused if its keys differ from these records.
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
  { shown, steps = PG_MIGRATIONS }: { readonly shown: string; readonly steps?: readonly string[] },
): Promise<void> {
  const place = { shown, steps };
  if (await versionOf(pg, place) === steps.length) return;
  // Two hubs may start on one database at once, so each looks again under the lock.
  await pg.together(async (queries) => {
    const done = await versionOf(queries, place);
    if (done === steps.length) return;
    await pg.script("SET LOCAL statement_timeout = 0", queries);
    if (done === 0) {
      await pg.script(
        `CREATE SCHEMA IF NOT EXISTS ${SCHEMA};
         CREATE TABLE ${SCHEMA}.schema_versions (version integer PRIMARY KEY, applied text NOT NULL)`,
        queries,
      );
    }
    for (const [at, step] of steps.slice(done).entries()) {
      await pg.script(step, queries);
      await queries.run(`INSERT INTO ${SCHEMA}.schema_versions VALUES ($1, $2)`, [
        ...[done + at + 1, new Date().toISOString()],
      ]);
    }
  });
}

/** Returns how many steps made the tables; 0 if there are none. */
async function versionOf(
  queries: Queries,
  { shown, steps }: { readonly shown: string; readonly steps: readonly string[] },
): Promise<number> {
  // Of a name that just was made, `to_regclass` may still say that it is not there.
  const server = await queries.get(
    `SELECT current_setting('server_version_num')::integer AS number,
       current_setting('server_encoding') AS encoding,
       EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = $1 AND tablename = 'schema_versions')
         AS made`,
    [SCHEMA],
  );
  if (server?.encoding !== "UTF8") throw unfit(shown, `its encoding is ${server?.encoding}`);
  if (Number(server.number) < 130_000) throw unfit(shown, "it is older than PostgreSQL 13");
  if (server.made !== true) return 0;
  const row = await queries.get(`SELECT max(version) AS version FROM ${SCHEMA}.schema_versions`);
  const version = Number(row?.version ?? 0);
  if (version <= steps.length) return version;
  const why = `its tables have version ${version}, and this hub knows ${steps.length}`;
  throw unfit(shown, why, "Install the newer hub that wrote it, or restore an older backup");
}

function unfit(
  shown: string,
  why: string,
  hint = "Give a database of PostgreSQL 13 or newer that was made with ENCODING 'UTF8'",
): PmlError {
  return new PmlError("CONFIG_INVALID", `Cannot use ${quoted(shown, 300)}: ${why}`, { hint });
}

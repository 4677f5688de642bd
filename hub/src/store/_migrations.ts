/**
 * The steps that make the tables of the embedded store. A step that was released never changes; a
 * change of the tables is a further step.
 *
 * @module
 */

/** Marks a file of SQLite as the store of a hub: the letters "PMLH". */
export const APPLICATION_ID = 0x504d4c48;

const VERSIONS = (table: string) => `
  CREATE TABLE ${table} (
    fqdn TEXT NOT NULL,
    version TEXT NOT NULL,
    type TEXT NOT NULL,
    routing TEXT NOT NULL,
    manifest TEXT NOT NULL,
    code TEXT REFERENCES blobs (integrity),
    created TEXT NOT NULL,
    PRIMARY KEY (fqdn, version)
  ) STRICT;`;

const ROWS = (table: string, recordType: string) => `
  SELECT '${recordType}' AS record_type, fqdn, type, routing,
    manifest ->> '$.description' AS description,
    manifest ->> '$.install.command' AS install_command,
    manifest -> '$.install.args' AS install_args,
    manifest ->> '$.proxy_to' AS proxy_to,
    manifest -> '$.env_required' AS env_required,
    manifest -> '$.warnings' AS warnings,
    version,
    (SELECT json_group_array(tag) FROM (SELECT tag FROM tags
      WHERE tags.fqdn = ${table}.fqdn AND tags.version = ${table}.version ORDER BY tag)
    ) AS version_tag
  FROM ${table}`;

/** Earlier entries belong to the operator. */
const OWNED = (table: string) => `
  ALTER TABLE ${table} ADD COLUMN owner TEXT;
  ALTER TABLE ${table} ADD COLUMN yanked TEXT;
  CREATE INDEX ${table}_owner ON ${table} (owner) WHERE owner IS NOT NULL;
  INSERT OR IGNORE INTO namespaces (namespace, owner, shape, given)
  SELECT base, '', replace(replace(replace(replace(replace(replace(replace(replace(replace(
    base, '_', ''), '-', ''), '.', ''), '0', 'o'), '1', 'l'), 'i', 'l'), '5', 's'), 'rn', 'm'),
    'vv', 'w'), 1
  FROM (SELECT DISTINCT substr(fqdn, 1, instr(fqdn || ':', ':') - 1) AS base FROM ${table});`;

/** The steps in their order. The number of the first one is 1. */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE blobs (integrity TEXT PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
  ${VERSIONS("servers")}
  ${VERSIONS("capabilities")}
  CREATE TABLE tags (
    fqdn TEXT NOT NULL, tag TEXT NOT NULL, version TEXT NOT NULL, PRIMARY KEY (fqdn, tag)
  ) STRICT;
  -- One row a name: what its catalog entry and its search are made of.
  CREATE TABLE newest (
    id INTEGER PRIMARY KEY, fqdn TEXT NOT NULL UNIQUE, version TEXT NOT NULL, words TEXT NOT NULL
  ) STRICT;
  CREATE VIRTUAL TABLE found USING fts5(
    words, content = 'newest', content_rowid = 'id', tokenize = 'trigram case_sensitive 1'
  );
  CREATE TRIGGER newest_added AFTER INSERT ON newest BEGIN
    INSERT INTO found (rowid, words) VALUES (new.id, new.words);
  END;
  CREATE TRIGGER newest_changed AFTER UPDATE ON newest BEGIN
    INSERT INTO found (found, rowid, words) VALUES ('delete', old.id, old.words);
    INSERT INTO found (rowid, words) VALUES (new.id, new.words);
  END;
  CREATE VIEW pml_registry AS
  ${ROWS("servers", "mcp-server")} UNION ALL ${ROWS("capabilities", "capability")};
  `,
  `
  CREATE TABLE keys (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, hash TEXT NOT NULL UNIQUE,
    created TEXT NOT NULL, revoked TEXT
  ) STRICT;
  -- The owner is empty for the operator. Names that look alike have one shape.
  CREATE TABLE namespaces (
    namespace TEXT PRIMARY KEY, owner TEXT NOT NULL, shape TEXT NOT NULL, given INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX namespaces_shape ON namespaces (shape);
  ${OWNED("servers")}
  ${OWNED("capabilities")}
  CREATE TABLE waiting (
    fqdn TEXT NOT NULL, version TEXT NOT NULL, manifest TEXT NOT NULL, hash TEXT NOT NULL,
    code TEXT REFERENCES blobs (integrity), created TEXT NOT NULL, owner TEXT NOT NULL,
    PRIMARY KEY (fqdn, version)
  ) STRICT;
  CREATE INDEX waiting_owner ON waiting (owner);
  CREATE TRIGGER newest_removed AFTER DELETE ON newest BEGIN
    INSERT INTO found (found, rowid, words) VALUES ('delete', old.id, old.words);
  END;
  DROP VIEW pml_registry;
  CREATE VIEW pml_registry AS
  ${ROWS("servers", "mcp-server")} WHERE yanked IS NULL
  UNION ALL ${ROWS("capabilities", "capability")} WHERE yanked IS NULL;
  `,
  `
  -- Of each version of a capability: which tool it calls after which.
  CREATE TABLE follows (
    fqdn TEXT NOT NULL, version TEXT NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL,
    PRIMARY KEY (fqdn, version, before, after)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX follows_before ON follows (before);
  CREATE INDEX follows_after ON follows (after);
  `,
  `
  -- Of each key: how many changes it may make yet, and when that was so, in seconds.
  CREATE TABLE turns (hash TEXT PRIMARY KEY, turns REAL NOT NULL, at REAL NOT NULL) STRICT;
  `,
  `
  -- "cl" looks like "d".
  UPDATE namespaces SET shape = replace(shape, 'cl', 'd');
  `,
  `
  -- When a key was issued or revoked. A backup whose keys differ from it is refused.
  CREATE TABLE key_records (
    id TEXT NOT NULL, what TEXT NOT NULL, owner TEXT NOT NULL, hash TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (id, what)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO key_records SELECT id, 'issued', owner, hash, created FROM keys;
  INSERT INTO key_records SELECT id, 'revoked', owner, hash, revoked FROM keys
    WHERE revoked IS NOT NULL;
  `,
  `
  -- A key is a publisher's or a client's.
  ALTER TABLE keys ADD COLUMN kind TEXT NOT NULL DEFAULT 'publisher';
  ALTER TABLE key_records ADD COLUMN kind TEXT NOT NULL DEFAULT 'publisher';
  `,
];

/** The steps that made the table of keys, and of their records, and the column of their kind. */
export const [FIRST_KEYS, RECORDED_KEYS, KEY_KINDS] = [2, 6, 7] as const;

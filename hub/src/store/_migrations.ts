/**
 * The steps that create the tables of the embedded store. A released step never changes; each
 * change of the tables needs a new step.
 *
 * @module
 */

/** The `application_id` of the file: the ASCII codes of "PMLH". */
export const APPLICATION_ID = 0x504d4c48;

const createVersions = (table: string) => `
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

const selectRows = (table: string, recordType: string) => `
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

/**
 * Adds owners. The operator gets the namespaces of existing entries. The calls of `replace` do the
 * same as `shapeOf()` did when this step was written.
 */
const addOwners = (table: string) => `
  ALTER TABLE ${table} ADD COLUMN owner TEXT;
  ALTER TABLE ${table} ADD COLUMN yanked TEXT;
  CREATE INDEX ${table}_owner ON ${table} (owner) WHERE owner IS NOT NULL;
  INSERT OR IGNORE INTO namespaces (namespace, owner, shape, given)
  SELECT base, '', replace(replace(replace(replace(replace(replace(replace(replace(replace(
    base, '_', ''), '-', ''), '.', ''), '0', 'o'), '1', 'l'), 'i', 'l'), '5', 's'), 'rn', 'm'),
    'vv', 'w'), 1
  FROM (SELECT DISTINCT substr(fqdn, 1, instr(fqdn || ':', ':') - 1) AS base FROM ${table});`;

/** The steps in order. The first step has the number 1. */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE blobs (integrity TEXT PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
  ${createVersions("servers")}
  ${createVersions("capabilities")}
  CREATE TABLE tags (
    fqdn TEXT NOT NULL, tag TEXT NOT NULL, version TEXT NOT NULL, PRIMARY KEY (fqdn, tag)
  ) STRICT;
  -- One row for each name: its newest version, and the words by which searches find it.
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
  ${selectRows("servers", "mcp-server")} UNION ALL ${selectRows("capabilities", "capability")};
  `,
  `
  CREATE TABLE keys (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, hash TEXT NOT NULL UNIQUE,
    created TEXT NOT NULL, revoked TEXT
  ) STRICT;
  -- The owner is empty for the operator. Names that look alike have the same shape. "given" is 1 if
  -- the operator gave the namespace, and 0 if the owner's first publication did.
  CREATE TABLE namespaces (
    namespace TEXT PRIMARY KEY, owner TEXT NOT NULL, shape TEXT NOT NULL, given INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX namespaces_shape ON namespaces (shape);
  ${addOwners("servers")}
  ${addOwners("capabilities")}
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
  ${selectRows("servers", "mcp-server")} WHERE yanked IS NULL
  UNION ALL ${selectRows("capabilities", "capability")} WHERE yanked IS NULL;
  `,
  `
  -- In this version of this capability, a call of the tool "after" directly follows "before".
  CREATE TABLE follows (
    fqdn TEXT NOT NULL, version TEXT NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL,
    PRIMARY KEY (fqdn, version, before, after)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX follows_before ON follows (before);
  CREATE INDEX follows_after ON follows (after);
  `,
  `
  -- How many changes each key had left at the time "at", in seconds since 1970.
  CREATE TABLE turns (hash TEXT PRIMARY KEY, turns REAL NOT NULL, at REAL NOT NULL) STRICT;
  `,
  `
  -- "cl" looks like "d".
  UPDATE namespaces SET shape = replace(shape, 'cl', 'd');
  `,
  `
  -- When each key was issued or revoked. A backup whose keys differ is not restored.
  CREATE TABLE key_records (
    id TEXT NOT NULL, what TEXT NOT NULL, owner TEXT NOT NULL, hash TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (id, what)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO key_records SELECT id, 'issued', owner, hash, created FROM keys;
  INSERT INTO key_records SELECT id, 'revoked', owner, hash, revoked FROM keys
    WHERE revoked IS NOT NULL;
  `,
  `
  -- A key belongs to a publisher or to a client.
  ALTER TABLE keys ADD COLUMN kind TEXT NOT NULL DEFAULT 'publisher';
  ALTER TABLE key_records ADD COLUMN kind TEXT NOT NULL DEFAULT 'publisher';
  `,
];

/**
 * The numbers of the steps that create the table `keys`, the table `key_records`, and the column
 * `kind` of both.
 */
export const [KEYS_STEP, KEY_RECORDS_STEP, KEY_KINDS_STEP] = [2, 6, 7] as const;

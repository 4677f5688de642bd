/**
 * Compares two databases without set-up as the store of a hub: `node:sqlite` and PGlite. Each runs in
 * its own process. Run `deno run -A hub/bench/stores.ts`.
 *
 * @module
 */

import { DatabaseSync } from "node:sqlite";

const ENTRIES = 10_000;
const READS = 2_000;
const SEARCHES = 200;
const WORDS = "git file query search weather mail issue image chart invoice table page".split(" ");
const PGLITE = "npm:@electric-sql/pglite@0.5.16";

/** One row of the table that is measured. */
type Row = readonly [fqdn: string, text: string, manifest: string];

/** The operations that are measured. */
interface Candidate {
  insert(rows: readonly Row[]): Promise<void> | void;
  read(fqdn: string): Promise<unknown> | unknown;
  search(words: readonly string[]): Promise<unknown> | unknown;
}

async function sqlite(folder: string): Promise<Candidate> {
  const db = await Promise.resolve(new DatabaseSync(`${folder}/hub.db`));
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    CREATE TABLE entries (id INTEGER PRIMARY KEY, fqdn TEXT UNIQUE, text TEXT, manifest TEXT);
    CREATE VIRTUAL TABLE found USING fts5(text, content='entries', content_rowid='id',
      tokenize='trigram case_sensitive 1');`);
  const add = db.prepare("INSERT INTO entries (fqdn, text, manifest) VALUES (?, ?, ?)");
  const index = db.prepare("INSERT INTO found (rowid, text) VALUES (?, ?)");
  const selectOne = db.prepare("SELECT manifest FROM entries WHERE fqdn = ?");
  const selectMatches = db.prepare(`SELECT e.manifest FROM entries e WHERE e.id IN
    (SELECT rowid FROM found WHERE found MATCH ?) ORDER BY e.fqdn LIMIT 100`);
  return {
    insert(rows) {
      db.exec("BEGIN");
      for (const [fqdn, text, manifest] of rows) {
        index.run(add.run(fqdn, text, manifest).lastInsertRowid, text);
      }
      db.exec("COMMIT");
    },
    read: (fqdn) => selectOne.get(fqdn),
    search: (words) => selectMatches.all(words.map((word) => `"${word}"`).join(" AND ")),
  };
}

async function pglite(folder: string): Promise<Candidate> {
  const { PGlite } = await import(PGLITE);
  const db = await PGlite.create(`${folder}/pg`);
  await db.exec(`CREATE TABLE entries (id serial PRIMARY KEY, fqdn text UNIQUE, text text,
      manifest text, words tsvector GENERATED ALWAYS AS (to_tsvector('simple', text)) STORED);
    CREATE INDEX found ON entries USING gin (words);`);
  return {
    insert: (rows) =>
      db.transaction(async (tx: typeof db) => {
        for (const row of rows) {
          await tx.query("INSERT INTO entries (fqdn, text, manifest) VALUES ($1, $2, $3)", row);
        }
      }),
    read: (fqdn) => db.query("SELECT manifest FROM entries WHERE fqdn = $1", [fqdn]),
    search: (words) =>
      db.query(
        `SELECT manifest FROM entries WHERE words @@ plainto_tsquery('simple', $1)
         ORDER BY fqdn LIMIT 100`,
        [words.join(" ")],
      ),
  };
}

function rowOf(at: number): Row {
  const words = [at, at * 7 + 3, at * 13 + 5].map((n) => WORDS[n % WORDS.length]);
  const fqdn = `${words[0]}-${at}`;
  const text = `${fqdn}\n${words.join(" ")} for team ${at % 997}\n${words[1]}_list`;
  const tools = words.map((word) => ({ name: `${word}_list`, inputSchema: { type: "object" } }));
  return [fqdn, text, JSON.stringify({ fqdn, description: text, tools })];
}

async function measureTimes(
  times: number,
  work: (at: number) => Promise<unknown> | unknown,
): Promise<readonly number[]> {
  const durations: number[] = [];
  for (let at = 0; at < times; at++) {
    const start = performance.now();
    await work(at);
    durations.push(performance.now() - start);
  }
  return durations.sort((a, b) => a - b);
}

function percentile(sorted: readonly number[], part: number): string {
  return `${(sorted[Math.floor(sorted.length * part)] ?? 0).toFixed(3)} ms`;
}

async function measure(kind: string): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    const before = performance.now();
    const store = await (kind === "pglite" ? pglite(folder) : sqlite(folder));
    const start = performance.now() - before;
    const empty = Deno.memoryUsage().rss;
    const [insert = 0] = await measureTimes(
      1,
      () => store.insert(Array.from({ length: ENTRIES }, (_, at) => rowOf(at))),
    );
    const reads = await measureTimes(READS, (at) => store.read(rowOf(at * 37 % ENTRIES)[0]));
    const searches = await measureTimes(
      SEARCHES,
      (at) => store.search([WORDS[at % WORDS.length] ?? "", `${at % 997}`]),
    );
    console.log(JSON.stringify({
      kind,
      start: `${start.toFixed(0)} ms`,
      "memory, empty": `${Math.round(empty / 1e6)} MB`,
      "memory, filled": `${Math.round(Deno.memoryUsage().rss / 1e6)} MB`,
      [`insert of ${ENTRIES}`]: `${insert.toFixed(0)} ms`,
      "read p50": percentile(reads, 0.5),
      "read p99": percentile(reads, 0.99),
      "search p95": percentile(searches, 0.95),
    }));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

if (Deno.args[0] !== undefined) await measure(Deno.args[0]);
else {
  for (const kind of ["sqlite", "pglite"]) {
    const args = ["run", "-A", "--quiet", import.meta.filename ?? "", kind];
    await new Deno.Command(Deno.execPath(), { args, stdout: "inherit", stderr: "inherit" })
      .output();
  }
}

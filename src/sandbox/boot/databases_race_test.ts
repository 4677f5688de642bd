import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import protectedPaths from "../../../config/protected-paths.json" with { type: "json" };
import { DatabaseYard } from "../../../tests/fixtures/modules/database_yard.ts";
import { Broker } from "./broker.ts";
import { WorkspaceLock } from "./lock.ts";

const MS = 3_000;

/** Changes files like another child: with the same broker, under the same lock. */
function neighbour(yard: DatabaseYard): (op: string, ...args: unknown[]) => void {
  const { ws, root } = yard;
  const protection = { ...protectedPaths, paths: [], granted: [] };
  const bounds = { resultBytes: 1 << 20, writeBytes: 1 << 30 };
  const ground = { workspace: ws, read: [ws], write: [ws], home: `${root}/home`, protection };
  const broker = new Broker({ ...ground, ...bounds }, new WorkspaceLock(`${root}/lock`));
  return (op, ...args) => void broker.answer(op, args);
}

for (const mode of ["delete", "wal"]) {
  Deno.test(`Databases opens and removes nothing outside while another child swaps in a link, in mode ${mode} (GW6, PE5)`, async () => {
    await using yard = new DatabaseYard();
    const { ws, outside } = yard;
    const table = ["CREATE TABLE t(id INTEGER PRIMARY KEY, x)", `PRAGMA journal_mode = ${mode}`];
    Deno.mkdirSync(`${ws}/real`);
    yard.make("real/a.db", ...table);
    {
      using away = new DatabaseSync(`${outside}/a.db`);
      for (const sql of table) away.exec(sql);
    }
    for (const end of ["-journal", "-wal", "-shm"]) {
      Deno.writeTextFileSync(`${outside}/a.db${end}`, "");
    }
    Deno.symlinkSync(outside, `${ws}/link`);
    const before = [yard.fingerprint(), namesIn(outside)];
    const move = neighbour(yard);
    let isOver = false;
    const counts = { done: 0, refused: 0, moved: 0 };
    const work = async () => {
      const since = Date.now();
      const isEnough = () =>
        Date.now() - since > MS && counts.done > 2 && counts.refused > 5 && counts.moved > 10;
      // A busy machine needs longer to reach enough of each.
      const goesOn = () => !isEnough() && Date.now() - since < 20 * MS;
      while (goesOn()) {
        try {
          await using db = await yard.sqlite("d/a.db", { write: true });
          while (goesOn()) {
            await db.execute("INSERT OR REPLACE INTO t VALUES (1, randomblob(200000))");
            counts.done++;
          }
        } catch {
          counts.refused++;
        }
      }
      isOver = true;
    };
    const working = work();
    for (; !isOver; counts.moved++) {
      move("rename", "real", "d");
      // Sometimes longer than a statement, which takes long on a busy machine, sometimes in the
      // middle of one.
      const longest = counts.done > 2 ? 200 : Math.min(200 + 20 * counts.moved, 5_000);
      await new Promise((turn) =>
        setTimeout(turn, counts.moved % 5 === 0 ? longest : counts.moved % 30)
      );
      move("rename", "d", "real");
      move("rename", "link", "d");
      await new Promise((turn) => setTimeout(turn));
      move("rename", "d", "link");
    }
    await working;
    assert.deepEqual([yard.fingerprint(), namesIn(outside)], before);
    assert.ok(counts.done > 2 && counts.refused > 5 && counts.moved > 10, JSON.stringify(counts));
  });
}

function namesIn(folder: string): readonly string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
}

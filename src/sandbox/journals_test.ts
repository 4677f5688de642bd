import assert from "node:assert/strict";
import { call, Yard } from "../../tests/fixtures/modules/yard.ts";

/** A module that tries to make SQLite delete a file: it writes its name at a journal's end. */
const MODULE = `
  function endOf(name) {
    const text = new TextEncoder().encode(name);
    const bytes = new Uint8Array(4 + text.length + 16);
    const view = new DataView(bytes.buffer);
    bytes.set(text, 4);
    view.setUint32(4 + text.length, text.length);
    view.setUint32(8 + text.length, text.reduce((sum, one) => sum + one, 0));
    bytes.set([0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7], 12 + text.length);
    return bytes;
  }
  async function said(step) {
    try {
      await step();
      return "done";
    } catch (error) {
      return error.code ?? error.name;
    }
  }
  /** Writes to the journal of a change and undoes the change, in each possible way. */
  export async function undo({ name }, { sqlite }) {
    const told = [];
    const ways = [
      (bytes) => Deno.writeFileSync("a.db-journal", bytes, { append: true }),
      (bytes) => {
        using file = Deno.openSync("a.db-journal", { append: true });
        file.writeSync(bytes);
      },
      (bytes) => {
        Deno.renameSync("a.db-journal", "b");
        Deno.writeFileSync("b", bytes, { append: true });
      },
      (bytes) => {
        Deno.writeFileSync("c", bytes);
        Deno.copyFileSync("c", "a.db-journal");
      },
    ];
    for (const way of ways) {
      const db = await sqlite("a.db", { write: true });
      await db.execute("BEGIN");
      await db.execute("CREATE TABLE t(x)");
      told.push(await said(() => way(endOf(name))));
      await db.close();
    }
    return told;
  }
  /** Creates a file that becomes a journal when a database is created next to it. */
  export async function plant() {
    Deno.writeFileSync("d", new Uint8Array(1));
    const ways = [
      () => Deno.writeFile("x.db-journal", new Uint8Array(1)),
      () => Deno.open("x.db-JOURNAL", { write: true, create: true }),
      () => Deno.renameSync("d", "x.db-journal"),
      () => Deno.copyFile("d", "x.db-journal"),
      () => Deno.truncate("old.db-journal", 0),
      () => Deno.makeTempFile({ dir: ".", suffix: "-journal" }),
    ];
    return await Promise.all(ways.map(said));
  }
  /** Harmless actions: reading and removing a journal, and a folder with such a name. */
  export async function use() {
    const ways = [
      () => Deno.readFile("old.db-journal"),
      () => Deno.mkdir("my-journal"),
      () => Deno.writeTextFile("my-journal/monday.md", "text"),
      () => Deno.rename("my-journal", "your-journal"),
      () => Deno.remove("old.db-journal"),
    ];
    const told = [];
    for (const way of ways) told.push(await said(way));
    return told;
  }
`;

Deno.test("Sandbox refuses a change of a journal, which can make SQLite delete a file", async () => {
  await using yard = new Yard();
  const { ws } = yard;
  Deno.writeTextFileSync(`${ws}/.env`, "KEY=1");
  Deno.writeTextFileSync(`${ws}/old.db-journal`, "old");
  const sandbox = await yard.start(MODULE);
  const told = await call(sandbox, "undo", { name: `${ws}/.env` });
  const left = [...Deno.readDirSync(ws)].map(({ name }) => name);
  assert.ok(left.includes(".env"), `SQLite deleted it: ${left}`);
  assert.deepEqual(told, Array(4).fill("SANDBOX_DENIED"));
  assert.deepEqual(await call(sandbox, "plant"), Array(6).fill("SANDBOX_DENIED"));
  assert.deepEqual(await call(sandbox, "use"), Array(5).fill("done"));
});

import assert from "node:assert/strict";
import { brokeredSqlite } from "./module_sqlite.ts";

/** Returns `host.sqlite`, and the databases that are open. Databases open when they are answered. */
function makeSqlite() {
  const open = new Set<unknown>();
  const answers: (() => void)[] = [];
  const sqlite = brokeredSqlite((op, [number]) => {
    if (op === "sqlite.close") return Promise.resolve(open.delete(number));
    const { promise, resolve } = Promise.withResolvers<unknown>();
    answers.push(() => {
      open.add(answers.length);
      resolve(answers.length);
    });
    return promise;
  });
  return { sqlite, open, answer: () => answers.at(-1)?.() };
}

Deno.test("host.sqlite closes a database whose opening the call did not await", async () => {
  const { sqlite, open, answer } = makeSqlite();
  const opening = sqlite("a.db");
  const closed = sqlite[Symbol.asyncDispose]();
  answer();
  await closed;
  assert.equal(open.size, 0);
  await opening;
});

import assert from "node:assert/strict";
import { PmlError } from "../core/errors.ts";
import { LateStarts } from "./late_starts.ts";

const KEY = { name: "slow", definition: { command: "slow" } };
const LATE = new PmlError("TIMED_OUT", "Cannot start it", { hint: "Wait" });

Deno.test("LateStarts remembers a start for five minutes, for this definition and workspace", async () => {
  const home = await Deno.makeTempDir();
  const starts = new LateStarts({ home, workspace: "/ws" });
  assert.equal(starts.errorOf(KEY), undefined);
  starts.record(KEY, LATE);
  const other = new LateStarts({ home, workspace: "/ws" });
  assert.equal(other.errorOf(KEY)?.code, "TIMED_OUT");
  assert.equal(other.errorOf({ ...KEY, definition: {} }), undefined);
  assert.equal(new LateStarts({ home, workspace: "/other" }).errorOf(KEY), undefined);
  other.forget(KEY);
  assert.equal(starts.errorOf(KEY), undefined);
  await Deno.remove(home, { recursive: true });
});

Deno.test("LateStarts ignores old, future and damaged files, and keeps a limited number", async () => {
  const home = await Deno.makeTempDir();
  const starts = new LateStarts({ home, workspace: "/ws" });
  starts.record(KEY, LATE);
  const folder = `${home}/late_starts`;
  const [{ name = "" } = {}] = [...Deno.readDirSync(folder)];
  const message = "Cannot start it";
  for (const at of [Date.now() - 301_000, Date.now() + 60_000, "now"]) {
    await Deno.writeTextFile(
      `${folder}/${name}`,
      JSON.stringify({ at, message, code: "TIMED_OUT" }),
    );
    assert.equal(starts.errorOf(KEY), undefined, `${at}`);
  }
  for (const other of [{ message: 1, code: "TIMED_OUT" }, { message, code: "SOMETHING" }]) {
    await Deno.writeTextFile(`${folder}/${name}`, JSON.stringify({ at: Date.now(), ...other }));
    assert.equal(starts.errorOf(KEY), undefined, JSON.stringify(other));
  }
  for (let count = 0; count < 70; count++) starts.record({ ...KEY, definition: count }, LATE);
  assert.equal([...Deno.readDirSync(folder)].length, 64);
  await Deno.remove(home, { recursive: true });
});

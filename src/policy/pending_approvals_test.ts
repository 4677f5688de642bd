import assert from "node:assert/strict";
import { join } from "node:path";
import { race } from "./approvals_child_test.ts";
import { digestOf } from "./subject.ts";
import { fixture, MINUTE, subject } from "./_approvals_fixture_test.ts";

Deno.test("an approval at a terminal allows the same call once", async () => {
  await using at = await fixture();
  const { handle } = at.approvals.open([subject()]);
  const left = await at.approvals.saveForTerminal(handle);
  assert.equal(left?.id, digestOf([subject()]));
  assert.equal(await at.take(left.id), false);
  const [listed, ...others] = await at.approvals.pendingApprovals();
  assert.deepEqual([listed, others], [left, []]);
  await at.approvals.grant(left.id);
  assert.equal(await at.take(digestOf([subject({ path: "b" })])), false);
  assert.equal(await at.take(left.id), true);
  assert.equal(await at.take(left.id), false);
  assert.deepEqual(await at.approvals.pendingApprovals(), []);
});

Deno.test("saveForTerminal() uses up the handle", async () => {
  await using at = await fixture();
  const { handle } = at.approvals.open([subject()]);
  await at.approvals.saveForTerminal(handle);
  at.clock.now += 1_000;
  assert.equal(at.approvals.settle({ handle, reply: "Yes" }, digestOf([subject()])), undefined);
  assert.equal(await at.approvals.saveForTerminal(handle), undefined);
});

Deno.test("a granted approval keeps no arguments (GX19)", async () => {
  await using at = await fixture();
  const left = await at.approvals.saveForTerminal(
    at.approvals.open([subject({ path: "s3cret" })]).handle,
  );
  const text = (state: string) => Deno.readTextFileSync(join(at.home, state, `${left?.id}.json`));
  assert.match(text("pending"), /s3cret/);
  await at.approvals.grant(left?.id ?? "");
  assert.deepEqual(Object.keys(JSON.parse(text("approved"))), ["asked", "expires"]);
  assert.throws(() => text("pending"), Deno.errors.NotFound);
  assert.equal(await at.take(left?.id ?? ""), true);
});

Deno.test("a new question removes expired approvals (GX19)", async () => {
  await using at = await fixture();
  const leave = async (path: string) =>
    await at.approvals.saveForTerminal(at.approvals.open([subject({ path })]).handle);
  await leave("a");
  await at.approvals.grant((await leave("b"))?.id ?? "");
  at.clock.now += 10 * MINUTE;
  const files = () =>
    ["pending", "approved"].flatMap((state) => [...Deno.readDirSync(join(at.home, state))]);
  assert.equal(files().length, 2);
  at.approvals.open([subject({ path: "c" })]);
  assert.deepEqual(files(), []);
});

Deno.test("grant() finds no approval after refuse() removed it", async () => {
  await using at = await fixture();
  const left = await at.approvals.saveForTerminal(at.approvals.open([subject()]).handle);
  await at.approvals.refuse(left?.id ?? "");
  await assert.rejects(at.approvals.grant(left?.id ?? ""), { code: "APPROVAL_STALE" });
  for (const id of ["", "../trust/x", "a".repeat(64)]) {
    await assert.rejects(at.approvals.grant(id), { code: "APPROVAL_STALE" });
  }
});

Deno.test("an id cannot refer to another file in the home", async () => {
  await using at = await fixture();
  const other = join(at.home, "trust", "x.json");
  await Deno.mkdir(join(at.home, "trust"));
  await Deno.mkdir(join(at.home, "pending"));
  await Deno.writeTextFile(other, "{}");
  await assert.rejects(at.approvals.refuse("../trust/x"), { code: "APPROVAL_STALE" });
  await assert.rejects(at.approvals.grant("../trust/x"), { code: "APPROVAL_STALE" });
  assert.equal(await Deno.readTextFile(other), "{}");
});

Deno.test("an expired approval can be neither granted nor taken, and is removed", async () => {
  await using at = await fixture();
  const leave = async () =>
    await at.approvals.saveForTerminal(at.approvals.open([subject()]).handle);
  const first = await leave();
  at.clock.now += 10 * MINUTE;
  await assert.rejects(at.approvals.grant(first?.id ?? ""), { code: "APPROVAL_STALE" });
  assert.deepEqual(await at.approvals.pendingApprovals(), []);
  at.clock.now += MINUTE;
  assert.deepEqual(await at.approvals.pendingApprovals(), []);
  assert.deepEqual([...Deno.readDirSync(join(at.home, "pending"))], []);
  at.clock.now -= 11 * MINUTE;
  const second = await leave();
  await at.approvals.grant(second?.id ?? "");
  at.clock.now += 10 * MINUTE;
  assert.equal(await at.take(second?.id ?? ""), false);
  at.clock.now += MINUTE;
  await at.approvals.pendingApprovals();
  assert.deepEqual([...Deno.readDirSync(join(at.home, "approved"))], []);
});

Deno.test("files of a killed process approve nothing and are removed after they expire", async () => {
  await using at = await fixture();
  const left = await at.approvals.saveForTerminal(at.approvals.open([subject()]).handle);
  await at.approvals.grant(left?.id ?? "");
  const file = join(at.home, "approved", `${left?.id}.json`);
  const taken = file.replace(".json", ".0123456789abcdef.json");
  await Deno.rename(file, taken);
  assert.equal(await at.take(left?.id ?? ""), false);
  await at.approvals.pendingApprovals();
  assert.ok(Deno.statSync(taken).isFile);
  at.clock.now += 11 * MINUTE;
  await at.approvals.pendingApprovals();
  assert.deepEqual([...Deno.readDirSync(join(at.home, "approved"))], []);
});

Deno.test("a used approval is removed from the disk before its call runs", async () => {
  if (Deno.build.os === "windows") return;
  await using at = await fixture();
  const left = await at.approvals.saveForTerminal(at.approvals.open([subject()]).handle);
  await at.approvals.grant(left?.id ?? "");
  const order: string[] = [];
  const { remove } = Deno;
  const { sync } = Deno.FsFile.prototype;
  try {
    Deno.FsFile.prototype.sync = async function () {
      await sync.call(this);
      order.push("synced");
    };
    Deno.remove = async (path, options) => {
      await remove(path, options);
      order.push("removed");
    };
    assert.equal(await at.take(left?.id ?? ""), true);
    order.push("taken");
  } finally {
    Object.assign(Deno, { remove });
    Deno.FsFile.prototype.sync = sync;
  }
  assert.deepEqual(order, ["removed", "synced", "taken"]);
});

Deno.test("the oldest pending approvals are removed if their texts are too large (RX9)", async () => {
  await using at = await fixture();
  const leave = async (path: string, actor = "local") => {
    at.clock.now += 1;
    const one = { ...subject({ path, text: "x".repeat(6_000_000) }), actor };
    return (await at.approvals.saveForTerminal(at.approvals.open([one]).handle))?.id;
  };
  const others = await leave("a", "ci");
  const ids = [];
  for (const path of ["a", "b", "c"]) ids.push(await leave(path));
  const waiting = (await at.approvals.pendingApprovals()).map(({ id }) => id);
  assert.deepEqual(waiting, [others, ...ids.slice(1)]);
});

Deno.test("the oldest pending approval is removed if there are too many", async () => {
  await using at = await fixture();
  const paths = Array.from({ length: 51 }, (_, index) => `${index}`);
  for (const path of paths) {
    at.clock.now += 1;
    await at.approvals.saveForTerminal(at.approvals.open([subject({ path })]).handle);
  }
  const waiting = await at.approvals.pendingApprovals();
  assert.deepEqual(waiting.map(({ subjects }) => subjects[0]?.arguments.path), paths.slice(1));
});

Deno.test("the questions of one identity remove none of another's", async () => {
  await using at = await fixture();
  const leave = async (path: string, actor: string) => {
    at.clock.now += 1;
    return await at.approvals.saveForTerminal(
      at.approvals.open([subject({ path }, { actor })]).handle,
    );
  };
  const mine = await leave("mine", "local");
  for (const index of Array.from({ length: 51 }).keys()) await leave(`${index}`, "other");
  const waiting = await at.approvals.pendingApprovals();
  assert.deepEqual([waiting.length, waiting[0]?.id], [51, mine?.id]);
});

Deno.test("a pending file whose content does not match its name approves nothing", async () => {
  await using at = await fixture();
  const left = await at.approvals.saveForTerminal(at.approvals.open([subject()]).handle);
  const file = join(at.home, "pending", `${left?.id}.json`);
  const good = await Deno.readTextFile(file);
  for (const bad of [good.replace("a.txt", "b.txt"), "{", '{"subjects": []}', "null"]) {
    await Deno.writeTextFile(file, bad);
    await assert.rejects(at.approvals.grant(left?.id ?? ""), { code: "APPROVAL_STALE" });
    assert.match(at.warnings.join(), /^Cannot use /);
  }
  const approved = join(at.home, "approved");
  await Deno.mkdir(approved, { recursive: true });
  for (const bad of ["{", "null", "{}", '{"asked": 1, "expires": 2}']) {
    await Deno.writeTextFile(join(approved, `${left?.id}.json`), bad);
    assert.equal(await at.take(left?.id ?? ""), false);
  }
});

Deno.test("only this user can read pending approvals", async () => {
  if (Deno.build.os === "windows") return;
  await using at = await fixture();
  const left = await at.approvals.saveForTerminal(at.approvals.open([subject()]).handle);
  const modes = ["pending", join("pending", `${left?.id}.json`)].map((name) =>
    (Deno.statSync(join(at.home, name)).mode ?? 0) & 0o777
  );
  assert.deepEqual(modes, [0o700, 0o600]);
});

Deno.test("only one of many concurrent callers takes an approval, in one process or several", async () => {
  await using at = await fixture();
  const id = digestOf([subject()]);
  const given = async () => {
    const left = await at.approvals.saveForTerminal(at.approvals.open([subject()]).handle);
    await at.approvals.grant(left?.id ?? "");
  };
  for (let round = 0; round < 20; round++) {
    await given();
    const taken = await Promise.all(Array.from({ length: 8 }, () => at.take(id)));
    assert.equal(taken.filter((got) => got).length, 1);
  }
  at.clock.now = Date.now();
  await given();
  const outputs = await race([1, 2, 3, 4].map(() => ["take", at.home, id]));
  assert.deepEqual(outputs.map((text) => text.trim()).sort(), [
    "terminal",
    "undefined",
    "undefined",
    "undefined",
  ]);
});

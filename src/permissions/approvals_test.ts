import assert from "node:assert/strict";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import type { Reply } from "../core/call.ts";
import type { Json, JsonObject } from "../core/json.ts";
import { toolId } from "../core/tool_id.ts";
import { Approvals } from "./approvals.ts";
import { race } from "./child_test.ts";
import { digestOf, type Subject } from "./subject.ts";

const MINUTE = 60_000;

function subject(given: JsonObject = { path: "a.txt" }, changes: Partial<Subject> = {}): Subject {
  return {
    tool: toolId("filesystem", "write_file"),
    arguments: given,
    definition: "d1",
    rules: "r1",
    actor: "local",
    workspace: "/w",
    ...changes,
  };
}

async function fixture() {
  const home = await Deno.makeTempDir();
  const warnings: string[] = [];
  const clock = { now: Date.now() };
  const warn = (message: string) => warnings.push(message);
  const approvals = new Approvals(home, { warn, now: () => clock.now, ttl: 10 * MINUTE });
  return {
    home,
    warnings,
    clock,
    approvals,
    take: async (id: string) => await approvals.said(undefined, id) === "terminal",
    /** Asks, lets a second go by, and answers. */
    answered: (asked: Subject, reply: string, about: Subject = asked) => {
      const { handle } = approvals.open([asked], { always: "fs:write" });
      clock.now += 1_000;
      return approvals.settle({ handle, reply: reply as Reply }, digestOf([about]));
    },
    [Symbol.asyncDispose]: () => Deno.remove(home, { recursive: true }),
  };
}

Deno.test("settle() gives each of the four answers to what was asked", async () => {
  await using at = await fixture();
  for (const reply of ["Yes", "Always", "No", "cancelled"]) {
    assert.equal(at.answered(subject(), reply), reply);
  }
  for (const other of ["yes", "", "accept", "toString"]) {
    assert.equal(at.answered(subject(), other), undefined);
  }
});

Deno.test("settle() takes a handle once, and knows no other", async () => {
  await using at = await fixture();
  const digest = digestOf([subject()]);
  const { handle } = at.approvals.open([subject()]);
  assert.equal(handle.length, 43);
  for (const other of ["", handle.slice(1), `${handle}A`, handle.toUpperCase(), "__proto__"]) {
    assert.equal(at.approvals.settle({ handle: other, reply: "Yes" }, digest), undefined);
  }
  assert.equal(at.approvals.settle({ handle, reply: "Yes" }, digest), "Yes");
  assert.equal(at.approvals.settle({ handle, reply: "Yes" }, digest), undefined);
});

Deno.test("settle() refuses an answer to another process's question", async () => {
  await using one = await fixture();
  await using other = await fixture();
  const { handle } = one.approvals.open([subject()]);
  const settled = other.approvals.settle({ handle, reply: "Yes" }, digestOf([subject()]));
  assert.equal(settled, undefined);
});

Deno.test("settle() refuses a question that was about anything else, and uses it up", async () => {
  await using at = await fixture();
  const changes: Partial<Subject>[] = [
    { tool: toolId("filesystem", "edit_file") },
    { tool: toolId("filesystem-evil", "write_file") },
    { arguments: { path: "b.txt" } },
    { arguments: {} },
    { definition: "d2" },
    { rules: "r2" },
    { actor: "other" },
    { workspace: "/x" },
    { facts: ["Kind: stdio"] },
  ];
  for (const change of changes) {
    const { handle } = at.approvals.open([subject()]);
    const about = digestOf([{ ...subject(), ...change }]);
    assert.equal(at.approvals.settle({ handle, reply: "Yes" }, about), undefined);
    const then = at.approvals.settle({ handle, reply: "Yes" }, digestOf([subject()]));
    assert.equal(then, undefined, JSON.stringify(change));
  }
});

Deno.test("digestOf() is the same for the same arguments alone, whatever the order of keys", () => {
  const value = fc.jsonValue({ maxDepth: 2 })
    .map((json) => JSON.parse(JSON.stringify(json)) as Json);
  fc.assert(fc.property(value, fc.oneof(value, fc.constant(undefined)), (one, drawn) => {
    const other = drawn === undefined ? one : drawn;
    const digests = [{ x: one, y: 1 }, { y: 1, x: other }].map((given) =>
      digestOf([subject(given)])
    );
    assert.equal(digests[0] === digests[1], isDeepStrictEqual(one, other));
  }));
});

Deno.test("digestOf() says no to arguments that no JSON can carry", () => {
  const deep = JSON.parse("[".repeat(100_000) + "]".repeat(100_000));
  for (const given of [{ x: Infinity }, { x: "\ud800" }, { x: deep }]) {
    assert.throws(() => digestOf([subject(given)]), { code: "BAD_ARGUMENTS" });
  }
});

Deno.test("settle() refuses after ten minutes, and when the clock went back", async () => {
  await using at = await fixture();
  const digest = digestOf([subject()]);
  for (
    const [passed, settled] of [[10 * MINUTE - 1, "Yes"], [10 * MINUTE, undefined], [-1, undefined]]
  ) {
    const { handle } = at.approvals.open([subject()]);
    at.clock.now += Number(passed);
    assert.equal(at.approvals.settle({ handle, reply: "Yes" }, digest), settled);
  }
});

Deno.test("a refusal within 300 ms counts as no channel", async () => {
  await using at = await fixture();
  const digest = digestOf([subject()]);
  for (const reply of ["No", "cancelled"] as const) {
    for (const [passed, settled] of [[0, "no-channel"], [299, "no-channel"], [300, reply]]) {
      const { handle } = at.approvals.open([subject()]);
      at.clock.now += Number(passed);
      assert.equal(at.approvals.settle({ handle, reply }, digest), settled);
    }
  }
});

Deno.test("Always is no answer where it was not offered", async () => {
  await using at = await fixture();
  const question = at.approvals.open([subject()]);
  assert.equal(question.always, false);
  const answer = { handle: question.handle, reply: "Always" } as const;
  assert.equal(at.approvals.settle(answer, digestOf([subject()])), undefined);
  const both = [subject(), subject({ path: "b" })];
  const asked = at.approvals.open(both, { always: "fs:write" });
  assert.equal(asked.always, false);
  assert.doesNotMatch(asked.text, /Always/);
});

Deno.test("the question says what Always would allow, where it is offered", async () => {
  await using at = await fixture();
  const { tool } = subject();
  const said = (always?: string) => at.approvals.open([subject()], { always }).text;
  assert.match(said(tool), /\n\nAlways allows this tool, with any arguments\n$/);
  assert.match(said(`${tool}({"path":"a"})`), /\n\nAlways allows exactly these arguments\n$/);
  assert.doesNotMatch(said(), /Always/);
});

Deno.test("the oldest question goes where there are too many", async () => {
  await using at = await fixture();
  const handles = Array.from({ length: 1_001 }, () => at.approvals.open([subject()]).handle);
  const settled = handles.map((handle) =>
    at.approvals.settle({ handle, reply: "Yes" }, digestOf([subject()]))
  );
  assert.deepEqual([settled[0], settled[1], settled[1_000]], [undefined, "Yes", "Yes"]);
});

Deno.test("open questions keep no more than a bounded number of characters alive", async () => {
  await using at = await fixture();
  const large = subject({ content: "x".repeat(8_000_000) });
  const first = at.approvals.open([large]);
  for (let count = 0; count < 8; count++) at.approvals.open([large]);
  assert.equal(await at.approvals.leave(first.handle), undefined);
});

Deno.test("a question too long for a client can only be answered at a terminal", async () => {
  await using at = await fixture();
  const long = subject({ content: "x".repeat(4_000) });
  const question = at.approvals.open([long], { always: "fs:write" });
  assert.equal(question.terminalOnly, true);
  assert.ok(question.text.length < 4_000);
  assert.match(question.text, /Server: "filesystem"/);
  at.clock.now += 1_000;
  const answer = { handle: question.handle, reply: "Yes" } as const;
  assert.equal(at.approvals.settle(answer, digestOf([long])), undefined);
  const again = at.approvals.open([long]);
  const left = await at.approvals.leave(again.handle);
  assert.ok(left?.text.includes("x".repeat(4_000)));
});

Deno.test("one question lists up to ten calls, and more are refused", async () => {
  await using at = await fixture();
  const calls = Array.from({ length: 10 }, (_, index) => subject({ path: `${index}` }));
  const question = at.approvals.open(calls);
  for (const index of calls.keys()) assert.match(question.text, new RegExp(`"path": "${index}"`));
  at.clock.now += 1_000;
  const answer = { handle: question.handle, reply: "Yes" } as const;
  assert.equal(at.approvals.settle(answer, digestOf(calls)), "Yes");
  assert.throws(() => at.approvals.open([...calls, subject()]), { code: "BAD_ARGUMENTS" });
});

Deno.test("ticket() answers for one call of an approved batch, once", async () => {
  await using at = await fixture();
  const ticket = at.approvals.ticket(subject());
  const other = at.approvals.ticket(subject());
  assert.equal(at.approvals.settle(other, digestOf([subject({ path: "b" })])), undefined);
  assert.equal(at.approvals.settle(ticket, digestOf([subject()])), "Yes");
  assert.equal(at.approvals.settle(ticket, digestOf([subject()])), undefined);
});

Deno.test("an approval given at a terminal lets the same call pass once", async () => {
  await using at = await fixture();
  const { handle } = at.approvals.open([subject()]);
  const left = await at.approvals.leave(handle);
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

Deno.test("leave() uses the handle up", async () => {
  await using at = await fixture();
  const { handle } = at.approvals.open([subject()]);
  await at.approvals.leave(handle);
  at.clock.now += 1_000;
  assert.equal(at.approvals.settle({ handle, reply: "Yes" }, digestOf([subject()])), undefined);
  assert.equal(await at.approvals.leave(handle), undefined);
});

Deno.test("refuse() takes what waits away, and grant() then finds nothing", async () => {
  await using at = await fixture();
  const left = await at.approvals.leave(at.approvals.open([subject()]).handle);
  await at.approvals.refuse(left?.id ?? "");
  await assert.rejects(at.approvals.grant(left?.id ?? ""), { code: "APPROVAL_STALE" });
  for (const id of ["", "../trust/x", "a".repeat(64)]) {
    await assert.rejects(at.approvals.grant(id), { code: "APPROVAL_STALE" });
  }
});

Deno.test("an id leads to no other file of the home", async () => {
  await using at = await fixture();
  const other = join(at.home, "trust", "x.json");
  await Deno.mkdir(join(at.home, "trust"));
  await Deno.mkdir(join(at.home, "pending"));
  await Deno.writeTextFile(other, "{}");
  await assert.rejects(at.approvals.refuse("../trust/x"), { code: "APPROVAL_STALE" });
  await assert.rejects(at.approvals.grant("../trust/x"), { code: "APPROVAL_STALE" });
  assert.equal(await Deno.readTextFile(other), "{}");
});

Deno.test("what expired can neither be granted nor taken, and is removed", async () => {
  await using at = await fixture();
  const leave = async () => await at.approvals.leave(at.approvals.open([subject()]).handle);
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

Deno.test("what a killed process left behind passes nothing, and goes when it is old", async () => {
  await using at = await fixture();
  const left = await at.approvals.leave(at.approvals.open([subject()]).handle);
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

Deno.test("an approval that was used up is gone from the disk before its call runs", async () => {
  if (Deno.build.os === "windows") return;
  await using at = await fixture();
  const left = await at.approvals.leave(at.approvals.open([subject()]).handle);
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

Deno.test("the oldest waiting approval goes where there are too many", async () => {
  await using at = await fixture();
  const paths = Array.from({ length: 51 }, (_, index) => `${index}`);
  for (const path of paths) {
    at.clock.now += 1;
    await at.approvals.leave(at.approvals.open([subject({ path })]).handle);
  }
  const waiting = await at.approvals.pendingApprovals();
  assert.deepEqual(waiting.map(({ subjects }) => subjects[0]?.arguments.path), paths.slice(1));
});

Deno.test("a waiting file that shows another call than its name stands for approves nothing", async () => {
  await using at = await fixture();
  const left = await at.approvals.leave(at.approvals.open([subject()]).handle);
  const file = join(at.home, "pending", `${left?.id}.json`);
  const good = await Deno.readTextFile(file);
  for (const bad of [good.replace("a.txt", "b.txt"), "{", '{"subjects": []}', "null"]) {
    await Deno.writeTextFile(file, bad);
    await assert.rejects(at.approvals.grant(left?.id ?? ""), { code: "APPROVAL_STALE" });
    assert.match(at.warnings.join(), /approves nothing/);
  }
  const approved = join(at.home, "approved");
  await Deno.mkdir(approved, { recursive: true });
  for (const bad of [good.replace("a.txt", "b.txt"), "{"]) {
    await Deno.writeTextFile(join(approved, `${left?.id}.json`), bad);
    assert.equal(await at.take(left?.id ?? ""), false);
  }
});

Deno.test("what waits is for this person alone", async () => {
  if (Deno.build.os === "windows") return;
  await using at = await fixture();
  const left = await at.approvals.leave(at.approvals.open([subject()]).handle);
  const modes = ["pending", join("pending", `${left?.id}.json`)].map((name) =>
    (Deno.statSync(join(at.home, name)).mode ?? 0) & 0o777
  );
  assert.deepEqual(modes, [0o700, 0o600]);
});

Deno.test("of many that take one approval, in one process or several, one gets it", async () => {
  await using at = await fixture();
  const id = digestOf([subject()]);
  const given = async () => {
    const left = await at.approvals.leave(at.approvals.open([subject()]).handle);
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

import assert from "node:assert/strict";
import { join } from "node:path";
import { toolId } from "../core/tool_id.ts";
import { WorkspaceRules } from "./rule_writer.ts";
import { DEFAULTS, race, startChild } from "./approvals_child_test.ts";
import { hashOf, TrustStore } from "./trust.ts";

const TOOL = toolId("fs", "write");
const MANY_STEPS = 200;

async function fixture(text?: string) {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const work = join(root, "work");
  const file = join(work, ".pml.json");
  const home = join(root, "home");
  await Deno.mkdir(work);
  const trusted = new TrustStore(home, { warn: assert.fail });
  const now = () => Deno.readTextFileSync(file);
  const hash = () => hashOf(Deno.readFileSync(file));
  const write = async (content: string) => {
    await Deno.writeTextFile(file, content);
    await trusted.trust({ path: file, hash: hash(), servers: { db: "kept" } });
  };
  if (text !== undefined) await write(text);
  return {
    root,
    work,
    file,
    home,
    trusted,
    now,
    write,
    rules: new WorkspaceRules(trusted, DEFAULTS),
    listed: new WorkspaceRules(trusted, DEFAULTS, true),
    allow: (rule: string = TOOL) =>
      new WorkspaceRules(trusted, DEFAULTS).add(file, { rules: [rule] }),
    isTrusted: () => trusted.isTrusted(file, hash()),
    files: () => [...Deno.readDirSync(work)].map((entry) => entry.name),
    [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }),
  };
}

Deno.test("WorkspaceRules.add() adds one entry, removes an equal ask rule, and keeps everything else", async () => {
  const before = `{
  // Who wrote this
  "version": 1, "unknown": { "b": 1, "a": [ 2,3 ] },
  "permissions": {
    "ask": ["*", "fs:write", "fs:*"], /* careful */
    "allow": [
      "git:log", // the log
      "git:diff" // the diff
    ],
    "deny": ["shell:*"]
  }
}
`;
  await using at = await fixture(before);
  if (Deno.build.os !== "windows") await Deno.chmod(at.file, 0o640);
  await at.allow();
  assert.equal(
    at.now(),
    before.replace('"*", "fs:write", "fs:*"', '"*", "fs:*"')
      .replace('"git:log"', '"fs:write",\n      "git:log"'),
  );
  assert.equal(await at.isTrusted(), true);
  assert.equal((await at.trusted.record(at.file))?.servers.db, "kept");
  if (Deno.build.os !== "windows") assert.equal((Deno.statSync(at.file).mode ?? 0) & 0o777, 0o640);
  assert.deepEqual(at.files(), [".pml.json"]);
});

Deno.test("WorkspaceRules.add() changes nothing if the tool is already allowed", async () => {
  const text = '{"version":1,"permissions":{"allow":["fs:write"]}}';
  await using at = await fixture(text);
  const { ino } = Deno.statSync(at.file);
  await at.allow();
  assert.deepEqual([at.now(), Deno.statSync(at.file).ino], [text, ino]);
});

Deno.test("WorkspaceRules.add() also writes the defaults if the file has no permissions", async () => {
  await using at = await fixture('{\n\t"version": 1\n}\n');
  await at.allow();
  const permissions = { ...DEFAULTS, allow: ["fs:write", ...DEFAULTS.allow] };
  const wanted = JSON.stringify({ version: 1, permissions }, null, "\t");
  assert.equal(at.now(), `${wanted}\n`);
  assert.equal(await at.isTrusted(), true);
});

Deno.test("WorkspaceRules.add() creates and trusts a missing file", async () => {
  await using at = await fixture();
  await at.allow();
  assert.deepEqual(JSON.parse(at.now()), {
    version: 1,
    permissions: { ...DEFAULTS, allow: ["fs:write", ...DEFAULTS.allow] },
  });
  assert.equal(await at.isTrusted(), true);
  assert.deepEqual(at.files(), [".pml.json"]);
});

Deno.test("WorkspaceRules.add() does not change an untrusted file", async () => {
  const planted = '{"version":1,"private_mcps":{}}';
  await using at = await fixture('{"version":1}');
  await Deno.writeTextFile(at.file, planted);
  await assert.rejects(at.allow(), { code: "WORKSPACE_UNTRUSTED" });
  assert.equal(at.now(), planted);
  assert.equal(await at.isTrusted(), false);
  await at.listed.add(at.file, { rules: [TOOL] });
  assert.match(at.now(), /fs:write/);
  // `PML_TRUST` creates no record: without the variable the trust is gone.
  assert.equal(await at.isTrusted(), false);
});

Deno.test("WorkspaceRules.add() does not write through a link", async () => {
  await using at = await fixture('{"version":1}');
  const other = join(at.root, "other");
  await Deno.mkdir(other);
  const link = join(other, ".pml.json");
  await Deno.symlink(at.file, link);
  await assert.rejects(at.listed.add(link, { rules: [TOOL] }), {
    code: "CONFIG_INVALID",
  });
  const inside = join(at.root, "linked", ".pml.json");
  await Deno.symlink(at.work, join(at.root, "linked"));
  await assert.rejects(at.listed.add(inside, { rules: [TOOL] }), {
    code: "WORKSPACE_UNTRUSTED",
  });
  assert.equal(at.now(), '{"version":1}');
});

Deno.test("a concurrent change by another program is kept", async () => {
  await using at = await fixture('{"version":1}');
  const edited = '{"version":1,"intent":"mine"}';
  const { chmod } = Deno;
  try {
    // The mode is set on the temporary file, just before it replaces the other file.
    Deno.chmod = async (path, mode) => {
      await chmod(path, mode);
      if (String(path).endsWith(".pml-tmp") && String(path).startsWith(at.work)) {
        await Deno.writeTextFile(at.file, edited);
      }
    };
    await assert.rejects(at.allow(), /changed meanwhile/);
  } finally {
    Object.assign(Deno, { chmod });
  }
  assert.equal(at.now(), edited);
  assert.deepEqual(at.files(), [".pml.json"]);
});

Deno.test("a file that is created concurrently is not replaced", async () => {
  await using at = await fixture();
  const { link } = Deno;
  try {
    Deno.link = async (from, to) => {
      await Deno.writeTextFile(at.file, "planted");
      await link(from, to);
    };
    await assert.rejects(at.allow(), Deno.errors.AlreadyExists);
  } finally {
    Object.assign(Deno, { link });
  }
  assert.equal(at.now(), "planted");
  assert.equal(await at.isTrusted(), false);
});

Deno.test("WorkspaceRules.add() rejects a file that it cannot read or that it would parse differently after the edit", async () => {
  await using at = await fixture();
  const bad = [
    "",
    "[]",
    "{",
    '{"permissions": []}',
    '{"permissions": {"allow": "*"}}',
    '{"permissions": {"allow": []}, "permissions": {"allow": []}}',
    '{"permissions": {"allow": [], "allow": ["x:y"]}}',
  ];
  for (const text of bad) {
    await at.write(text);
    await assert.rejects(at.allow(), { code: "CONFIG_INVALID" }, text);
    assert.equal(at.now(), text);
  }
  await Deno.writeFile(at.file, new Uint8Array([...new TextEncoder().encode("{} // "), 0xff]));
  await assert.rejects(at.listed.add(at.file, { rules: [TOOL] }), TypeError);
});

Deno.test("a failed write is reported and leaves the file unchanged", async () => {
  const text = '{"version":1}';
  await using at = await fixture(text);
  const missing = join(at.root, "missing", ".pml.json");
  await assert.rejects(at.rules.add(missing, { rules: [TOOL] }), Deno.errors.NotFound);
  if (Deno.build.os === "windows") return;
  const { open } = Deno;
  try {
    Deno.open = (path, options) =>
      String(path).endsWith(".pml-tmp") && String(path).startsWith(at.work)
        ? open("/dev/full", { write: true })
        : open(path, options);
    await assert.rejects(at.allow(), /No space left/);
  } finally {
    Object.assign(Deno, { open });
  }
  assert.equal(at.now(), text);
  assert.equal(await at.isTrusted(), true);
  assert.deepEqual(at.files(), [".pml.json"]);
});

Deno.test("a process that is killed at any step leaves the old or the new file, trusted (PM13)", async () => {
  const before = '{\n  "version": 1,\n  "permissions": { "allow": [] } // mine\n}\n';
  const after =
    '{\n  "version": 1,\n  "permissions": {\n    "allow": [\n      "fs:write"\n    ]\n  } // mine\n}\n';
  await using at = await fixture(before);
  const seen = { old: 0, new: 0, lived: 0 };
  for (let step = 1; step <= MANY_STEPS && seen.lived === 0; step++) {
    await at.write(before);
    const child = startChild("die", at.home, at.file, "fs:write", String(step));
    await child.process.stdin.close();
    if ((await child.output).trim() === "lived") seen.lived += 1;
    await child.process.status;
    const found = at.now();
    assert.ok(found === before || found === after, `torn at ${step}: ${found}`);
    assert.equal(await at.isTrusted(), true, `trust lost at ${step}`);
    seen[found === after ? "new" : "old"] += 1;
  }
  // The last run had no step left to stop at, so every step was tried.
  assert.ok(seen.lived === 1 && seen.old > 30 && seen.new > 15, JSON.stringify(seen));
  await at.allow(toolId("fs", "read"));
  assert.deepEqual(at.files(), [".pml.json"]);
});

Deno.test("a process that is killed while it creates the file leaves no file or a complete one", async () => {
  await using at = await fixture();
  const seen = { none: 0, whole: 0, lived: 0 };
  for (let step = 1; step <= MANY_STEPS && seen.lived === 0; step += 2) {
    const child = startChild("die", at.home, at.file, "fs:write", String(step));
    await child.process.stdin.close();
    if ((await child.output).trim() === "lived") seen.lived += 1;
    await child.process.status;
    const made = at.files().includes(".pml.json");
    seen[made ? "whole" : "none"] += 1;
    if (!made) continue;
    assert.deepEqual(JSON.parse(at.now()).permissions.allow[0], "fs:write");
    assert.equal(await at.isTrusted(), true);
    await Deno.remove(at.file);
  }
  assert.ok(seen.lived === 1 && seen.none > 10 && seen.whole > 1, JSON.stringify(seen));
});

Deno.test("four concurrent processes lose no entry and keep the trust (PM13)", async () => {
  await using at = await fixture('{"version": 1, "permissions": {"allow": []}}');
  await race(["a", "b", "c", "d"].map((name) => ["allow", at.home, at.file, name, "10"]));
  const { allow } = JSON.parse(at.now()).permissions;
  assert.equal(new Set(allow).size, 40);
  assert.equal(await at.isTrusted(), true);
});

Deno.test("WorkspaceRules.add() does not make a file too long to be read", async () => {
  const allow = [`fs:write(${JSON.stringify({ a: "x".repeat(3_000) })})`];
  const text = (length: number) =>
    JSON.stringify({ version: 1, permissions: { allow }, x: "x".repeat(length) });
  await using at = await fixture(text(1_000_000 - text(0).length - 20));
  const before = at.now();
  await assert.rejects(at.allow("fs:write_more_and_more"), { code: "CONFIG_INVALID" });
  assert.equal(at.now(), before);
  assert.ok(await at.isTrusted());
});

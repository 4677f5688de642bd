import assert from "node:assert/strict";
import { join } from "node:path";
import { environmentOf } from "../config/env.ts";
import type { JsonObject } from "../core/json.ts";
import { type ToolId, toolId } from "../core/tool_id.ts";
import { Redactor } from "../audit/redact.ts";
import { NO_WARNINGS } from "../io/private_files.ts";
import { hashOf } from "./trust.ts";
import { AlwaysRules } from "./always_rule.ts";
import { Policy } from "./policy.ts";

const EXEC = toolId("shell", "exec");
const WRITE = toolId("filesystem", "write_file");
const PARTS = {
  modules: { integrityOf: () => undefined },
  log: NO_WARNINGS,
  redactor: new Redactor(),
};

/** A trusted workspace with these rules, in which `shell:exec` runs code. */
async function open(pml: object) {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const [ws, home] = [join(root, "ws"), join(root, "home")];
  await Deno.mkdir(ws);
  const file = join(ws, ".pml.json");
  await Deno.writeTextFile(file, JSON.stringify({ version: 1, ...pml }));
  const variables = { HOME: root, PML_HOME: home, PML_WORKSPACE: ws, PML_TRUST: file };
  const policy = await Policy.open(environmentOf({ ...variables, PML_REGISTRIES: "none" }), {
    cwd: ws,
  }, {
    ...PARTS,
    builtins: new Set(["filesystem", "shell"]),
  });
  return {
    policy,
    always: new AlwaysRules(policy, new Set([EXEC])),
    ws,
    permissions: async () => JSON.parse(await Deno.readTextFile(file)).permissions,
    [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }),
  };
}

Deno.test("always() allows only equal arguments of a tool that runs code, and any of another tool", async () => {
  const ask = ['shell:exec({ "command": "ls", "args": [] })', "shell:exec"];
  await using at = await open({ permissions: { allow: [], ask } });
  const { policy } = at;
  const call = { id: EXEC, arguments: { command: "ls", args: [] } };
  const rule = 'shell:exec({"args":[],"command":"ls"})';
  assert.equal(at.always.offeredRule(call), rule);
  await at.always.add(call);
  assert.deepEqual(await at.permissions(), { allow: [rule], ask: ["shell:exec"] });
  assert.equal(policy.now.judge(EXEC, call.arguments).kind, "allow");
  assert.equal(policy.now.judge(EXEC, { command: "ls", args: ["/"] }).kind, "ask");
  const write = { id: WRITE, arguments: { path: "a" } };
  assert.equal(at.always.offeredRule(write), WRITE);
  await at.always.add(write);
  assert.deepEqual((await at.permissions()).allow, [WRITE, rule]);
});

Deno.test("always() allows only equal arguments if a server may run commands", async () => {
  await using at = await open({ grants: { build: { run: ["make"] }, other: { run: [] } } });
  const offered = (server: string) =>
    at.always.offeredRule({ id: toolId(server, "go"), arguments: { a: 1 } });
  assert.equal(offered("build"), 'build:go({"a":1})');
  assert.equal(offered("other"), "other:go");
});

Deno.test("AlwaysRules offers only rules that can be written and take effect", async () => {
  const ask = ["shell:exec(command=rm)", "filesystem:write_file(path=src/**)"];
  await using at = await open({ permissions: { ask, deny: ["shell:exec(command=no)"] } });
  const exec = (args: JsonObject) => at.always.offeredRule({ id: EXEC, arguments: args });
  assert.ok(exec({ command: "ls" }));
  assert.equal(exec({ command: "rm" }), undefined);
  assert.equal(exec({ command: "no" }), undefined);
  assert.equal(exec({ command: "ls", args: ["x".repeat(4_096)] }), undefined);
  assert.equal(exec({ command: "ls", args: ["\ud800"] }), undefined);
  const write = (path: string) => at.always.offeredRule({ id: WRITE, arguments: { path } });
  // Rules resolve paths in this workspace, as for a call.
  assert.equal(write("src/a"), undefined);
  assert.equal(write("docs/a"), WRITE);
  await assert.rejects(at.always.add({ id: EXEC, arguments: { a: "x".repeat(5_000) } }));
});

Deno.test("addTools() writes one rule for each tool in one edit, or none", async () => {
  await using at = await open({ permissions: { ask: ["*"] } });
  const tools = ["a", "b", "c"].map((tool) => toolId("fs", tool));
  const covered = (id: ToolId) => ({ id, effect: { reads: true, destroys: false } });
  await at.always.addTools(tools.map(covered));
  assert.deepEqual(await at.permissions(), { allow: tools, ask: ["*"] });
  // The answer would cover more than was shown: `shell:exec` has a rule for its arguments only.
  await assert.rejects(at.always.addTools([toolId("fs", "d"), EXEC].map(covered)), TypeError);
  assert.deepEqual((await at.permissions()).allow, tools);
});

Deno.test("deny() writes a deny rule that wins at once, where the file is trusted", async () => {
  await using at = await open({ permissions: { allow: ["filesystem:*"] } });
  assert.equal(at.always.denialOf({ id: WRITE }), WRITE);
  assert.equal(at.always.denialOf({ id: toolId("fs", "@tools") }), undefined);
  await at.always.deny({ id: WRITE });
  assert.deepEqual(await at.permissions(), { allow: ["filesystem:*"], deny: [WRITE] });
  assert.equal(at.policy.now.judge(WRITE, {}).kind, "deny");
});

Deno.test("rules resolve paths in the workspace", async () => {
  await using at = await open({ permissions: { allow: ["filesystem:write_file(path=src/**)"] } });
  const judged = (path: string) => at.policy.now.judge(WRITE, { path }).kind;
  assert.deepEqual(
    [judged("src/a"), judged(join(at.ws, "src/a")), judged("src/../a"), judged("/src/a")],
    ["allow", "allow", "ask", "ask"],
  );
});

const GOOD = '{"version": 1}';
const EVIL = '{"version": 1, "permissions": {"allow": ["filesystem:*"]}}';

Deno.test("settle() never applies the trust in one file to the next", async () => {
  const root = await Deno.realPath(await Deno.makeTempDir());
  await using _ = { [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }) };
  const [ws, home] = [join(root, "ws"), join(root, "home")];
  const file = join(ws, ".pml.json");
  await Deno.mkdir(ws);
  const private_mcps = { own: { type: "deno", path: "own.ts" } };
  await Deno.writeTextFile(file, JSON.stringify({ ...JSON.parse(GOOD), private_mcps }));
  const variables = { HOME: root, PML_HOME: home, PML_WORKSPACE: ws, PML_TRUST: file };
  const policy = await Policy.open(environmentOf({ ...variables, PML_REGISTRIES: "none" }), {
    cwd: ws,
  }, {
    ...PARTS,
    builtins: new Set(["filesystem"]),
  });
  assert.equal(policy.now.trust.trusted, true);
  // Settling a listed file with a module takes this lock, so the first `settle()` waits while the
  // next file is read.
  const lock = join(home, "trust", `${hashOf(file)}.json.lock`);
  using held = await Deno.open(lock, { read: true, write: true });
  await held.lock(true);
  const first = policy.settle();
  await Deno.writeTextFile(join(root, "evil.json"), EVIL);
  await Deno.remove(file);
  // A linked file is never trusted.
  await Deno.symlink(join(root, "evil.json"), file);
  await policy.reload();
  await held.unlock();
  await first;
  assert.equal(policy.now.loaded.file?.hash, `sha256-${hashOf(EVIL)}`);
  assert.equal(policy.now.trust.trusted, false);
  assert.equal(policy.now.judge(toolId("filesystem", "write_file")).kind, "ask");
});

Deno.test("AlwaysRules offers nothing that a company's ask rule matches, and no rule overrides that", async () => {
  await using at = await open({ permissions: { allow: [WRITE, "filesystem:*", "shell:exec"] } });
  const { policy } = at;
  const path = join(at.ws, "..", "policy.yaml");
  const ask = [`${WRITE}(path=src/**)`, "shell:*"];
  await Deno.writeTextFile(path, JSON.stringify({ permissions: { ask } }), { mode: 0o644 });
  const { environment } = policy.now.loaded;
  const again = await Policy.open({ ...environment, policy: path }, { cwd: at.ws }, {
    ...PARTS,
    builtins: new Set(["filesystem", "shell"]),
  });
  const always = new AlwaysRules(again, new Set());
  const cases = [["src/a", "ask"], ["docs/a", "allow"]] as const;
  for (const [path, kind] of cases) {
    const said = again.now.judge(WRITE, { path });
    assert.equal(said.kind, kind);
    assert.equal(policy.now.judge(WRITE, { path }).kind, "allow");
    const offered = always.offeredRule({ id: WRITE, arguments: { path } });
    assert.equal(offered, kind === "ask" ? undefined : WRITE);
  }
  const exec = { id: EXEC, arguments: { command: "ls" } };
  assert.equal(again.now.judge(EXEC, exec.arguments).kind, "ask");
  assert.equal(always.offeredRule(exec), undefined);
  assert.deepEqual(again.now.judge(WRITE).depends, [ask[0]]);
});

Deno.test("refresh() applies a changed rule although an earlier attempt to apply it failed", async () => {
  await using at = await open({ permissions: { allow: ["filesystem:*"] } });
  const { policy, ws } = at;
  const file = join(ws, ".pml.json");
  const trust = join(policy.home, "trust");
  const deny = { version: 1, permissions: { deny: ["filesystem:*"] }, private_mcps: {} };
  const private_mcps = { own: { type: "deno", path: "own.ts" } };
  await Deno.writeTextFile(file, JSON.stringify({ ...deny, private_mcps }));
  // A listed file with a module is approved in this folder.
  await Deno.mkdir(policy.home, { recursive: true });
  await Deno.writeTextFile(trust, "");
  await assert.rejects(policy.refresh());
  assert.equal(policy.isCurrent(), false);
  await Deno.remove(trust);
  await policy.refresh();
  assert.equal(policy.now.judge(WRITE).kind, "deny");
});

Deno.test("an approval that fails does not hide a change of rules", async () => {
  const root = await Deno.realPath(await Deno.makeTempDir());
  await using _ = { [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }) };
  const [ws, home] = [join(root, "ws"), join(root, "home")];
  await Deno.mkdir(ws);
  await Deno.mkdir(home);
  await Deno.writeTextFile(join(ws, ".pml.json"), EVIL);
  const variables = { HOME: root, PML_HOME: home, PML_WORKSPACE: ws };
  const policy = await Policy.open(environmentOf({ ...variables, PML_REGISTRIES: "none" }), {
    cwd: ws,
  }, { ...PARTS, builtins: new Set(["filesystem"]) });
  const unapproved = await policy.findUnapproved();
  // The file changes while the user reads the question, and so do the rules of the user.
  await Deno.writeTextFile(join(ws, ".pml.json"), `${EVIL} `);
  await Deno.writeTextFile(join(home, "config.yaml"), 'permissions: { deny: ["filesystem:*"] }');
  await assert.rejects(async () => await unapproved?.accept(), { code: "APPROVAL_STALE" });
  await policy.refresh();
  assert.equal(policy.now.judge(WRITE).kind, "deny");
});

Deno.test("refresh() never moves the policy back from the folder that a client chose", async () => {
  await using at = await open({});
  const { policy, ws } = at;
  const other = join(ws, "..", "other");
  await Deno.mkdir(other);
  await Promise.all([policy.refresh(), policy.moveTo(other)]);
  assert.equal(policy.root, other);
  assert.equal(policy.isCurrent(), false);
  await Deno.writeTextFile(join(ws, ".pml.json"), EVIL);
  const again = policy.refresh();
  await Promise.all([policy.moveTo(ws), again]);
  assert.equal(policy.root, ws);
  await Deno.writeTextFile(join(ws, ".pml.json"), GOOD);
  await policy.refresh();
  assert.equal(policy.root, ws);
});

Deno.test("refresh() takes over the approved code of modules from another process", async () => {
  await using at = await open({ permissions: { allow: [] } });
  const { policy, ws } = at;
  const file = join(ws, ".pml.json");
  await policy.store.approve(file, () => ({ own: "sha256-1" }));
  await policy.refresh();
  assert.equal(policy.approvedCode("own"), "sha256-1");
});

Deno.test("an ask rule of a company applies although a variable for the program is allowed", async () => {
  const args = { command: "ls", env: { LD_PRELOAD: "/a.so" } };
  await using at = await open({
    permissions: { allow: ["shell:exec(command=ls,env=LD_PRELOAD)"] },
  });
  const { policy } = at;
  assert.equal(policy.now.judge(EXEC, args).kind, "allow");
  const path = join(at.ws, "..", "policy.yaml");
  const { environment } = policy.now.loaded;
  for (const [ask, kind] of [["shell:*", "ask"], ["filesystem:*", "allow"]] as const) {
    await Deno.writeTextFile(path, JSON.stringify({ permissions: { ask: [ask] } }), {
      mode: 0o644,
    });
    const again = await Policy.open({ ...environment, policy: path }, { cwd: at.ws }, {
      ...PARTS,
      builtins: new Set(["filesystem", "shell"]),
    });
    assert.equal(again.now.judge(EXEC, args).kind, kind);
  }
});

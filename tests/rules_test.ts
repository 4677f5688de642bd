/**
 * Where rules are written and where they apply: `pml rules`, `pml allow --remove`, `pml why`, and the
 * rules of a server that is removed.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { toolId } from "../src/core/tool_id.ts";
import { MultiToolRules } from "../src/policy/multi_tool_rules.ts";
import { codeOf, textOf } from "./attacks/oracles.ts";
import { assertGolden } from "./kit/golden.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml, runPmlOnTerminal, type TerminalInput } from "./kit/run.ts";
import { tinyServer } from "./kit/tiny_server.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const CRM = { command: "node", args: ["crm.mjs"] };
const OWN = `permissions:
  allow: ["crm:*", "filesystem:write_file"] # my rules
mcpServers:
  crm: { command: node, args: ["\${workspaceFolder}/crm.mjs"] }
`;
const WRITE: TerminalInput = [/Type "write"/, "write"];

async function scene(options: Parameters<typeof makeWorkspace>[0] = {}): Promise<Workspace> {
  const ws = await makeWorkspace({ files: { "crm.mjs": tinyServer('"fine"') }, ...options });
  await writeFile(join(ws.home, "config.yaml"), OWN, { mode: 0o600 });
  return ws;
}

/** Returns the permissions of the user's file. */
async function ownRules(ws: Workspace) {
  return parse(await readFile(join(ws.home, "config.yaml"), "utf8")).permissions;
}

/** Returns the permissions of the workspace file. */
async function sharedRules(ws: Workspace) {
  return JSON.parse(await readFile(ws.file(".pml.json"), "utf8")).permissions;
}

async function rulesOf(ws: Workspace) {
  return JSON.parse((await runPml(ws, ["rules", "--json"])).stdout).rules;
}

Deno.test("an allow rule * covers the first call of a server in a file, and not shell", async () => {
  const permissions = { allow: ["*"] };
  await using ws = await scene({ pml: { version: 1, permissions, mcpServers: { crm: CRM } } });
  await writeFile(join(ws.home, "config.yaml"), "");
  const first = await runPml(ws, ["call", "crm:tell"]);
  assert.deepEqual([first.code, first.stdout.trim()], [0, '"fine"'], first.stderr);
  const shell = await runPml(ws, ["call", "shell:exec", "command=ls"]);
  assert.match(shell.stderr, /APPROVAL_REQUIRED/);
  const shown = JSON.parse((await runPml(ws, ["allow", "*", "--no-workspace", "--json"])).stdout);
  assertGolden("allow/every tool", shown.warnings.join("\n"));
  const other = JSON.parse((await runPml(ws, ["deny", "*", "--json"])).stdout);
  assert.equal(other.warnings, undefined);
});

Deno.test("a server of the workspace with the name of the user's own asks, and pml why and pml doctor say so", async () => {
  await using ws = await scene({ pml: { version: 1, mcpServers: { crm: CRM } } });
  const why = await runPml(ws, ["why", "crm:tell"]);
  assertGolden("why/an allow rule of the user that does not cover the server", why.stdout);
  const { uncovered, verdict } = JSON.parse(
    (await runPml(ws, ["why", "crm:tell", "--json"])).stdout,
  );
  assert.deepEqual([verdict, uncovered.rule], ["asks", "crm:*"]);
  const doctor = JSON.parse((await runPml(ws, ["doctor", "--json"])).stdout);
  const rules = doctor.findings.filter(({ name }: { name: string }) => name === "rule");
  assert.equal(rules.length, 1);
  assert.match(rules[0].message, /crm:\*/);
  const listed = await rulesOf(ws);
  assert.match(listed.find(({ rule }: { rule: string }) => rule === "crm:*").note, /defines it/);
  const blocked = await runPml(ws, ["call", "crm:tell"]);
  assert.equal(blocked.code, 1);
  assert.match(blocked.stderr, /APPROVAL_REQUIRED/);
});

Deno.test("pml allow writes a rule for a server of the workspace into .pml.json, and shows its reach", async () => {
  await using ws = await scene({ pml: { version: 1, permissions: {}, mcpServers: { crm: CRM } } });
  const shown = JSON.parse((await runPml(ws, ["allow", "crm", "--json"])).stdout);
  assert.deepEqual([shown.path, shown.reach], [ws.file(".pml.json"), "workspace"]);
  const written = await runPmlOnTerminal(ws, ["allow", "crm"], { typed: [WRITE] });
  assert.equal(written.code, 0, written.stdout);
  assert.match(written.stdout, /This is written in [^]*in this workspace/);
  assert.match(written.stdout, /Written in [^]*in this workspace/);
  assert.deepEqual((await sharedRules(ws)).allow, ["crm:*"]);
  await using bare = await scene({ pml: { version: 1, mcpServers: { crm: CRM } } });
  await writeFile(join(bare.home, "config.yaml"), "");
  const first = JSON.parse((await runPml(bare, ["allow", "crm", "--json"])).stdout);
  assert.equal(first.reach, "workspace");
  const own = JSON.parse((await runPml(ws, ["allow", "git:log", "--json"])).stdout);
  assert.deepEqual([own.path, own.reach], [join(ws.home, "config.yaml"), "user"]);
  const chosen = await runPml(ws, ["allow", "crm:x", "--no-workspace", "--json"]);
  assert.equal(JSON.parse(chosen.stdout).reach, "user");
});

Deno.test("pml approve writes Always for a server of the user's file there, with its reach", async () => {
  await using ws = await scene({ pml: { version: 1 } });
  const before = await readFile(ws.file(".pml.json"), "utf8");
  await writeFile(join(ws.home, "config.yaml"), OWN.replace('"crm:*", ', ""));
  await using pml = new RawStdio(ws, { era: "2026-07-28" });
  await pml.open();
  const result = await pml.callTool("crm__tell", {});
  assert.equal(codeOf(result), "APPROVAL_REQUIRED", textOf(result));
  const approved = await runPmlOnTerminal(ws, ["approve"], {
    typed: [[/Approve exactly this call\?.*\[N\] no/s, "a"]],
  });
  assert.equal(approved.code, 0, approved.stdout);
  const reach = "in ~/.pml/config.yaml, in all your workspaces";
  assert.ok(approved.stdout.split(reach).length >= 3, approved.stdout);
  assert.deepEqual((await ownRules(ws)).allow, ["filesystem:write_file", "crm:tell"]);
  assert.equal(await readFile(ws.file(".pml.json"), "utf8"), before);
  await pml.close();
});

Deno.test("pml deny of an allowed tool shows only the lines that change, and no remark about allow rules", async () => {
  const allow = ["crm:a", "crm:tell", "crm:b", "crm:c"];
  await using ws = await scene({ pml: { version: 1 } });
  const path = join(ws.home, "config.yaml");
  const config = { mcpServers: parse(OWN).mcpServers, permissions: { allow, deny: ["git:*"] } };
  await writeFile(path, stringify(config));
  const rules = new MultiToolRules(ws.home);
  await rules.add(path, [{ id: toolId("crm", "tell"), effect: { reads: true, destroys: false } }]);
  const { code, stdout } = await runPmlOnTerminal(ws, ["deny", "crm:tell"], { typed: [WRITE] });
  assert.equal(code, 0, stdout);
  assert.deepEqual(await ownRules(ws), {
    allow: ["crm:a", "crm:b", "crm:c"],
    deny: ["git:*", "crm:tell"],
  });
  assertGolden("rules/a deny rule that replaces an allow rule", stdout.replaceAll("\r", ""));
  assert.equal(rules.has({ rule: "crm:tell", source: path }), false);
});

Deno.test("pml rules lists the rules of all files, with their last use", async () => {
  const pml = {
    version: 1,
    permissions: { allow: ["filesystem:list_directory"], deny: ["git:*"] },
  };
  await using ws = await scene({ pml });
  const before = await rulesOf(ws);
  assert.deepEqual(
    before.map((
      { rule, list, reach, last_used }: Record<string, unknown>,
    ) => [rule, list, reach, last_used]),
    [
      ["crm:*", "allow", "user", null],
      ["filesystem:write_file", "allow", "user", null],
      ["git:*", "deny", "workspace", null],
      ["filesystem:list_directory", "allow", "workspace", null],
    ],
  );
  await runPml(ws, ["call", "filesystem:list_directory", "path=."]);
  const after = await rulesOf(ws);
  const used = after.filter(({ last_used }: { last_used: unknown }) => last_used !== null);
  assert.deepEqual(used.map(({ rule }: { rule: string }) => rule), ["filesystem:list_directory"]);
  assert.ok(Math.abs(Date.parse(used[0].last_used) - Date.now()) < 600_000);
  assertGolden("rules/rules of two files", (await runPml(ws, ["rules"])).stdout);
  const config = JSON.parse((await runPml(ws, ["config", "--json"])).stdout);
  assert.deepEqual(
    config.rules.map(({ rule }: { rule: string }) => rule),
    after.map(({ rule }: { rule: string }) => rule),
  );
});

Deno.test("pml rules shows default rules, rules of identities, and allow rules of an untrusted file that ask", async () => {
  await using ws = await scene({
    pml: { version: 1, permissions: { allow: ["git:log"] } },
    trusted: false,
  });
  const identities = { ci: { token: "0".repeat(64), permissions: { allow: ["git:status"] } } };
  await writeFile(join(ws.home, "config.yaml"), JSON.stringify({ identities }), { mode: 0o600 });
  const rules = await rulesOf(ws);
  const of = (reach: string) => rules.filter((one: { reach: string }) => one.reach === reach);
  assert.ok(of("default").length > 0);
  assert.deepEqual(
    of("identity").map(({ rule, identity }: Record<string, unknown>) => [rule, identity]),
    [["git:status", "ci"]],
  );
  assert.match(of("workspace")[0].note, /not trusted/);
});

Deno.test("pml rules remove and pml allow --remove remove a rule from its file, and keep its comments", async () => {
  const permissions = { allow: ["git:log"], ask: ["git:log", "git:commit"] };
  await using ws = await scene({ pml: { version: 1, permissions } });
  const own = await runPmlOnTerminal(ws, ["rules", "remove", "crm"], { typed: [WRITE] });
  assert.equal(own.code, 0, own.stdout);
  assert.match(own.stdout, /in all your workspaces/);
  assert.deepEqual(await ownRules(ws), { allow: ["filesystem:write_file"] });
  assert.match(await readFile(join(ws.home, "config.yaml"), "utf8"), /# my rules/);
  const one = await runPmlOnTerminal(ws, ["allow", "--remove", "git:log"], { typed: [WRITE] });
  assert.equal(one.code, 0, one.stdout);
  assert.deepEqual(await sharedRules(ws), { allow: [], ask: ["git:log", "git:commit"] });
  const all = await runPmlOnTerminal(ws, ["rules", "remove", "git:log"], { typed: [WRITE] });
  assert.equal(all.code, 0, all.stdout);
  assert.deepEqual(await sharedRules(ws), { allow: [], ask: ["git:commit"] });
});

Deno.test("pml rules remove names the rules of the server, the choice of two files, and pml allow --remove", async () => {
  const permissions = { allow: ["crm:*", 'crm:tell({"a": 1})'] };
  await using ws = await scene({ pml: { version: 1, permissions } });
  const texts = [];
  const tried = [
    ["rules", "remove", "crm"],
    ["rules", "remove", "crm:other"],
    ["rules", "remove", "crm:tlel"],
    ["rules", "remove", "nothing"],
    ["deny", "--remove", "crm"],
    ["rules", "forget"],
    ["unallow", "crm"],
  ];
  for (const words of tried) {
    const ran = await runPml(ws, words);
    assert.equal(ran.code, 2, ran.stderr);
    texts.push(`pml ${words.join(" ")}\n${ran.stderr}`);
  }
  assertGolden("rules/rules that cannot be removed", texts.join("\n"));
  const exact = await runPml(ws, ["rules", "remove", 'crm:tell({ "a":1 })', "--json"]);
  assert.equal(JSON.parse(exact.stdout).path, ws.file(".pml.json"));
  const chosen = await runPml(ws, ["rules", "remove", "crm", "--no-workspace", "--json"]);
  assert.equal(JSON.parse(chosen.stdout).path, join(ws.home, "config.yaml"));
});

Deno.test("pml remove offers to remove the rules of the server, so that another one of that name asks", async () => {
  const permissions = { allow: ["crm:tell", "git:log"], deny: ["crm:drop"] };
  await using ws = await scene({ pml: { version: 1, permissions } });
  const removed = await runPmlOnTerminal(ws, ["remove", "crm"], {
    typed: [["Remove crm?", "y"], ["Remove the rules of crm, too?", "y"]],
  });
  assert.equal(removed.code, 0, removed.stdout);
  assert.deepEqual(await ownRules(ws), { allow: ["filesystem:write_file"] });
  assert.deepEqual(await sharedRules(ws), { allow: ["git:log"], deny: [] });
  await using other = await scene();
  const declined = await runPmlOnTerminal(other, ["remove", "crm"], {
    typed: [["Remove crm?", "y"], ["Remove the rules of crm, too?", "n"]],
  });
  assert.equal(declined.code, 0, declined.stdout);
  assert.deepEqual((await ownRules(other)).allow, ["crm:*", "filesystem:write_file"]);
});

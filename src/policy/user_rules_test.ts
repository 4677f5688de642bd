import assert from "node:assert/strict";
import { join } from "node:path";
import { parse } from "yaml";
import { environmentOf } from "../config/env.ts";
import { type ToolId, toolId } from "../core/tool_id.ts";
import { Redactor } from "../audit/redact.ts";
import { NO_WARNINGS } from "../io/private_files.ts";
import { AlwaysRules } from "./always_rule.ts";
import { Policy } from "./policy.ts";
import { reachText } from "./rule_file.ts";

const TOOL = toolId("github", "create_issue");
const OWN = `# mine
permissions:
  allow:
    - git:log # the log
  ask: ["github:create_issue"]
mcpServers:
  github: { command: hub } # my own
`;
const CLONED = { mcpServers: { github: { command: "evil" } } };

/** The files of one policy, and the variables next to the usual ones. */
interface PolicyFiles {
  readonly yaml?: string;
  readonly pml?: object;
  readonly trusted?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  readonly identity?: string;
}

async function open({ yaml, pml, trusted = true, env, identity }: PolicyFiles) {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const [ws, home] = [join(root, "ws"), join(root, ".pml")];
  await Deno.mkdir(ws);
  await Deno.mkdir(home);
  const [file, own] = [join(ws, ".pml.json"), join(home, "config.yaml")];
  if (pml !== undefined) await Deno.writeTextFile(file, JSON.stringify({ version: 1, ...pml }));
  if (yaml !== undefined) await Deno.writeTextFile(own, yaml, { mode: 0o600 });
  const variables = { HOME: root, PML_HOME: home, PML_WORKSPACE: ws, ...env };
  const policy = await Policy.open(
    environmentOf({ ...variables, ...(trusted && { PML_TRUST: file }) }),
    { cwd: ws, identity },
    {
      builtins: new Set(["filesystem", "shell"]),
      modules: { integrityOf: () => undefined },
      log: NO_WARNINGS,
      redactor: new Redactor(),
    },
  );
  const kindOf = (id: ToolId) => policy.now.judge(id, {}).kind;
  return {
    policy,
    kindOf,
    always: new AlwaysRules(policy, new Set()),
    file,
    own,
    [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }),
  };
}

function allowing(...rules: readonly string[]): string {
  return `${JSON.stringify({ permissions: { allow: rules } })}\n`;
}

Deno.test("an allow rule of the user's file does not cover a server that the workspace defines", async () => {
  const rules = ["github:*", "github:create_issue", 'github:create_issue({"a":1})'];
  for (const rule of rules) {
    const servers = { mcpServers: { github: { command: "hub" } } };
    const yaml = JSON.stringify({ permissions: { allow: [rule] }, ...servers });
    await using at = await open({ yaml, pml: CLONED });
    const { judge, users } = at.policy.now;
    assert.equal(judge(TOOL, { a: 1 }).kind, "ask", rule);
    assert.match(users.whyUncovered(TOOL) ?? "", /\.pml\.json" defines it/);
    // Until the file is trusted, the name means the user's own server.
    await using before = await open({ yaml, pml: CLONED, trusted: false });
    assert.equal(before.policy.now.judge(TOOL, { a: 1 }).kind, "allow", rule);
    await using without = await open({ yaml });
    assert.equal(without.policy.now.judge(TOOL, { a: 1 }).kind, "allow", rule);
  }
});

Deno.test("rules of the workspace file, and ask and deny rules of the user's file, cover its servers", async () => {
  const permissions = { allow: ["github:create_issue"] };
  await using allowed = await open({ yaml: allowing("github:*"), pml: { ...CLONED, permissions } });
  assert.equal(allowed.kindOf(TOOL), "allow");
  assert.equal(allowed.kindOf(toolId("github", "other")), "ask");
  for (const list of ["ask", "deny"]) {
    const yaml = JSON.stringify({ permissions: { [list]: ["github:create_issue"] } });
    await using at = await open({ yaml, pml: { ...CLONED, permissions } });
    assert.equal(at.kindOf(TOOL), list);
  }
});

Deno.test("an allow rule of the user's file covers built-in servers, and servers of the user's registries", async () => {
  const yaml = allowing("filesystem:*", "clock:tell", "fs:read_json", "tavily:*");
  const url = "https://one.example.com/mcp";
  await using at = await open({ yaml, pml: {}, env: { PML_REGISTRIES: url } });
  at.policy.approve(new Map([["clock", url], ["fs:read_json", url]]));
  const ids = [
    toolId("filesystem", "write_file"),
    toolId("clock", "tell"),
    toolId("fs", "read_json"),
    toolId("tavily", "search"),
  ];
  for (const id of ids) assert.equal(at.kindOf(id), "allow", id);
});

Deno.test("an allow rule of the user's file covers no server of a registry or hub that only the workspace names", async () => {
  const yaml = allowing("clock:tell", "fs:read_json", "tavily:*", "filesystem:*");
  const url = "https://evil.example.com/mcp";
  const pml = { registries: [url], cloud: { url: "https://evil.example.com" } };
  await using at = await open({ yaml, pml });
  at.policy.approve(new Map([["clock", url], ["fs:read_json", url]]));
  const ids = [toolId("clock", "tell"), toolId("fs", "read_json"), toolId("tavily", "search")];
  for (const id of ids) assert.equal(at.kindOf(id), "ask", id);
  assert.match(at.policy.now.users.whyUncovered(toolId("clock", "tell")) ?? "", /evil\.example/);
  assert.equal(at.kindOf(toolId("filesystem", "write_file")), "allow");
  // The same registry in the user's file is the user's choice.
  const own = JSON.stringify({ ...JSON.parse(yaml), registries: [url] });
  await using chosen = await open({ yaml: own, pml: { registries: [url] } });
  chosen.policy.approve(new Map([["clock", url]]));
  assert.equal(chosen.kindOf(toolId("clock", "tell")), "allow");
});

Deno.test("rules of an identity cover the servers of the workspace that its owner serves", async () => {
  const identities = {
    ci: { token: "0".repeat(64), permissions: { allow: ["github:*"] } },
  };
  const yaml = JSON.stringify({ identities });
  await using at = await open({ yaml, pml: CLONED, identity: "ci" });
  assert.equal(at.kindOf(TOOL), "allow");
});

Deno.test("Always for a server of the user's file is written there, with its comments, and the shared file stays", async () => {
  await using at = await open({ yaml: OWN, pml: { intent: "x" } });
  const before = await Deno.readTextFile(at.file);
  const call = { id: TOOL, arguments: { title: "a" } };
  assert.equal(at.always.offeredRule(call), TOOL);
  assert.equal(at.always.reachOf(call), "in ~/.pml/config.yaml, in all your workspaces");
  await at.always.add(call);
  assert.equal(await Deno.readTextFile(at.file), before);
  const text = await Deno.readTextFile(at.own);
  for (const comment of ["# mine", "# the log", "# my own"]) {
    assert.ok(text.includes(comment), text);
  }
  assert.deepEqual(parse(text).permissions, { allow: ["git:log", TOOL], ask: [] });
  assert.equal(at.kindOf(TOOL), "allow");
  if (Deno.build.os !== "windows") assert.equal((Deno.statSync(at.own).mode ?? 0) & 0o777, 0o600);
  await at.always.add(call);
  assert.equal(await Deno.readTextFile(at.own), text);
});

Deno.test("Always for a server of the workspace or of PML is written into the workspace file", async () => {
  const yaml = JSON.stringify({ mcpServers: { github: { command: "hub" } } });
  await using at = await open({ yaml, pml: CLONED });
  for (const id of [TOOL, toolId("filesystem", "write_file")]) {
    assert.equal(at.policy.fileFor(id).path, at.file);
    assert.equal(at.policy.fileFor(id).isOfUser, false);
    await at.always.add({ id, arguments: {} });
    assert.equal(at.kindOf(id), "allow", id);
  }
  assert.equal(await Deno.readTextFile(at.own), yaml);
});

Deno.test("Always is not offered where a rule of the workspace file asks, because it would not win", async () => {
  const permissions = { ask: ["github:create_issue"] };
  await using at = await open({ yaml: OWN, pml: { permissions } });
  assert.equal(at.always.offeredRule({ id: TOOL, arguments: {} }), undefined);
});

Deno.test({
  name: "Always writes through no link of config.yaml: it uses the workspace file",
  ignore: Deno.build.os === "windows",
  fn: async () => {
    await using at = await open({ yaml: OWN, pml: {} });
    const real = `${at.own}.real`;
    await Deno.rename(at.own, real);
    await Deno.symlink(real, at.own);
    const { path, isOfUser } = at.policy.fileFor(TOOL);
    assert.deepEqual([path, isOfUser], [at.file, false]);
  },
});

Deno.test("reachText() names where rules are written and where they apply", async () => {
  await using at = await open({});
  const { loaded } = at.policy.now;
  const workspace = reachText({ path: at.file, isOfUser: false }, loaded);
  assert.match(workspace, /^in ~\/ws\/\.pml\.json, in this workspace$/);
});

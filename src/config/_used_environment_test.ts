import assert from "node:assert/strict";
import { join } from "node:path";
import { Scratch } from "./_scratch_test.ts";
import { loadConfig } from "./config.ts";
import { environmentOf } from "./env.ts";

Deno.test("loadConfig() takes no home inside the workspace, but that of the account", async () => {
  using scratch = new Scratch();
  Deno.mkdirSync(join(scratch.ws, "h"));
  Deno.symlinkSync(join(scratch.ws, "h"), join(scratch.root, "link"));
  const inside = [join(scratch.ws, "h"), join(scratch.ws, "a/../h"), scratch.ws];
  for (const path of [...inside, join(scratch.root, "link/x")]) {
    for (const name of ["PML_HOME", "HOME"]) {
      const { problem, environment, warnings } = await scratch.load({ [name]: path });
      assert.equal(problem, undefined, path);
      assert.equal(environment.home, scratch.home);
      assert.equal(environment.userHome, scratch.user);
      assert.equal(environment.get("HOME"), scratch.user);
      assert.match(warnings.join(), new RegExp(`Ignored ${name}: `));
    }
  }
  assert.equal((await scratch.load({ PML_WORKSPACE: scratch.user })).problem, undefined);
});

Deno.test("loadConfig() has nothing run where no home lies outside", async () => {
  using scratch = new Scratch();
  const cases: readonly (readonly [string | undefined, Record<string, string>])[] = [
    [undefined, { HOME: join(scratch.ws, "h") }],
    [join(scratch.ws, "account"), { HOME: join(scratch.ws, "h") }],
    [scratch.user, { HOME: join(scratch.ws, "h"), PML_WORKSPACE: scratch.root }],
    [scratch.user, { PML_HOME: join(scratch.ws, "h"), PML_WORKSPACE: scratch.root }],
    [scratch.user, { PML_WORKSPACE: scratch.home }],
  ];
  Deno.mkdirSync(scratch.home);
  for (const [account, more] of cases) {
    const variables = { HOME: scratch.user, PML_WORKSPACE: scratch.ws, ...more };
    const { problem } = await loadConfig(environmentOf(variables, account), scratch.ws);
    assert.equal(problem?.code, "CONFIG_INVALID", JSON.stringify([account, more]));
    assert.match(problem?.message ?? "", /"the home of PML": found /);
  }
});

Deno.test("loadConfig() takes a PML_HOME outside where HOME does not count, and the system knows none", async () => {
  using scratch = new Scratch();
  const at = async (PML_HOME: string) => {
    const variables = { HOME: scratch.ws, PML_HOME, PML_WORKSPACE: scratch.ws };
    return await loadConfig(environmentOf(variables), scratch.ws);
  };
  // As in a container whose user has no entry, and whose home is the mounted folder.
  const { problem, environment, isWide: wide } = await at(join(scratch.root, "pml"));
  assert.equal(problem, undefined);
  assert.equal(environment.home, join(scratch.root, "pml"));
  assert.ok(wide, "a workspace that is called a home is one");
  for (const inside of [join(scratch.ws, "h"), scratch.ws, ""]) {
    assert.equal((await at(inside)).problem?.code, "CONFIG_INVALID", inside);
  }
  scratch.write("ws/.mcp.json", '{"env": {"PML_HOME": "x"}}');
  assert.equal((await at(join(scratch.root, "pml"))).problem?.code, "CONFIG_INVALID");
});

Deno.test("loadConfig() takes HOME for the person's where the account has another", async () => {
  using scratch = new Scratch();
  scratch.write("ws/.vscode/settings.json", '{"a": "${env:HOME}/b", "JAVA_HOME": "x"}');
  scratch.write("user/.cursor/mcp.json", "{}");
  for (const account of [undefined, join(scratch.root, "account")]) {
    const variables = { HOME: scratch.user, PML_WORKSPACE: scratch.ws };
    const loaded = await loadConfig(environmentOf(variables, account), scratch.ws);
    assert.equal(loaded.environment.home, scratch.home);
    assert.deepEqual([loaded.problem, loaded.warnings], [undefined, []]);
  }
});

Deno.test("loadConfig() has reading ask in wide and in hidden folders that config.yaml does not name", async () => {
  using scratch = new Scratch();
  const hidden = join(scratch.user, ".aws");
  const worktree = join(scratch.user, ".agents/worktree");
  for (const path of [hidden, join(worktree, ".git")]) Deno.mkdirSync(path, { recursive: true });
  const isWide = async (PML_WORKSPACE: string) => (await scratch.load({ PML_WORKSPACE })).isWide;
  for (const path of ["/", scratch.root, scratch.user, hidden]) assert.ok(await isWide(path), path);
  for (const path of [scratch.ws, worktree]) assert.ok(!await isWide(path), path);
  scratch.write("user/.pml/config.yaml", 'workspaces: ["/", "~", "~/.aws"]\n');
  for (const path of ["/", scratch.user, hidden]) assert.ok(!await isWide(path), path);
  assert.ok(await isWide(scratch.root), "what lies above is another folder");
});

Deno.test("loadConfig() ignores PML_HOME and PML_TRUST that a client's file inside sets", async () => {
  const spelled = [
    [".mcp.json", '{"mcpServers": {"pml": {"env": {"PML_TRUST": "x", "PML_HOME": "y"}}}}'],
    [".cursor/mcp.json", '{"env": {"\\u0050ML_TRUST": "x", "PML\\u005fHOME": "y"}}'],
    [".vscode/mcp.json", '{"servers": {"pml": {"envFile": "${workspaceFolder}/x"}}}'],
    [".codex/config.toml", 'PML_TRUST = "x"\n"PML\\u005FHOME" = "y"'],
    ["x.code-workspace", "PML_HOME PML_TRUST"],
    [".claude/settings.json", `${" ".repeat(1_000_001)}`],
  ] as const;
  const hows: Readonly<Record<string, string>> = {
    ".vscode/mcp.json": "names a file that may set PML_TRUST",
    ".claude/settings.json": "may set PML_TRUST (it has 1000001 bytes, and at most 1000000 are " +
      "allowed; mend or remove it)",
  };
  for (const [name, text] of spelled) {
    using scratch = new Scratch();
    scratch.write(`ws/${name}`, text);
    Deno.mkdirSync(join(scratch.ws, "sub"));
    const set = { PML_HOME: join(scratch.root, "h"), PML_TRUST: join(scratch.ws, ".pml.json") };
    // A client's file that also moves the workspace below itself still lies inside.
    const sub = join(scratch.ws, "sub");
    for (const [workspace, cwd] of [[scratch.ws, sub], [sub, scratch.ws], [sub, sub]] as const) {
      const environment = scratch.environment({ ...set, PML_WORKSPACE: workspace });
      const loaded = await loadConfig(environment, cwd);
      assert.equal(loaded.environment.home, scratch.home, name);
      assert.deepEqual(loaded.environment.trust, []);
      const warnings = loaded.warnings.join("\n");
      assert.match(warnings, /Ignored PML_HOME: .*\n?.*Ignored PML_TRUST: /);
      const text = `"${join(scratch.ws, name)}" ${hows[name] ?? "sets PML_TRUST"}, and a workspace`;
      assert.ok(warnings.includes(`Ignored PML_TRUST: ${text}`), warnings);
    }
  }
});

Deno.test("loadConfig() obeys PML_HOME and PML_TRUST that the person sets", async () => {
  using scratch = new Scratch();
  scratch.write("ws/.mcp.json", '{"mcpServers": {"pml": {"env": {"PML_API_KEY": "x"}}}}');
  // A client's file in the home folder belongs to the user.
  scratch.write("user/.cursor/mcp.json", '{"env": {"PML_HOME": "x", "PML_TRUST": "y"}}');
  const ws = join(scratch.user, "project");
  Deno.mkdirSync(ws);
  const set = { PML_HOME: join(scratch.root, "h"), PML_TRUST: join(ws, ".pml.json") };
  for (const workspace of [scratch.ws, ws]) {
    const loaded = await scratch.load({ ...set, PML_WORKSPACE: workspace });
    assert.equal(loaded.environment.home, set.PML_HOME);
    assert.deepEqual(loaded.environment.trust, [set.PML_TRUST]);
    assert.deepEqual(loaded.warnings, []);
  }
});

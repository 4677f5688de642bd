import assert from "node:assert/strict";
import { greeting } from "./cli_greeter.ts";
import { assertGolden } from "./kit/golden.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";

/** Commands in a trusted workspace with a module, by the titles of their texts. */
const COMMANDS: readonly (readonly [title: string, code: number, ...args: readonly string[]])[] = [
  ["add/no terminal", 1, "add", "tiny", "--", "true"],
  ["allow/no terminal", 1, "allow", "greeter:*"],
  ["audit/no records of a tool", 0, "audit", "--tool", "git:*"],
  ["call/a denied tool", 1, "call", "filesystem:remove_file", "path=a.txt"],
  ["call/a tool that asks", 1, "call", "filesystem:write_file", "path=a.txt", "content=b"],
  ["call/an argument of another type", 1, "call", "greeter:greet", "name:=7"],
  ["call/an unknown tool", 1, "call", "greeter:great", "name=Ada"],
  ["call/an error of a tool", 1, "call", "greeter:fail"],
  ["call/a file outside of the workspace", 1, "call", "filesystem:read_file", "path=../b"],
  ["capability/none", 0, "capability", "list"],
  ["config/an unknown key", 2, "config", "set", "limits.child", "1"],
  ["config/a wrong value", 2, "config", "set", "limits.children", "many"],
  ["import/no client", 0, "import"],
  ["key/no keys", 0, "key", "list"],
  ["learn/a module", 2, "learn", "greeter"],
  ["login/a module", 2, "login", "greeter"],
  ["memory/empty", 0, "memory", "show"],
  ["outdated/no packages", 0, "outdated"],
  ["tools/a module", 0, "tools", "greeter"],
  ["tools/a tool", 0, "tools", "greeter:greet"],
  ["why/a tool that runs", 0, "why", "greeter:greet"],
  ["why/a tool that asks", 0, "why", "filesystem:write_file"],
  ["why/a denied tool", 0, "why", "filesystem:remove_file"],
];

Deno.test("commands print the texts of their golden files", async () => {
  for (const [title, code, ...args] of COMMANDS) {
    await using ws = await greeting();
    const result = await runPml(ws, args);
    assert.equal(result.code, code, `${args.join(" ")}: ${result.stdout}${result.stderr}`);
    assertGolden(title, `${result.stdout}${result.stderr}`);
  }
});

Deno.test("commands that ask print the texts of their golden files", async () => {
  await using ws = await greeting({ trusted: false });
  const trust = await runPmlOnTerminal(ws, ["trust"], {
    typed: [["to trust exactly this", "trust"]],
  });
  assert.equal(trust.code, 0, trust.stdout);
  for (const value of ["greeter.ts", "filesystem:read_file"]) {
    assert.ok(trust.stdout.includes(value), value);
  }
  assertGolden("trust/a file with a module", trust.stdout);
  const write = ["call", "filesystem:write_file", "path=b.txt", "content=b"];
  const call = await runPmlOnTerminal(ws, write, { typed: [[/\[N\] no/, "n"]] });
  assert.equal(call.code, 1, call.stdout);
  for (const value of [`"write_file"`, `"path": "b.txt"`, `"content": "b"`]) {
    assert.ok(call.stdout.includes(value), value);
  }
  assertGolden("call/a question that is answered no", call.stdout);
});

Deno.test("pml init prints the text of its golden file", async () => {
  await using ws = await makeWorkspace({ files: { "package.json": "{}" } });
  const result = await runPml(ws, ["init", "--yes", "--client", "cursor"]);
  assert.equal(result.code, 0, result.stderr);
  assertGolden("init/a client of a project", `${result.stdout}${result.stderr}`);
  const asks = await runPml(ws, ["init", "--yes"]);
  assertGolden("init/a client that asks, too", `${asks.stdout}${asks.stderr}`);
  const once = await runPml(ws, [
    "init",
    "--yes",
    "--ask-once",
    "--client",
    "claude-code,zed,qwen",
  ]);
  assertGolden("init/clients run the tools of PML unasked", `${once.stdout}${once.stderr}`);
  const args = ["init", "--yes", "--ask-once", "--user", "--client", "gemini"];
  const mute = await runPml(ws, args);
  assertGolden("init/a client that cannot show questions", `${mute.stdout}${mute.stderr}`);
});

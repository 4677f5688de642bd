/**
 * `execute_code` and `execute_workflow` without a client: by `pml call`, and by a program.
 */

import assert from "node:assert/strict";
import { repoFile } from "./kit/pml_command.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { denoDir, makeWorkspace, type Workspace } from "./kit/workspace.ts";

const WRITE = 'code=return await mcp.filesystem.write_file({ path: "b.txt", content: "x" })';
const REMOVE = 'code=return await (mcp as any).filesystem.remove_file({ path: "a.txt" })';

function scene(): Promise<Workspace> {
  return makeWorkspace({
    files: { "a.txt": "hello" },
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:read_file"], deny: ["filesystem:remove_file"] },
    },
  });
}

function plan(tool: string, args: Readonly<Record<string, string>>): string {
  return `plan:=${JSON.stringify({ tasks: [{ id: "one", tool, arguments: args }] })}`;
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

Deno.test("pml call runs code and plans, and prints their results", async () => {
  await using ws = await scene();
  const cases = [
    [["execute_code", 'code=return await mcp.filesystem.read_file({ path: "a.txt" })'], /^hello$/m],
    [["execute_code", '{"code":"return 1 + 1"}'], /^2$/m],
    [["execute_workflow", plan("filesystem:read_file", { path: "a.txt" })], /hello/],
  ] as const;
  for (const [args, wanted] of cases) {
    const { code, stdout, stderr } = await runPml(ws, ["call", ...args]);
    assert.equal(code, 0, stderr);
    assert.match(stdout, wanted);
  }
  const thrown = await runPml(ws, ["call", "execute_code", 'code=throw new Error("no")']);
  assert.deepEqual([thrown.code, thrown.stdout], [1, ""]);
  assert.match(thrown.stderr, /Error: no/);
  const bad = await runPml(ws, ["call", "execute_code"]);
  assert.match(bad.stderr, /BAD_ARGUMENTS: Cannot call "execute_code".*code\n.*pml call --help/);
});

Deno.test("rules hold for the calls of code and plans by pml call", async () => {
  await using ws = await scene();
  const denied = await runPml(ws, ["call", "execute_code", REMOVE]);
  assert.equal(denied.code, 1);
  assert.match(denied.stderr, /UNKNOWN_TOOL|PERMISSION_DENIED|has no tool/);
  assert.ok(await exists(ws.file("a.txt")));
  const ways = [
    ["execute_code", WRITE],
    ["execute_workflow", plan("filesystem:write_file", { path: "b.txt", content: "x" })],
  ];
  for (const args of ways) {
    const left = await runPml(ws, ["call", ...args]);
    assert.equal(left.code, 1);
    assert.match(left.stderr, /APPROVAL_REQUIRED.*filesystem:write_file/s);
    assert.ok(!await exists(ws.file("b.txt")), "it ran without an approval");
  }
});

Deno.test("pml call on a terminal asks about each call of code and plans", async () => {
  const ways = [
    ["execute_code", WRITE],
    ["execute_workflow", plan("filesystem:write_file", { path: "b.txt", content: "x" })],
  ];
  for (const args of ways) {
    await using ws = await scene();
    const no = await runPmlOnTerminal(ws, ["call", ...args], { typed: [["May it run?", "n"]] });
    assert.equal(no.code, 1, no.stdout);
    assert.ok(!await exists(ws.file("b.txt")), "it ran after a no");
    const yes = await runPmlOnTerminal(ws, ["call", ...args], { typed: [["May it run?", "y"]] });
    assert.equal(yes.code, 0, yes.stdout);
    assert.equal(await Deno.readTextFile(ws.file("b.txt")), "x");
  }
});

const PROGRAM = `
import { openGateway } from "@casys/pml";
await using gateway = await openGateway();
const tell = (value: unknown) => console.log(JSON.stringify(value));
const textOf = (result: { content: readonly { text?: unknown }[] }) => result.content[0]?.text;
tell(textOf(await gateway.callTool("execute_code", { code: "return 1 + 1" })));
const tasks = [{ id: "one", tool: "filesystem:read_file", arguments: { path: "a.txt" } }];
tell(textOf(await gateway.callTool("execute_workflow", { plan: { tasks } })));
const code = 'return await mcp.filesystem.write_file({ path: "b.txt", content: "x" })';
const asked = await gateway.callTool("execute_code", { code });
tell([asked.isError, textOf(asked)]);
`;

Deno.test("a program runs code and plans, and a call that needs approval waits for pml approve", async () => {
  await using ws = await scene();
  const { imports, compilerOptions } = JSON.parse(await Deno.readTextFile(repoFile("deno.json")));
  const config = { imports: { ...imports, "@casys/pml": repoFile("mod.ts") }, compilerOptions };
  await Deno.writeTextFile(ws.file("deno.json"), JSON.stringify(config));
  await Deno.writeTextFile(ws.file("program.ts"), PROGRAM);
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-lock", "program.ts"],
    cwd: ws.path,
    env: { ...ws.env, DENO_DIR: denoDir() },
    clearEnv: true,
  }).output();
  const said = new TextDecoder().decode(stdout);
  assert.equal(code, 0, said + new TextDecoder().decode(stderr));
  const [sum, read, asked] = said.trim().split("\n");
  assert.equal(sum, '"2"');
  assert.match(read ?? "", /hello/);
  assert.match(asked ?? "", /^\[true,".*APPROVAL_REQUIRED/);
  assert.ok(!await exists(ws.file("b.txt")));
  const waiting = await runPml(ws, ["approve", "--json"]);
  assert.match(waiting.stdout, /Tool: .*write_file/);
});

/**
 * What a newcomer types in the first hour, also wrongly: each answer says what to do next.
 *
 * @module
 */

import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import process from "node:process";
import { assertError } from "./cli_greeter.ts";
import { HAS_ACCOUNTS } from "./kit/account.ts";
import { pmlCommand } from "./kit/pml_command.ts";
import { runPml } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";

const IN_PROJECT = { files: { "package.json": "{}", "README.md": "hello\n" } };

Deno.test("pml init in a project is followed by a question that marks only what is new", async () => {
  await using ws = await makeWorkspace({
    files: {
      ...IN_PROJECT.files,
      "tool.ts": "export const __meta__ = { name: 'tool', tools: {} };\n",
    },
  });
  const made = await runPml(ws, ["init", "--yes"]);
  assert.doesNotMatch(made.stderr, /info/);
  const path = ws.file(".pml.json");
  const file = JSON.parse(await Deno.readTextFile(path));
  file.private_mcps = { tool: { type: "deno", path: "./tool.ts" } };
  await writeFile(path, JSON.stringify(file));
  const { facts } = JSON.parse((await runPml(ws, ["trust", "--json"])).stdout);
  const marked = facts.filter((fact: string) => /^[+-] /.test(fact));
  assert.equal(marked.length, 2, JSON.stringify(facts));
  assert.ok(marked.every((fact: string) => fact.includes('"tool"')));
});

Deno.test("A key that is missing is told with the command that keeps it", async () => {
  await using ws = await makeWorkspace({
    pml: { mcpServers: { far: { url: "http://127.0.0.1:9/mcp", headers: { X: "${FAR_KEY}" } } } },
  });
  const ran = await runPml(ws, ["tools", "far"]);
  assertError(ran, { code: "KEY_MISSING", exit: 1 });
  assert.match(ran.stderr, /`pml key set FAR_KEY`.*headers\.X\n/s);
});

Deno.test("pml stands up where its home is a file, and names the project as the place of pml init", async () => {
  await using ws = await makeWorkspace(IN_PROJECT);
  await rm(ws.home, { recursive: true });
  await writeFile(ws.home, "");
  const ran = await runPml(ws, []);
  assert.equal(ran.code, 0, ran.stderr);
  await rm(ws.home);
  const top = await runPml(ws, [], { cwd: "/" });
  assert.match(top.stdout, /pml init +# in your project: /);
});

Deno.test({
  name: "A file that may not be written is told as that, and not as a full disk",
  ignore: !HAS_ACCOUNTS,
  fn: async () => {
    await using ws = await makeWorkspace(IN_PROJECT);
    const mount = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"';
    const own = process.getuid?.() === 0 ? "-m" : "-rm";
    const command = ["unshare", own, "sh", "-c", mount, "sh", ws.path, ...pmlCommand()] as const;
    const ran = await runPml(ws, ["init", "--yes"], { command });
    assert.match(ran.stderr, /Make its folder writable/);
  },
});

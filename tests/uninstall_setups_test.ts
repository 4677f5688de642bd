/**
 * `pml uninstall` undoes `pml init` in the files of all workspaces.
 *
 * @module
 */

import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { assertError } from "./cli_greeter.ts";
import { assertGolden } from "./kit/golden.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const TEXT = JSON.stringify({ mcpServers: { notes: { command: "notes" } } }, null, 2);

/** Creates a project next to the files of a workspace, and connects clients in it. */
async function connect(ws: Workspace, name: string, options: readonly string[] = []) {
  const folder = ws.file(name);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "package.json"), "{}");
  const init = await runPml(ws, ["init", "--yes", ...options], { cwd: folder });
  assert.equal(init.code, 0, init.stderr);
  return folder;
}

async function filesBelow(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder, { recursive: true });
  return names.filter((name) => name !== "package.json" && name !== ".pml.json").sort();
}

async function shownBy(ws: Workspace) {
  const { stdout, stderr, code } = await runPml(ws, ["uninstall", "--json"]);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

async function move(ws: Workspace, cwd: string, options: readonly string[] = []) {
  const moved = await runPmlOnTerminal(ws, ["import", "claude-code", "--move", ...options], {
    cwd,
    typed: [[/Import .*\[N\] no/, "y"], [/Start th/, "n"], [/out of/, "y"]],
  });
  assert.equal(moved.code, 0, moved.stdout);
}

async function uninstall(ws: Workspace): Promise<string> {
  const ran = await runPmlOnTerminal(ws, ["uninstall"], { typed: [["for good?", "y"]] });
  assert.equal(ran.code, 0, ran.stdout);
  return ran.stdout.replaceAll("\r", "").replaceAll(/\n {4}/g, " ");
}

Deno.test("pml uninstall lists and undoes pml init in the files of all workspaces", async () => {
  await using ws = await makeWorkspace({
    files: { "package.json": "{}", "one/.cursor/mcp.json": TEXT },
  });
  const one = await connect(ws, "one", ["--client", "claude-code,cursor", "--ask-once"]);
  const two = await connect(ws, "two");
  const changed = JSON.parse(await readFile(join(two, ".mcp.json"), "utf8"));
  await writeFile(join(two, ".mcp.json"), JSON.stringify({ ...changed, own: true }));
  const paths = [
    join(one, ".claude/settings.local.json"),
    join(one, ".cursor/mcp.json"),
    join(one, ".mcp.json"),
    join(two, ".mcp.json"),
  ];
  const shown = await shownBy(ws);
  assert.deepEqual([shown.undone, shown.remaining], [paths, []]);
  const stdout = await uninstall(ws);
  const before = stdout.slice(0, stdout.indexOf("for good?"));
  for (const path of paths) assert.ok(before.includes(path), `${path}: ${before}`);
  assert.deepEqual(await filesBelow(one), [".cursor", ".cursor/mcp.json"]);
  assert.equal(await readFile(join(one, ".cursor/mcp.json"), "utf8"), TEXT);
  const { own, mcpServers } = JSON.parse(await readFile(join(two, ".mcp.json"), "utf8"));
  assert.deepEqual([own, mcpServers?.pml], [true, undefined]);
  const undo = await runPml(ws, ["init", "--undo", "--yes"], { cwd: one });
  assertError(undo, { code: "USAGE", exit: 2 });
  assertGolden("init/undo without a record", undo.stderr.replaceAll(/^warning.*\n/gm, ""));
});

Deno.test("pml uninstall names the files that it cannot change back, and undoes the others", async () => {
  await using ws = await makeWorkspace({ files: { "package.json": "{}" } });
  const moved = await connect(ws, "moved");
  const changed = await connect(ws, "changed", ["--ask-once"]);
  const linked = await connect(ws, "linked", ["--client", "cursor"]);
  const damaged = await connect(ws, "damaged");
  const clean = await connect(ws, "clean");
  const last = await connect(ws, "zuletzt");
  await rename(moved, ws.file("elsewhere"));
  const settings = join(changed, ".claude/settings.local.json");
  await writeFile(settings, JSON.stringify({ permissions: { allow: ["mcp__pml", "Bash(ls)"] } }));
  await rename(join(linked, ".cursor"), ws.file("real"));
  await symlink(ws.file("real"), join(linked, ".cursor"));
  const text = await readFile(ws.file("real/mcp.json"), "utf8");
  await writeFile(join(damaged, ".mcp.json"), '{"mcpServers": {"pml": ');
  // Nothing remains to be done in a file from which the user removed the entry.
  await writeFile(join(clean, ".mcp.json"), "{}");
  const { undone, remaining } = await shownBy(ws);
  assert.deepEqual(undone, [join(changed, ".mcp.json"), join(last, ".mcp.json")]);
  const lines = remaining.map(({ path, message }: Record<string, string>) => `${path}: ${message}`);
  const stdout = await uninstall(ws);
  const [before = "", after = ""] = stdout.split("for good?");
  for (const line of lines) assert.ok(before.includes(line) && after.includes(line), stdout);
  assertGolden("uninstall/files that cannot be changed back", lines.join("\n"));
  assert.deepEqual(await filesBelow(last), []);
  assert.equal(await readFile(ws.file("real/mcp.json"), "utf8"), text);
  assert.match(await readFile(settings, "utf8"), /mcp__pml/);
  for (
    const [title, cwd] of [
      ["undo without a record in changed", changed],
      ["undo without a record in elsewhere", ws.file("elsewhere")],
    ] as const
  ) {
    const undo = await runPml(ws, ["init", "--undo", "--yes"], { cwd });
    assertError(undo, { code: "USAGE", exit: 2 });
    assertGolden(`init/${title}`, undo.stderr.replaceAll(/^warning.*\n/gm, ""));
  }
});

Deno.test("pml uninstall undoes the changes of an earlier version in workspaces with a trusted file", async () => {
  await using ws = await makeWorkspace({ files: { "package.json": "{}" } });
  const other = await connect(ws, "other", ["--client", "cursor"]);
  const folder = join(ws.home, "imports");
  for (const name of await readdir(folder)) {
    const edits = JSON.parse(await readFile(join(folder, name), "utf8"));
    const older = edits.map(({ path: _, ...edit }: Record<string, unknown>) => edit);
    await writeFile(join(folder, name), JSON.stringify(older));
  }
  assert.deepEqual((await shownBy(ws)).undone, [join(other, ".cursor/mcp.json")]);
  await uninstall(ws);
  assert.deepEqual(await filesBelow(other), []);
});

Deno.test("pml uninstall keeps the folder of another project, even if it is empty", async () => {
  await using ws = await makeWorkspace({ files: { "package.json": "{}" } });
  const other = await connect(ws, "other");
  for (const name of ["package.json", ".pml.json"]) await rm(join(other, name));
  await uninstall(ws);
  assert.deepEqual(await readdir(other), []);
});

Deno.test("pml uninstall changes no file that a damaged record names", async () => {
  await using ws = await makeWorkspace({ files: { "package.json": "{}" } });
  const other = await connect(ws, "other");
  const victim = join(ws.root, "victim.json");
  const text = await readFile(join(other, ".mcp.json"), "utf8");
  await writeFile(victim, text);
  const folder = join(ws.home, "imports");
  for (const name of await readdir(folder)) {
    const record = await readFile(join(folder, name), "utf8");
    await writeFile(join(folder, name), record.replace(join(other, ".mcp.json"), victim));
  }
  await uninstall(ws);
  assert.equal(await readFile(victim, "utf8"), text);
});

Deno.test("pml uninstall names the file of another project in which a move hides pml init", async () => {
  await using ws = await makeWorkspace({
    files: { "package.json": "{}", "other/.mcp.json": TEXT },
  });
  const other = await connect(ws, "other");
  await move(ws, other, ["--workspace"]);
  const { undone, remaining } = await shownBy(ws);
  assert.deepEqual([undone, remaining[0]?.path], [[], join(other, ".mcp.json")]);
  assertGolden("uninstall/a move in another project", remaining[0]?.message);
  const ran = await runPmlOnTerminal(ws, ["uninstall"], {
    typed: [["for good?", "y"], [/copies, too\?/, "n"]],
  });
  assert.equal(ran.code, 0, ran.stdout);
  const { stdout } = ran;
  assert.ok(stdout.includes(`${join(other, ".mcp.json")}: remove the entry "pml" from it`), stdout);
});

Deno.test("pml uninstall undoes pml init before and after a move in another project", async () => {
  await using ws = await makeWorkspace({
    files: { "package.json": "{}", "other/.mcp.json": TEXT },
  });
  const other = await connect(ws, "other");
  await move(ws, other);
  await connect(ws, "other", ["--http"]);
  const { remaining } = await shownBy(ws);
  assertGolden("uninstall/a move that PML can undo", remaining[0]?.message);
  const ran = await runPmlOnTerminal(ws, ["uninstall"], {
    typed: [["for good?", "y"], ["without PML?", "y"]],
  });
  assert.equal(ran.code, 0, ran.stdout);
  assert.equal(await readFile(join(other, ".mcp.json"), "utf8"), TEXT);
  assert.deepEqual(await readdir(ws.home).catch(() => []), []);
});

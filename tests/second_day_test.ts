/**
 * A new user's second day: errors contain settings to paste, an undo leaves nothing behind, and
 * mistyped commands fail.
 *
 * @module
 */

import assert from "node:assert/strict";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { codeOf, textOf } from "./attacks/oracles.ts";
import { answerOf } from "./attacks/questions.ts";
import { makeScene } from "./attacks/stage.ts";
import { assertGolden } from "./kit/golden.ts";
import { runPml } from "./kit/run.ts";
import { tinyServer } from "./kit/tiny_server.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const ALLOWED = { permissions: { allow: ["filesystem:*"] } };
const GRANTS = /"grants": (\{.*\})$/m;

/** Writes the grant of an error into the workspace file. */
async function paste(ws: Workspace, stderr: string): Promise<void> {
  const [, grants = "{}"] = GRANTS.exec(stderr) ?? [];
  await writeFile(
    ws.file(".pml.json"),
    JSON.stringify({ ...ALLOWED, grants: JSON.parse(grants) }),
  );
}

Deno.test("the error of a path outside the workspace contains the grant that opens it", async () => {
  await using ws = await makeWorkspace({ pml: ALLOWED });
  const outside = join(ws.root, "notes");
  await mkdir(outside);
  await writeFile(join(outside, "a.txt"), "hello");
  for (const path of ["../notes/a.txt", join(outside, "a.txt")]) {
    const read = ["call", "filesystem:read_file", `path=${path}`];
    await writeFile(ws.file(".pml.json"), JSON.stringify(ALLOWED));
    const refused = await runPml(ws, read);
    assert.match(
      refused.stderr,
      /PATH_OUTSIDE_WORKSPACE[^]* \.pml\.json: /,
    );
    await paste(ws, refused.stderr);
    assert.equal((await runPml(ws, read)).stdout, "hello\n", path);
  }
});

Deno.test("the error of a link to the outside contains no grant, because no grant of that name opens it", async () => {
  await using ws = await makeWorkspace({ pml: ALLOWED });
  await Deno.symlink(ws.outside, ws.file("link"));
  const { stderr } = await runPml(ws, ["call", "filesystem:read_file", "path=link"]);
  assert.match(stderr, /PATH_OUTSIDE_WORKSPACE: .*is outside the workspace$/m);
  assert.doesNotMatch(stderr, GRANTS);
});

Deno.test("the error of a protected file contains a grant that works", async () => {
  await using ws = await makeWorkspace({ pml: ALLOWED, files: { ".husky/pre-commit": "old" } });
  const write = ["call", "filesystem:write_file", "path=.husky/pre-commit", "content=new"];
  const refused = await runPml(ws, write);
  assert.match(refused.stderr, /PATH_PROTECTED/);
  await paste(ws, refused.stderr);
  const written = await runPml(ws, write);
  assert.equal(written.code, 0, written.stderr);
});

Deno.test("a plan with invalid tasks and unavailable tools gets all errors at once", async () => {
  await using at = await makeScene({ pml: ALLOWED, era: "2025-11-25" });
  const read = { tool: "filesystem:read_file", arguments: { path: "a.txt" } };
  const tasks = [
    { id: "lost", ...read, depends_on: ["q"] },
    { id: "mistyped", ...read, tool: "filesystem:read_fil" },
    { id: "lacking", ...read, arguments: {}, depends_on: ["lost"] },
  ];
  const plan = { name: "execute_workflow", arguments: { plan: { tasks } } };
  const answer = await answerOf(at.pml, plan);
  assert.equal(codeOf(answer), "BAD_ARGUMENTS");
  const [, lost = "", mistyped = "", lacking = ""] = textOf(answer).split("\n");
  assert.match(lost, /^task "lost": .*there is no task "q"/);
  assert.match(mistyped, /^task "mistyped": .*Did you mean "filesystem:read_file"/);
  assert.match(lacking, /^task "lacking": .*Missing argument: path/);
});

Deno.test("pml why ends with 1 for a missing server or tool, and still shows a rule of the user", async () => {
  await using ws = await makeWorkspace({
    pml: { permissions: { allow: ["filesystem:*"], deny: ["nosuch:*"] } },
  });
  const ids = [["nosuch:tool", /nosuch/], ["filesystem:read_fle", /read_file/]] as const;
  for (const [id, says] of ids) {
    const { code, stdout, stderr } = await runPml(ws, ["why", id]);
    assert.equal(code, 1, id);
    assert.match(stdout, /^\S+: (denied\n|fails\n[^]*the rules alone: runs,) +by /);
    assert.match(stderr, says);
  }
  assert.equal((await runPml(ws, ["why", "filesystem:read_file"])).code, 0);
});

Deno.test("pml init --undo leaves no empty folder of a client, and keeps every folder with files", async () => {
  await using ws = await makeWorkspace({ files: { ".zed/tasks.json": "[]" } });
  const set = await runPml(ws, ["init", "--client", "cursor,codex,zed", "--yes"]);
  assert.equal(set.code, 0, set.stderr);
  assert.equal((await runPml(ws, ["init", "--undo", "--yes"])).code, 0);
  assert.deepEqual((await readdir(ws.path)).sort(), [".pml.json", ".zed"]);
  assert.deepEqual(await readdir(ws.file(".zed")), ["tasks.json"]);
});

Deno.test("pml init --undo keeps the folder of the project, even if it is empty", async () => {
  await using ws = await makeWorkspace();
  assert.equal((await runPml(ws, ["init", "--yes"])).code, 0);
  await Deno.remove(ws.file(".pml.json"));
  const undone = await runPml(ws, ["init", "--undo", "--yes"]);
  assert.equal(undone.code, 0, undone.stderr);
  assert.deepEqual(await readdir(ws.path), []);
});

Deno.test("pml upgrade and pml learn report a missing server, or one that is not a package", async () => {
  await using ws = await makeWorkspace({
    pml: { mcpServers: { far: { url: "http://127.0.0.1:9/mcp" } } },
  });
  const table: readonly (readonly [line: string, says: RegExp])[] = [
    ["upgrade nosuch", /Cannot upgrade "nosuch": .*no such server\n/],
    ["upgrade far", /Cannot upgrade "far": .*remote server\n/],
    ["learn far", /Cannot try "far": .*nothing to confine\n/],
    ["learn fra", /Cannot try "fra": .*no such server\n/],
  ];
  for (const [line, says] of table) {
    const result = await runPml(ws, line.split(" "));
    assert.equal(result.code, 2, line);
    assert.match(result.stderr, says, line);
  }
});

Deno.test("mistyped words get the next step: commands, clients, presets, servers, files and values", async () => {
  await using ws = await makeWorkspace({ files: { "mcp/weather.ts": "" }, pml: ALLOWED });
  const lines = [
    ..."rm notes|ls|version|statu|sevre|unallow a:b|import curser|lock git|lock memory".split("|"),
    ..."config --preset semantc|config --preset semantic --wizard|config show limits|schema filesystem:read_file|allow git:add("
      .split("|"),
    ..."key from X|check mcp/wether.ts|call git:log limit=x|call git:log --args {bad".split("|"),
    ..."trust x.json|why nothere:x|add filesystem -- node x.js".split("|"),
  ];
  const texts = [];
  for (const line of lines) {
    const { code, stdout, stderr } = await runPml(ws, line.split(" "));
    assert.notEqual(code, 0, line);
    texts.push(`$ pml ${line}\n${stdout}${stderr}`.replaceAll(ws.path, "<WORKSPACE>"));
  }
  assertGolden("typos/mistyped words", texts.join(""));
  const other = await runPml(ws, ["add", "files", "--", "npx", "x", "--json"]);
  assert.deepEqual([other.code, other.stdout], [1, ""], "--json belongs to the program");
  const { stderr } = await runPml(ws, ["call", "git:log", "--args", "-"], { stdin: "{bad\n" });
  assert.doesNotMatch(stderr, /bad/);
});

Deno.test("errors of a broken server, a disabled tool and a lost workspace name the action that helps", async () => {
  const files = { "memo.mjs": tinyServer('"fine"') };
  await using ws = await makeWorkspace({ files, pml: ALLOWED });
  const script = 'console.error("Error: Cannot find config"); process.exit(3);';
  const yaml = {
    mcpServers: {
      broken: { command: "node", args: ["-e", script] },
      memo: {
        command: "node",
        args: [ws.file("memo.mjs")],
        tools: { tell: { disabled: true } },
      },
    },
    permissions: { deny: ["git:log"] },
  };
  await writeFile(join(ws.home, "config.yaml"), JSON.stringify(yaml));
  const texts = [];
  for (const line of ["tools broken", "tools broken:x", "tools memo:tell", "call memo:tell"]) {
    const { stdout, stderr } = await runPml(ws, line.split(" "));
    texts.push(`$ pml ${line}\n${stdout}${stderr}`.replaceAll(ws.root, "<ROOT>"));
  }
  assertGolden("errors/broken and disabled", texts.join(""));
  const denied = await runPml(ws, ["tools", "git:log"]);
  assert.doesNotMatch(denied.stdout, /pml call/);
  const lost = { PML_WORKSPACE: join(ws.root, "nope") };
  const { findings } = JSON.parse((await runPml(ws, ["doctor", "--json"], { env: lost })).stdout);
  assert.deepEqual([findings[0].name, findings[0].ok], ["workspace", false]);
  assert.match((await runPml(ws, [], { env: lost })).stdout, /workspace .*"PML_WORKSPACE"/);
});

import assert from "node:assert/strict";
import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { assertGolden } from "../kit/golden.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { runPml, runPmlOnTerminal } from "../kit/run.ts";
import type { Workspace } from "../kit/workspace.ts";
import { assertAllListed, ENTRY_POINTS, LOOP, makeDoorScene } from "./entry_points.ts";
import { assertAftermath, batchedCalls, endWell, textOf } from "./oracles.ts";
import { answerOf, picked, questionOf, read } from "./questions.ts";
import { makeAttackWorkspace, makeScene } from "./stage.ts";

const CAN_ASK = { elicitation: { form: {} } } as const;
const WRITE = "filesystem:write_file";
const SECRET = "kept secret";

const SLOW = ["cli", "a saved capability", LOOP];

/** Returns ways to name a file in `secrets`, and values that PML cannot resolve. */
function aliases(ws: Workspace): readonly unknown[] {
  return [
    "secrets/a",
    "./secrets/a",
    "secrets//a",
    "secrets/./new",
    "src/../secrets/a",
    "src/linked/a",
    "src/linked/new",
    "src/key",
    "Secrets/a",
    ws.file("secrets/a"),
    ws.file("src/linked/a"),
    pathToFileURL(ws.file("secrets/a")).href,
    "FILE:secrets/a",
    "~/a",
    "src/dangling",
    "secrets",
    "secrets/a\0",
  ];
}

Deno.test("a deny with a condition applies at every entry point, in any spelling of the path (PM8)", async () => {
  assertAllListed();
  const pml = rules({ allow: ["*", "filesystem:*"], deny: [`${WRITE}(path=secrets/**)`] }, true);
  await using scene = await makeDoorScene({ pml, capabilities: {}, prepare: furnish });
  const { ws } = scene;
  for (const [door, use] of Object.entries(ENTRY_POINTS)) {
    // A command takes as long as thirty calls, so it is tried with a few paths.
    const all = aliases(ws);
    const paths = SLOW.includes(door) ? [all[0], all[5], all[11]] : all;
    for (const path of paths) {
      const text = await use(scene, WRITE, { path, content: "attacked" });
      assert.equal(text, "PERMISSION_DENIED", `${door}: ${path}`);
    }
    assert.equal(await use(scene, WRITE, { path: "src/free", content: "free" }), undefined, door);
  }
  assert.equal(await readFile(ws.file("secrets/a"), "utf8"), SECRET);
  assert.deepEqual((await readdir(ws.file("secrets"))).sort(), ["a"]);
  await endWell(ws, scene.pml);
});

Deno.test("a batch with one denied call runs only the others (PM8)", async () => {
  const pml = rules({ allow: ["filesystem:*"], deny: [`${WRITE}(path=secrets/**)`] });
  await using scene = await makeScene({ pml, capabilities: {}, prepare: furnish });
  const calls = ["src/one", "secrets/a", "src/two"].map((path) => ({
    tool: WRITE,
    arguments: { path, content: "x" },
  }));
  const items = batchedCalls(await scene.pml.callTool("batch", { calls }));
  const codes = items.map(({ error }) => error?.code);
  assert.deepEqual(codes, [undefined, "PERMISSION_DENIED", undefined]);
  assert.equal(await readFile(scene.ws.file("secrets/a"), "utf8"), SECRET);
  await endWell(scene.ws, scene.pml);
});

Deno.test("an allow with a condition runs the covered calls and asks about others, at every entry point", async () => {
  const pml = rules({ allow: [`${WRITE}(path=src/**)`, "filesystem:read_file"] }, true);
  await using scene = await makeDoorScene({ pml, capabilities: {}, prepare: furnish });
  for (const [door, use] of Object.entries(ENTRY_POINTS)) {
    assert.equal(await use(scene, WRITE, { path: "src/free", content: door }), undefined, door);
    assert.equal(await readFile(scene.ws.file("src/free"), "utf8"), door);
    for (const path of ["secrets/a", "src/../secrets/a", "src/linked/a", "other"]) {
      const text = await use(scene, WRITE, { path, content: "attacked" });
      assert.equal(text, "APPROVAL_REQUIRED", `${door}: ${path}`);
    }
  }
  assert.equal(await readFile(scene.ws.file("secrets/a"), "utf8"), SECRET);
  await endWell(scene.ws, scene.pml);
});

Deno.test("lists name a tool that a condition denies in part, and mark that it asks", async () => {
  const only = { allow: [`${WRITE}(path=src/**)`], deny: ["filesystem:move_file(source=src/**)"] };
  await using scene = await makeScene({ pml: rules(only, true), capabilities: {} });
  const { tools } = (await scene.pml.request("tools/list")).result as unknown as {
    readonly tools: readonly { readonly name: string }[];
  };
  const names = tools.map(({ name }) => name);
  assert.ok(names.includes("filesystem__move_file") && names.includes("filesystem__write_file"));
  const message = await scene.pml.callTool("schema", { tools: [WRITE] });
  assert.equal(JSON.parse(textOf(message))[0].permission, "asks the user first");
  assert.equal((await scene.pml.close()).code, 0);
  await assertAftermath(scene.ws, scene.pml);
});

/** A module with the tool of a shell, which returns its arguments. */
const SHELL = {
  files: {
    "shell.js": `
      export const __meta__ = { name: "shell", version: "1.0.0", tools: { exec: {}, other: {} } };
      export const exec = (args) => "ran " + JSON.stringify(args);
      export const other = () => "other";`,
  },
  pml: {
    version: 1,
    permissions: { allow: ["*", "filesystem:read_file"] },
    private_mcps: { shell: { type: "deno", path: "shell.js" } },
  },
} as const;

Deno.test("Always allows exactly the shown arguments of tools that run code (SP14)", async () => {
  await using scene = await makeScene({ era: "2026-07-28", ...SHELL, capabilities: CAN_ASK });
  const { ws, pml } = scene;
  const args = { command: "git", args: ["log", '// "x" /* */', "\\"] };
  const exec = (given: Record<string, unknown>) => ({ name: "shell__exec", arguments: given });
  const question = await questionOf(pml, exec(args));
  assert.deepEqual(question.replies, ["Yes", "Always", "No"]);
  assert.match(question.text, /\n\n"Always" allows exactly these arguments.*\n$/);
  await read();
  await question.answer(picked("Always"));
  const { permissions } = JSON.parse(await readFile(ws.file(".pml.json"), "utf8"));
  const rule = `shell:exec(${JSON.stringify({ args: args.args, command: args.command })})`;
  assert.deepEqual(permissions.allow, [rule, "*", "filesystem:read_file"]);
  await using other = new RawStdio(ws, { era: "2026-07-28", capabilities: CAN_ASK });
  await other.open();
  for (const each of [pml, other]) {
    assert.match(textOf(await answerOf(each, exec(args))), /^ran/);
    const changes = [{ args: [] }, { command: "sh" }, { more: 1 }];
    for (const change of changes) {
      const again = await questionOf(each, exec({ ...args, ...change }));
      await again.answer(picked("Yes"));
    }
  }
  const beside = await questionOf(pml, { name: "shell__other", arguments: {} });
  assert.match(beside.text, /\n"Always" .* any arguments.*\n$/);
  await beside.answer(picked("Yes"));
  assert.equal((await other.close()).code, 0);
  await endWell(ws, pml);
});

Deno.test("pml why names the rule that decides about a call", async () => {
  const deny = `${WRITE}(path=secrets/**)`;
  const allow = `${WRITE}(path=src/**)`;
  await using ws = await makeAttackWorkspace({ pml: rules({ allow: [allow], deny: [deny] }) });
  const why = async (...words: readonly string[]) => await runPml(ws, ["why", WRITE, ...words]);
  const plain = (await why()).stdout;
  for (const rule of [deny, allow]) assert.ok(plain.includes(`rule "${rule}"\n`), plain);
  assertGolden("why/rules about arguments", plain);
  const table = {
    "src/a": ["runs", allow],
    "secrets/a": ["denied", deny],
    "b": ["asks", "no rule"],
  };
  for (const [path, [verdict, rule]] of Object.entries(table)) {
    const said = JSON.parse((await why(JSON.stringify({ path }), "--json")).stdout);
    assert.deepEqual([said.verdict, said.rule], [verdict, rule]);
  }
  assert.equal((await why("[]")).code, 2);
  assert.equal((await why("{}", "{}")).code, 2);
});

Deno.test("Always on a terminal allows exactly the arguments", async () => {
  await using ws = await makeAttackWorkspace(SHELL);
  const call = ["call", "shell:exec", "--args", '{"command":"ls"}'];
  const result = await runPmlOnTerminal(ws, call, {
    typed: [[/"Always" allows exactly[^]*\[N\] no/, "always"]],
  });
  assert.match(result.stdout, /ran \{"command":"ls"\}/);
  assert.match((await runPml(ws, call)).stdout, /^ran/);
  const other = ["call", "shell:exec", "--args", '{"command":"ls -l"}'];
  assert.equal((await runPml(ws, other)).code, 1);
});

function rules(permissions: Record<string, readonly string[]>, all = false) {
  const gateway = all ? { tools_exposure: "full_proxy" } : {};
  return { version: 1, permissions, gateway };
}

/** Creates `secrets/a`, and in `src` links to the folder, to the file and to a missing one. */
async function furnish(ws: Workspace): Promise<void> {
  for (const folder of ["src", "secrets"]) await mkdir(ws.file(folder));
  await writeFile(ws.file("secrets/a"), SECRET);
  await symlink(join("..", "secrets"), ws.file("src/linked"));
  await symlink(join("..", "secrets", "a"), ws.file("src/key"));
  await symlink(join("..", "secrets", "b"), ws.file("src/dangling"));
}

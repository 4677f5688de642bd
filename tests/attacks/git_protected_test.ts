/**
 * `git` and the files that are closed to modules: git runs with the rights of the user, and shows
 * and changes these files as little as any other tool.
 *
 * @module
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { assertNoLeak } from "../kit/sinks.ts";
import type { Workspace } from "../kit/workspace.ts";
import { codeOf, endWell, textOf } from "./oracles.ts";
import { person, SECRET } from "./repositories.ts";
import { makeScene, type Scene } from "./stage.ts";

const ALLOWED = { version: 1, permissions: { allow: ["filesystem:*", "git:*"] } } as const;
/** Names that are closed for reading: files, files in folders, and a file in any folder. */
const READ = [
  ".env",
  ".npmrc",
  "x.pem",
  ".aws/credentials",
  ".docker/config.json",
  ".claude/settings.json",
];
/** Names that are closed for writing. */
const WRITTEN = [
  ...READ,
  "CLAUDE.md",
  ".vscode/tasks.json",
  ".github/workflows/ci.yml",
  ".envrc",
  ".gitattributes",
];

type Git = (...args: readonly string[]) => string;

/** Creates a repository in the workspace, and runs git there as the user would. */
async function sceneOf(
  prepare: (git: Git, put: (name: string, text: string) => Promise<void>) => Promise<void>,
): Promise<Scene> {
  return await makeScene({
    pml: ALLOWED,
    prepare: async (ws) => {
      await person(ws);
      const git = gitIn(ws);
      git("init", "-q", "-b", "main");
      await prepare(git, (name, text) => put(ws, name, text));
    },
  });
}

function gitIn(ws: Workspace): Git {
  const env = { PATH: ws.env.PATH ?? "", HOME: dirname(ws.home), GIT_CONFIG_NOSYSTEM: "1" };
  return (...args) => execFileSync("git", [...args], { cwd: ws.path, env, encoding: "utf8" });
}

async function put(ws: Workspace, name: string, text: string): Promise<void> {
  await mkdir(dirname(ws.file(name)), { recursive: true });
  await writeFile(ws.file(name), text);
}

Deno.test("git writes no closed file, from any commit or stash (PE11)", async () => {
  await using scene = await sceneOf(async (git, put) => {
    await put("deep/a", "a\n");
    git("add", ".", ":!.pml.json");
    git("commit", "-q", "-m", "first");
    for (const name of WRITTEN) await put(`deep/${name}`, "attacked\n");
    await put("deep/a", "b\n");
    git("add", "-f", ".", ":!.pml.json");
    git("commit", "-q", "-m", "attack");
    git("reset", "-q", "--hard", "HEAD~1");
    git("checkout", "-q", "HEAD@{1}", "--", ".");
    git("stash", "push", "-q");
    await put("CLAUDE.md", "mine\n");
    git("add", "CLAUDE.md");
    git("commit", "-q", "-m", "mine");
    await put("CLAUDE.md", "mine, changed\n");
  });
  const { ws, pml } = scene;
  const state = async () =>
    (await readdir(ws.path, { recursive: true })).filter((name) =>
      !/^\.git\/|^pml\.lock/.test(name)
    ).sort();
  const before = await state();
  const source = gitIn(ws)("rev-parse", "HEAD@{3}").trim();
  for (const name of WRITTEN) {
    const answer = await pml.callTool("git__restore", { paths: [`deep/${name}`], source });
    assert.equal(codeOf(answer), "PATH_PROTECTED", `${name}: ${textOf(answer)}`);
  }
  const calls = [
    ["restore", { paths: ["."], source }],
    ["restore", { paths: ["CLAUDE.md"] }],
    ["stash", { action: "pop" }],
    ["stash", { action: "apply" }],
    ["stash", { action: "push" }],
    ["stash", { action: "push", untracked: true, paths: ["./CLAUDE.md"] }],
  ] as const;
  for (const [tool, args] of calls) {
    const answer = await pml.callTool(`git__${tool}`, args);
    assert.equal(codeOf(answer), "PATH_PROTECTED", `${JSON.stringify(args)}: ${textOf(answer)}`);
  }
  assert.deepEqual(await state(), before);
  assert.equal(await readFile(ws.file("CLAUDE.md"), "utf8"), "mine, changed\n");
  // Open files are restored all the same.
  await pml.callTool("git__restore", { paths: ["deep/a"], source });
  assert.equal(await readFile(ws.file("deep/a"), "utf8"), "b\n");
  await endWell(ws, pml);
});

Deno.test("git creates no repository from pieces that are open one by one (GW12)", async () => {
  const pieces = { HEAD: "ref: refs/heads/x\n", config: "[core]\n", "objects/x": "x" };
  await using scene = await sceneOf(async (git, put) => {
    for (const folder of ["all", "some", "head"]) {
      for (const [name, text] of Object.entries(pieces)) await put(`${folder}/${name}`, text);
    }
    await put("linked/head", "x");
    await put("linked/commondir", "x");
    await put("plain/objects/x", "x");
    await put("plain/config", "x");
    git("add", ".", ":!.pml.json");
    git("commit", "-q", "-m", "first");
  });
  const { ws, pml } = scene;
  const gone = [
    "all",
    "linked",
    "plain",
    "some/HEAD",
    "some/config",
    "head/config",
    "head/objects",
  ];
  for (const name of gone) await rm(ws.file(name), { recursive: true });
  for (const paths of [["all"], ["linked"], ["some"], ["head"], ["some/HEAD", "some/config"]]) {
    const answer = await pml.callTool("git__restore", { paths });
    assert.equal(codeOf(answer), "PATH_PROTECTED", `${paths}: ${textOf(answer)}`);
  }
  assert.deepEqual(await readdir(ws.file("some")), ["objects"]);
  assert.deepEqual(await readdir(ws.file("head")), ["HEAD"]);
  await pml.callTool("git__restore", { paths: ["plain"] });
  assert.deepEqual((await readdir(ws.file("plain"))).sort(), ["config", "objects"]);
  await endWell(ws, pml);
});

Deno.test("git shows no content of a closed file, however it is named (PE11, PE7)", async () => {
  await using scene = await sceneOf(async (git, put) => {
    for (const name of READ) await put(`é/${name}`, `${SECRET}\n`);
    await put("moved.pem", `${SECRET}\n${"line\n".repeat(20)}`);
    await put("open.txt", "one\n");
    git("add", "-f", ".", ":!.pml.json");
    git("commit", "-q", "-m", "first");
    git("mv", "moved.pem", "moved.txt");
    for (const name of READ) await put(`é/${name}`, `changed ${SECRET}\n`);
    await put("open.txt", "two\n");
    git("commit", "-q", "-a", "-m", "second");
    for (const name of READ) await put(`é/${name}`, `again ${SECRET}\n`);
    await put("open.txt", "three\n");
    git("stash", "push", "-q");
    git("stash", "apply", "-q");
  });
  const { ws, pml } = scene;
  const ask = async (tool: string, args: Readonly<Record<string, unknown>>) =>
    await pml.callTool(`git__${tool}`, { ...args });
  for (const name of READ) {
    const [first = "", ...rest] = name.split("/");
    const spellings = [
      `./é//${name}`,
      `é/${[first, ...rest].join("//")}`,
      `é/${[first, ...rest].join("/./")}`,
      `é/${name.toUpperCase()}`,
    ];
    for (const [at, path] of spellings.entries()) {
      for (const tool of at === 1 ? ["show", "blame"] : ["show"]) {
        const answer = await ask(tool, { path });
        assert.equal(codeOf(answer), "PATH_PROTECTED", `${tool} ${path}: ${textOf(answer)}`);
      }
    }
  }
  const patches = [
    ["diff", {}],
    ["diff", { from: "HEAD~1" }],
    ["diff", { from: "HEAD~1", to: "HEAD" }],
    ["diff", { from: "HEAD", to: "HEAD~1" }],
    ["show", {}],
    ["show", { revision: "HEAD~1" }],
    ["stash", { action: "show" }],
  ] as const;
  for (const [tool, args] of patches) {
    const text = textOf(await ask(tool, args));
    assert.match(text, /^[-+](one|two|three)$/m, JSON.stringify(args));
    assert.match(text, /\[its content is protected\]/);
  }
  assertNoLeak(SECRET, { stdout: pml.stdout, stderr: pml.stderr });
  await endWell(ws, pml);
});

Deno.test("git shows no settings of a client whose folder is a repository (PE11)", async () => {
  await using scene = await sceneOf(async (git, put) => {
    await put(".docker/config.json", `${SECRET}\n`);
    git("init", "-q", ".docker");
    git("-C", ".docker", "add", "-A");
    git("-C", ".docker", "commit", "-q", "-m", "first");
    await put(".docker/config.json", `changed ${SECRET}\n`);
  });
  const { ws, pml } = scene;
  for (
    const [tool, args] of [["show", { path: "config.json" }], ["blame", { path: "config.json" }], [
      "diff",
      {},
    ], ["show", {}]] as const
  ) {
    await pml.callTool(`git__${tool}`, { repo: ".docker", ...args });
  }
  assertNoLeak(SECRET, { stdout: pml.stdout, stderr: pml.stderr });
  await endWell(ws, pml);
});

Deno.test("no tool reads the objects that git stores for closed files (PE11)", async () => {
  await using scene = await sceneOf(async (git, put) => {
    await put(".npmrc", `${SECRET}\n`);
    git("add", ".", ":!.pml.json");
    git("commit", "-q", "-m", "first");
    git("gc", "-q");
    git("init", "-q", "other");
    await put(".env", `changed ${SECRET}\n`);
  });
  const { ws, pml } = scene;
  const added = await pml.callTool("git__add", { paths: [".env"] });
  assert.match(textOf(added), /added \.env/);
  const files = (await readdir(ws.path, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && /objects\/(?:pack|..)$/.test(entry.parentPath))
    .map(({ parentPath, name }) => `${parentPath}/${name}`);
  assert.ok(files.some((path) => path.endsWith(".pack")) && files.length > 2, files.join());
  for (const path of files) {
    for (const tool of ["read_file", "read_media_file"]) {
      const answer = await pml.callTool(`filesystem__${tool}`, { path });
      assert.equal(codeOf(answer), "PATH_PROTECTED", `${tool} ${path}: ${textOf(answer)}`);
    }
  }
  // Git itself still uses them.
  assert.equal(codeOf(await pml.callTool("git__commit", { message: "second" })), undefined);
  assert.match(textOf(await pml.callTool("git__log", {})), /second/);
  await endWell(ws, pml);
});

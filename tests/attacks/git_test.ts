/**
 * Hostile repositories and the built-in `git` through a spawned PML: no planted program runs, no
 * file outside is read or changed, and the answers are right all the same.
 *
 * @module
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Yard } from "../../builtin/git/_host_test.ts";
import { ground, markers, outside, plant, type Trap, TRAPS } from "../../builtin/git/_trap_test.ts";
import { __meta__ } from "../../builtin/git/meta.ts";
import { ERAS, type Message } from "../kit/json_rpc.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { TcpSink } from "../kit/sinks.ts";
import { waitUntil } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import { codeOf, endWell, textOf } from "./oracles.ts";
import { honest, outerState, person, plain, plantOutside, SECRET } from "./repositories.ts";
import { makeScene } from "./stage.ts";

const ALLOWED = { version: 1, permissions: { allow: ["filesystem:*", "git:*"] } } as const;

/** Texts of the tools when they refuse to act. */
const UNDONE =
  /filter "evil", and none is run|it is a partial clone|nothing (is staged|changed)|CONFLICT \(content\)|submodule|in its \.git is a link|lies in no git repository/;

/** One trap of each kind; the tests next to the module have more. */
const BITING = [
  "fsmonitor",
  "clean",
  "process",
  "hooks",
  "textconv",
  "external diff",
  "merge driver",
  "signing",
  "editor",
  "a submodule's own configuration",
  "ssh",
  "a bare repository in a folder",
];

type Arguments = Readonly<Record<string, unknown>>;

/** Every tool, with arguments that reach as far into a repository as possible. */
const CALLS: Readonly<Record<string, Arguments>> = {
  status: {},
  diff: {},
  log: {},
  show: {},
  blame: { path: "a" },
  branches: {},
  add: { all: true },
  commit: { message: "x", all: true },
  restore: { paths: ["a"] },
  stash: { action: "push" },
};
const READING = ["status", "diff", "log", "show", "blame", "branches"];

Deno.test("every tool of git is attacked", () => {
  assert.deepEqual(Object.keys(CALLS).sort(), Object.keys(__meta__.tools).sort());
});

for (const era of ERAS) {
  Deno.test(`no planted program of a repository runs for any request to git, on ${era}`, async (t) => {
    using base = ground();
    await using scene = await makeScene({ era, pml: ALLOWED, prepare: person });
    const { ws, pml } = scene;
    // There are many traps and few revisions: each revision has one half of the traps, to save
    // time.
    const half = BITING.filter((_, at) => (at % 2 === 0) === (era === ERAS[0]));
    for (const [at, name] of half.entries()) {
      const trap = TRAPS[name];
      assert.ok(trap, name);
      await t.step(name, () => tryTrap(pml, { ws, base, trap, repo: `repo-${at}` }));
    }
    await endWell(ws, pml);
  });
}

Deno.test("git reports the state of a repository and changes only the requested parts", async () => {
  await using scene = await makeScene({ pml: ALLOWED, prepare: honest });
  const { ws, pml } = scene;
  const call = (tool: string, args: Arguments = {}) => git(pml, tool, { repo: "r", ...args });
  const status = (await call("status")).result?.structuredContent;
  assert.deepEqual([status?.root, status?.branch, status?.file_count] as unknown[], [
    "r",
    "main",
    1,
  ]);
  assert.match(textOf(await call("diff")), /^-one\n\+two$/m);
  assert.match(textOf(await call("log")), /first/);
  assert.match(textOf(await call("show", { path: "a" })), /one/);
  assert.match(textOf(await call("blame", { path: "d/b" })), /kept/);
  assert.match(textOf(await call("branches")), /main/);
  assert.match(textOf(await call("stash", { action: "push" })), /aside|stash/i);
  assert.equal(await readFile(ws.file("r/a"), "utf8"), "one\n");
  await call("stash", { action: "pop" });
  assert.equal(await readFile(ws.file("r/a"), "utf8"), "two\n");
  await call("add", { paths: ["a"] });
  const hash = (await call("commit", { message: "second" })).result?.structuredContent?.hash;
  assert.equal(plain(ws, ["rev-parse", "HEAD"]), String(hash));
  assert.equal(plain(ws, ["log", "-1", "--format=%an %s"]), "Ada second");
  await writeFile(ws.file("r/a"), "lost\n");
  await call("restore", { paths: ["a"] });
  assert.equal(await readFile(ws.file("r/a"), "utf8"), "two\n");
  await endWell(ws, pml);
});

Deno.test("by default a tool that reads a repository runs, and a tool that changes one asks", async () => {
  await using scene = await makeScene({ pml: { version: 1 }, capabilities: {}, prepare: honest });
  const { ws, pml } = scene;
  const state = () => plain(ws, ["for-each-ref"]) + plain(ws, ["status", "--porcelain"]);
  const before = state();
  for (const [tool, args] of Object.entries(CALLS)) {
    const answer = await git(pml, tool, { repo: "r", ...args });
    const wanted = READING.includes(tool) ? undefined : "APPROVAL_REQUIRED";
    assert.equal(codeOf(answer), wanted, `${tool}: ${textOf(answer)}`);
    if (wanted === undefined) assert.ok(!isError(answer), `${tool}: ${textOf(answer)}`);
  }
  assert.equal(state(), before);
  await endWell(ws, pml);
});

Deno.test("git uses no repository that is or leads outside (PE1, PE3, PE10)", async () => {
  await using scene = await makeScene({
    pml: ALLOWED,
    prepare: async (ws) => {
      await person(ws);
      await plantOutside(ws);
      await honest(ws);
    },
  });
  const { ws, pml } = scene;
  const before = await outerState(ws);
  const repos = [
    "..",
    "../other",
    join(ws.root, "other"),
    "link",
    "r/../../other",
    "/",
    "no",
    "pointer",
    "pointer-up",
    "common",
    "linked-git",
    "borrows",
    "config-link",
    "pipe",
    "worktree",
    "includes",
    "bare",
    "good.txt",
    "r\0",
    "-c",
    "--git-dir=../other/.git",
    "~",
    "%2e%2e",
  ];
  for (const [at, repo] of repos.entries()) {
    // The tools share one entry point, so each repository is tried with two of them.
    for (const [tool, args] of Object.entries(CALLS).filter((_, n) => n % 5 === at % 5)) {
      const answer = await git(pml, tool, { ...args, repo });
      const text = JSON.stringify(answer);
      const ownTree = repo === "worktree";
      assert.ok(ownTree || isError(answer), `${tool} ${repo}: ${text.slice(0, 400)}`);
      assert.ok(!text.includes(SECRET), `${tool} ${repo}`);
    }
  }
  assert.deepEqual(await outerState(ws), before);
  await endWell(ws, pml);
});

Deno.test("no value is read as an option or a path outside (PE1)", async () => {
  await using scene = await makeScene({
    pml: ALLOWED,
    prepare: async (ws) => {
      await honest(ws);
      await plantOutside(ws);
      await symlink("../../other", ws.file("r/out"));
    },
  });
  const { ws, pml } = scene;
  const before = await outerState(ws);
  const values = [
    `--output=${ws.root}/made`,
    "--upload-pack=touch made",
    "--ext-diff",
    "-O/etc/passwd",
    `--no-index`,
    "--exec=touch made",
    ":(top)../other",
    "../../other/secret",
    "../other/secret",
    join(ws.root, "other/secret"),
    "out/secret",
    ".git/config",
    "-",
  ];
  const asked: readonly (readonly [string, (value: string) => Arguments])[] = [
    ["diff", (value) => ({ from: value })],
    ["diff", (value) => ({ from: "HEAD", to: value })],
    ["diff", (value) => ({ paths: [value] })],
    ["log", (value) => ({ revision: value })],
    ["log", (value) => ({ path: value, author: value, since: value })],
    ["show", (value) => ({ revision: value })],
    ["show", (value) => ({ path: value })],
    ["blame", (value) => ({ path: value })],
    ["add", (value) => ({ paths: [value] })],
    ["restore", (value) => ({ paths: [value] })],
    ["restore", (value) => ({ paths: ["a"], source: value })],
    ["commit", (value) => ({ message: "x", paths: [value] })],
    ["stash", (value) => ({ action: "push", paths: [value] })],
  ];
  for (const [at, [tool, args]] of asked.entries()) {
    for (const value of values.filter((_, n) => n % 3 === at % 3)) {
      const answer = await git(pml, tool, { repo: "r", ...args(value) });
      assert.ok(!JSON.stringify(answer).includes(SECRET), `${tool} ${value}`);
    }
  }
  assert.deepEqual(await outerState(ws), before);
  assert.ok(!(await readdir(ws.file("r"))).includes("made"));
  await endWell(ws, pml);
});

/** Plants a trap into the workspace, calls the tools that it attacks, and looks for marks. */
async function tryTrap(
  pml: RawStdio,
  { ws, base, trap, repo }: {
    readonly ws: Workspace;
    readonly base: Yard;
    readonly trap: Trap;
    readonly repo: string;
  },
): Promise<void> {
  using yard = new (base.constructor as typeof Yard)(base);
  plant(yard, [trap]);
  await using knocked = new TcpSink();
  await addKnock(yard, knocked.port);
  execFileSync("cp", ["-a", yard.ws, ws.file(repo)]);
  const before = outside(yard);
  for (const [tool, args] of trap.calls) {
    const { repo: inner = "." } = args as { readonly repo?: string };
    const answer = await git(pml, tool, { ...args, repo: join(repo, inner) });
    const text = `${tool} ${JSON.stringify(args)}: ${textOf(answer)}`;
    assert.deepEqual(markers(yard), [], text);
    knocked.assertSilent();
    assert.equal(codeOf(answer), undefined, text);
    if (isError(answer)) assert.match(textOf(answer), UNDONE, text);
  }
  assert.equal(outside(yard), before);
  yard.git(trap.plain, ".", { fails: true });
  assert.ok(markers(yard).includes(trap.marker), "the trap does not bite");
  assert.ok(await waitUntil(() => knocked.received.length > 0), "the trap does not knock");
}

/**
 * Lets the planted program connect to a port: where the system lets it write nothing, it leaves no
 * mark.
 */
async function addKnock(yard: Yard, port: number): Promise<void> {
  const knock = `bash -c 'echo knock > /dev/tcp/127.0.0.1/${port}'`;
  const isProgram = /\/run-\w+$|\/ws\/(\.git\/hooks|planted)\/[\w-]+$/;
  for (const name of await readdir(yard.path, { recursive: true })) {
    const path = join(yard.path, name);
    if (!isProgram.test(path)) continue;
    await writeFile(path, (await readFile(path, "utf8")).replace("\n", `\n${knock}\n`));
  }
}

async function git(pml: RawStdio, tool: string, args: Arguments): Promise<Message> {
  return await pml.callTool(`git__${tool}`, { ...args });
}

function isError({ result, error }: Message): boolean {
  return error !== undefined || (result?.isError as unknown) === true;
}

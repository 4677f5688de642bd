/**
 * Tries to lead the tools out of the workspace, or to pass values as options.
 *
 * @module
 */

import assert from "node:assert/strict";
import { type Name, Yard } from "./_host_test.ts";
import * as tools from "./git.ts";

const ALL: readonly (readonly [Name, object])[] = [
  ["status", {}],
  ["diff", {}],
  ["log", {}],
  ["show", {}],
  ["blame", { path: "a" }],
  ["branches", {}],
  ["add", { all: true }],
  ["commit", { message: "x", all: true }],
  ["restore", { paths: ["a"] }],
  ["stash", { action: "list" }],
];

/** A workspace with a changed repository, and another repository outside. */
function yardWith(): Yard {
  const yard = new Yard().repository({ a: "1\n", "d/b": "1\n" });
  yard.put("a", "2\n");
  Deno.renameSync(`${yard.ws}`, `${yard.path}/inner`);
  Deno.mkdirSync(yard.ws);
  yard.repository({ secret: "TOP SECRET\n" }, "../outside");
  Deno.removeSync(yard.ws);
  Deno.renameSync(`${yard.path}/inner`, yard.ws);
  return yard;
}

async function everyToolFails(yard: Yard, repo: string, message: RegExp): Promise<void> {
  for (const [name, args] of ALL) await yard.fails(name, { ...args, repo }, message);
}

Deno.test("Every tool is tried", () => {
  assert.deepEqual(ALL.map(([name]) => name).sort(), Object.keys(tools).sort());
});

Deno.test("No tool leaves the workspace by its argument repo", async () => {
  using yard = yardWith();
  Deno.symlinkSync(`${yard.path}/outside`, `${yard.ws}/link`);
  Deno.symlinkSync("../outside/secret", `${yard.ws}/file`);
  yard.runs.length = 0;
  for (
    const repo of ["..", "../outside", "link", "file", `${yard.path}/outside`, "d/../..", "no"]
  ) {
    await everyToolFails(yard, repo, /" is not a folder/);
  }
  await everyToolFails(yard, "a\0b", /" is not a folder/);
  assert.deepEqual(yard.runs, []);
});

Deno.test("No tool looks for a repository above the workspace", async () => {
  using yard = new Yard();
  yard.git(["init", "-q"], "..");
  await everyToolFails(yard, ".", /"\." .*no git repository/);
  assert.deepEqual(yard.runs, []);
});

Deno.test("No tool follows a .git that leads out of the workspace", async () => {
  const outside = (yard: Yard) => `${yard.path}/outside/.git`;
  const plants: readonly ((yard: Yard, git: string) => void)[] = [
    (yard, git) => Deno.symlinkSync(outside(yard), git),
    (yard, git) => Deno.writeTextFileSync(git, `gitdir: ${outside(yard)}\n`),
    (_, git) => Deno.writeTextFileSync(git, "gitdir: ../outside/.git\n"),
    (_, git) => Deno.writeTextFileSync(git, "gitdir: nowhere\n"),
    (_, git) => Deno.writeTextFileSync(git, "no pointer\n"),
    (_, git) => Deno.writeTextFileSync(git, `gitdir: ${"x".repeat(5_000)}\n`),
    (yard, git) => {
      // No list protects this name, so other tools could write the repository's configuration.
      Deno.renameSync(`${yard.ws}/was`, `${yard.ws}/plain`);
      Deno.writeTextFileSync(git, "gitdir: plain\n");
    },
    (_, git) => {
      Deno.mkdirSync(git);
      Deno.writeTextFileSync(`${git}/HEAD`, "ref: refs/heads/main\n");
      Deno.writeTextFileSync(`${git}/commondir`, "../../outside/.git\n");
    },
  ];
  for (const plant of plants) {
    using yard = yardWith();
    Deno.renameSync(`${yard.ws}/.git`, `${yard.ws}/was`);
    plant(yard, `${yard.ws}/.git`);
    await everyToolFails(
      yard,
      ".",
      /is a link, or|to no \.git|names no folder/,
    );
    assert.deepEqual(yard.runs, []);
  }
});

Deno.test("No tool goes through a link or a pipe in .git", async () => {
  const paths = "config HEAD index COMMIT_EDITMSG refs refs/heads refs/heads/x logs logs/HEAD " +
    "logs/refs/heads/main objects/pack objects/ab info info/exclude rebase-merge/x packed-refs";
  for (const path of paths.split(" ")) {
    using yard = yardWith();
    const git = `${yard.ws}/.git`;
    Deno.mkdirSync(`${git}/${path}`.replace(/\/[^/]*$/, ""), { recursive: true });
    await Deno.remove(`${git}/${path}`, { recursive: true }).catch(() => {});
    Deno.symlinkSync(`${yard.path}/outside/secret`, `${git}/${path}`);
    yard.runs.length = 0;
    await everyToolFails(yard, ".", new RegExp(`"${path}" in its \\.git is a link`));
    assert.deepEqual(yard.runs, []);
    assert.equal(yard.get("../outside/secret"), "TOP SECRET\n");
  }
  using yard = yardWith();
  new Deno.Command("mkfifo", { args: [`${yard.ws}/.git/MERGE_MSG`] }).outputSync();
  await everyToolFails(yard, ".", /"MERGE_MSG" .*\.git .*special/);
});

Deno.test("No tool reads objects of another repository", async () => {
  using yard = yardWith();
  yard.put(".git/objects/info/alternates", `${yard.path}/outside/.git/objects\n`);
  await everyToolFails(yard, ".", /repository; .*git repack -ad/);
});

Deno.test("No tool reads a file that the configuration includes", async () => {
  const keys = ["include.path", "includeIf.gitdir:/.path", "includeIf.onbranch:none.path"];
  for (const key of keys) {
    using yard = yardWith();
    // A pipe: a process that opens it would wait for ever.
    new Deno.Command("mkfifo", { args: [`${yard.path}/outside/pipe`] }).outputSync();
    yard.git(["config", "--file", ".git/config", key, `${yard.path}/outside/pipe`]);
    await everyToolFails(
      yard,
      ".",
      /has "include.*copy the content/,
    );
  }
});

Deno.test("No tool uses a driver whose name it cannot write", async () => {
  using yard = yardWith();
  const config = Deno.readFileSync(`${yard.ws}/.git/config`);
  const text = new TextEncoder();
  const parts = [config, text.encode('[filter "'), [0xff], text.encode('"]\n\tclean = x\n')];
  yard.put(".git/config", new Uint8Array(parts.flatMap((part) => [...part])));
  await everyToolFails(yard, ".", /its configuration has "filter.*not UTF-8/);
});

Deno.test("No setting of the repository makes git read a file outside, or change the answers", async () => {
  using yard = yardWith();
  const secret = `${yard.path}/outside/secret`;
  const settings: Readonly<Record<string, string>> = {
    "core.attributesFile": `${yard.path}/outside/attributes`,
    "core.excludesFile": `${yard.path}/outside/ignore`,
    "core.worktree": `${yard.path}/outside`,
    "diff.orderFile": `${yard.path}/outside/order`,
    "mailmap.file": `${yard.path}/outside/mailmap`,
    "blame.ignoreRevsFile": secret,
    "commit.template": secret,
    "diff.noprefix": "true",
    "diff.context": "0",
    "core.quotePath": "false",
    "color.diff": "always",
    "color.ui": "always",
    "status.showUntrackedFiles": "no",
    "i18n.logOutputEncoding": "UTF-16",
  };
  for (const [key, text] of Object.entries(settings)) yard.git(["config", key, text]);
  yard.put("../outside/attributes", "* -diff\n");
  yard.put("../outside/ignore", "new\n");
  yard.put("../outside/order", "new\n");
  yard.put("../outside/mailmap", "Mallory <m@x> <ada@example.com>\n");
  yard.put("new", "");
  const plain = (args: string[]) =>
    yard.git(
      ["--git-dir=.git", "--work-tree=.", "-c", "i18n.logOutputEncoding=UTF-8", ...args],
      ".",
      { fails: true },
    );
  assert.match(plain(["log"]), /Mallory/);
  assert.equal(await yard.text("status"), "On main\n M a\n?? new");
  assert.match(
    await yard.text("diff"),
    /^diff --git a\/a b\/a\n.*\n.*\n.*\n@@ -1 \+1 @@\n-1\n\+2$/,
  );
  assert.match(await yard.text("log"), /Ada: first/);
  assert.match(await yard.text("blame", { path: "d/b" }), /Ada 2026-01-02: 1/);
  assert.match(await yard.text("add", { all: true }), /^Staged 2 files\nmodified a\nadded new$/);
  await yard.run("commit", { message: "x\n\n# kept" });
  const shown = await yard.run("show");
  assert.match(shown.content[0]?.text ?? "", /x\n\n# kept\n/);
  assert.deepEqual(shown.structuredContent.files.map(({ path }: { path: string }) => path), [
    "a",
    "new",
  ]);
  assert.equal(yard.get("../outside/secret"), "TOP SECRET\n");
});

Deno.test("No revision passes for an option, a path or several revisions", async () => {
  using yard = yardWith();
  const bad = [
    "--output=/tmp/x",
    "-O/tmp/x",
    "--upload-pack=x",
    ":(top)",
    ":/first",
    "a b",
    "HEAD:a",
  ];
  const more = ["a\0b", "^HEAD", "HEAD\n--all", "*", "[a]", "x".repeat(300)];
  yard.runs.length = 0;
  for (const text of [...bad, ...more, "HEAD..HEAD", "HEAD...HEAD", ".."]) {
    const said = /the revision: .*(no name|a range)/;
    await yard.fails("show", { revision: text }, said);
    await yard.fails("show", { revision: text, path: "a" }, said);
    await yard.fails("diff", { from: text }, said);
    await yard.fails("diff", { from: "HEAD", to: text }, said);
    await yard.fails("blame", { path: "a", revision: text }, said);
    await yard.fails("restore", { paths: ["a"], source: text }, said);
    if (!text.includes("..")) await yard.fails("log", { revision: text }, said);
  }
  assert.ok(yard.runs.every(([, , , command]) => command === "config"));
  await yard.fails("show", { revision: "@{-1}" }, /no such revision/);
  await yard.fails("log", { revision: "nope" }, /no such revision/);
  await yard.fails("diff", { from: "a" }, /no such revision/);
  assert.match(await yard.text("log", { revision: "@" }), /first/);
});

Deno.test("No path passes for an option, a pattern or a place outside", async () => {
  using yard = yardWith();
  const bad = [
    "-A",
    "--output=/tmp/x",
    "..",
    "../outside/secret",
    "d/../../outside",
    "/etc",
    "a\0b",
    "",
  ];
  for (const path of [...bad, `${yard.path}/outside/secret`, '"\\377"']) {
    const said = /be a path: it/;
    for (const name of ["status", "diff", "add", "restore"] as const) {
      await yard.fails(name, { paths: [path] }, said);
    }
    await yard.fails("commit", { message: "x", paths: [path] }, said);
    await yard.fails("stash", { action: "push", paths: [path] }, said);
    await yard.fails("log", { path }, said);
    await yard.fails("blame", { path }, said);
    await yard.fails("show", { path }, said);
  }
  for (const path of [":(top)a", ":/", "*", ":!a", "?"]) {
    await yard.fails("add", { paths: [path] }, /has nothing to stage/);
    assert.equal(await yard.text("diff", { paths: [path] }), "No changes");
  }
  for (const path of [".git/config", ".git"]) {
    await yard.fails("add", { paths: [path] }, /nothing to stage/);
    await yard.fails("show", { path }, /but not in 'HEAD'|does not exist/);
  }
  Deno.symlinkSync(`${yard.path}/outside`, `${yard.ws}/link`);
  await yard.fails("add", { paths: ["link/secret"] }, /Cannot add/);
  await yard.fails("blame", { path: "link/secret" }, /Cannot blame/);
});

Deno.test("No other text passes for an option", async () => {
  using yard = yardWith();
  const out = `${yard.path}/outside/made`;
  for (const name of ["author", "since", "until", "grep"]) {
    await yard.run("log", { [name]: `--output=${out}` });
    await yard.fails("log", { [name]: "a\0b" }, /holds NUL/);
  }
  await yard.run("commit", { message: `--output=${out}`, all: true });
  assert.match(await yard.text("log", { limit: 1 }), /: --output=/);
  await yard.fails("commit", { message: "a\0b", allow_empty: true }, /holds NUL/);
  yard.put("a", "3\n");
  await yard.run("stash", { action: "push", message: "--all" });
  assert.match(await yard.text("stash", { action: "list" }), /On main: --all/);
  assert.throws(() => Deno.statSync(out));
});

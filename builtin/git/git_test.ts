/**
 * Tests what the tools return, on real repositories.
 *
 * @module
 */

import assert from "node:assert/strict";
import { Yard } from "./_host_test.ts";
import * as tools from "./git.ts";
import { __meta__ } from "./meta.ts";
import { assertGolden } from "../../tests/kit/golden.ts";

Deno.test("__meta__ describes every exported tool, closed, with the rights that it needs", () => {
  assert.deepEqual(Object.keys(__meta__.tools).sort(), Object.keys(tools).sort());
  const changing = "add commit restore stash".split(" ");
  for (const [name, tool] of Object.entries(__meta__.tools)) {
    const { inputSchema, outputSchema, annotations, permissions } = tool;
    assert.equal(inputSchema.additionalProperties, false, name);
    assert.equal(outputSchema.type, "object", name);
    assert.equal(annotations.readOnlyHint, !changing.includes(name), name);
    assert.equal(annotations.openWorldHint, false, name);
    const write = changing.includes(name) ? { write: ["."] } : {};
    assert.deepEqual(permissions, { read: ["."], run: ["git"], ...write });
    assert.ok(tool.description.length < 200, name);
  }
  assert.ok(JSON.stringify(__meta__).length < 14_500);
});

Deno.test("status() works in a repository without commits, and log and show report it", async () => {
  using yard = new Yard().repository();
  yard.put("a", "1\n");
  const { structuredContent, content } = await yard.run("status");
  assertGolden("git/status before the first commit", content[0]?.text);
  assert.deepEqual(structuredContent, {
    root: ".",
    branch: "main",
    commit: null,
    stashes: 0,
    files: [{ path: "a", unstaged: "untracked" }],
    file_count: 1,
  });
  await yard.fails("log", {}, /no commit yet/);
  assertGolden("git/branches before the first commit", await yard.text("branches"));
  await yard.run("add", { all: true });
  assert.match(await yard.text("diff", { staged: true }), /\+1$/);
  assert.match(await yard.text("commit", { message: "first" }), /^\[main \(root-commit\)/);
  assert.equal(await yard.text("status"), "On main\nNothing changed");
});

Deno.test("status() reports upstream, stash, renames, deletions and detached HEAD", async () => {
  using yard = new Yard().repository({ a: "1\n2\n3\n", b: "1\n", c: "1\n" });
  yard.git(["branch", "up"]);
  yard.git(["branch", "-q", "--set-upstream-to=up"]);
  yard.git(["commit", "-q", "--allow-empty", "-m", "second"]);
  yard.put("c", "2\n");
  yard.git(["stash", "push", "-q"]);
  yard.git(["mv", "a", "new a"]);
  Deno.removeSync(`${yard.ws}/b`);
  const text = await yard.text("status");
  assertGolden("git/status with changes", text);
  const { files } = (await yard.run("status")).structuredContent;
  assert.deepEqual(files, [
    { path: "b", unstaged: "deleted" },
    { path: "new a", from: "a", staged: "renamed" },
  ]);
  assertGolden("git/status with a limit", await yard.text("status", { limit: 1 }));
  yard.git(["checkout", "-q", "--detach"]);
  assert.match(await yard.text("status"), /^Detached at [0-9a-f]{10}\n/);
});

Deno.test("a name of any bytes is reported, and can be staged by its folder", async () => {
  using yard = new Yard().repository();
  const names = [
    "with space",
    "tab\there",
    "line\nbreak",
    'a "quote"',
    '"',
    "é",
    "back\\slash",
    "x -> y",
  ];
  for (const name of names) yard.put(`d/${name}`, "1\n");
  new Deno.Command("sh", { args: ["-c", "printf 1 > \"$(printf 'd/caf\\351')\""], cwd: yard.ws })
    .outputSync();
  await yard.run("add", { paths: ["d"] });
  const { files } = (await yard.run("status")).structuredContent;
  const found = files.map(({ path }: { path: string }) => path).sort();
  assert.deepEqual(found, [...names.map((name) => `d/${name}`), '"d/caf\\351"'].sort());
  assert.ok(!/line\nbreak/.test(await yard.text("status")));
  await yard.run("commit", { message: "x" });
  for (const name of names) {
    yard.put(`d/${name}`, "2\n");
    assert.match(await yard.text("add", { paths: [`d/${name}`] }), /^Staged 1 file\b/);
    assert.match(
      (await yard.run("diff", { staged: true })).structuredContent.files[0].path,
      /^d\//,
    );
    assert.equal((await yard.run("show", { path: `d/${name}` })).structuredContent.content, "1\n");
    assert.equal(
      (await yard.run("log", { path: `d/${name}` })).structuredContent.commits.length,
      1,
    );
    await yard.run("restore", { paths: [`d/${name}`], staged: true });
    await yard.run("restore", { paths: [`d/${name}`] });
  }
  assert.equal(await yard.text("status"), "On main\nNothing changed");
});

Deno.test("diff() counts lines, follows renames, and reports binary files", async () => {
  using yard = new Yard().repository({ a: "1\n2\n3\n4\n", b: new Uint8Array([0, 1, 2]), c: "1\n" });
  yard.put("b", new Uint8Array([0, 1, 3]));
  yard.git(["mv", "a", "moved"]);
  yard.put("moved", "1\n2\n3\n5\n");
  yard.put("c", "1\n2\n");
  yard.git(["add", "-A"]);
  const { structuredContent } = await yard.run("diff", { staged: true });
  const { patch, ...rest } = structuredContent;
  assert.deepEqual(rest, {
    files: [
      { path: "b", status: "modified" },
      { path: "c", status: "modified", additions: 1, deletions: 0 },
      { path: "moved", from: "a", status: "renamed", additions: 1, deletions: 1 },
    ],
    file_count: 3,
    additions: 2,
    deletions: 1,
  });
  assert.match(patch, /Binary files a\/b and b\/b differ/);
  assert.equal(await yard.text("diff"), "No changes");
  const one = await yard.run("diff", { from: "HEAD", paths: ["c"], context: 0 });
  assert.match(one.structuredContent.patch, /@@ -1,0 \+2 @@\n\+2$/);
  await yard.fails("diff", { to: "HEAD" }, /to goes with from/);
});

Deno.test("A long patch is cut at a line, names all files, and goes on at the offset", async () => {
  using yard = new Yard().repository({ a: "", b: "" });
  const rows = Array.from({ length: 20_000 }, (_, at) => `line ${at}\n`).join("");
  yard.put("a", rows);
  yard.put("b", "1\n");
  const whole = [];
  for (let offset: number | undefined = 0; offset !== undefined;) {
    const { content, structuredContent } = await yard.run("diff", { offset });
    const text = content[0]?.text ?? "";
    assert.ok(text.length < 70_000);
    assert.equal(text.startsWith("2 files, +20001 -0:\na +20000 -0\nb +1 -0\n"), offset === 0);
    whole.push(structuredContent.patch);
    offset = structuredContent.next_offset;
    assert.equal(/go on with offset \d+\]$/.test(text), offset !== undefined);
  }
  assert.ok(whole.length > 2);
  assert.equal(whole.join(""), yard.git(["diff"]).trimEnd());
  // A filter could be hidden in the omitted part, and would not be turned off.
  yard.maxBytes = 100;
  await yard.fails("diff", {}, /too much of it/);
});

Deno.test("log() pages, filters and follows", async () => {
  using yard = new Yard().repository({ a: "1\n2\n3\n" });
  yard.git(["mv", "a", "b"]);
  yard.git(["commit", "-qm", "move\n\nwhy: (because)"]);
  yard.git(["-c", "user.name=Bob", "commit", "-q", "--allow-empty", "-m", "third"]);
  yard.git(["tag", "v1"]);
  const subjects = async (args: object) =>
    (await yard.run("log", args)).structuredContent.commits.map((c: { subject: string }) =>
      c.subject
    );
  assert.deepEqual(await subjects({}), ["third", "move", "first"]);
  assert.deepEqual(await subjects({ limit: 1, skip: 1 }), ["move"]);
  assert.deepEqual(await subjects({ author: "bob" }), ["third"]);
  assert.deepEqual(await subjects({ grep: "(BECAUSE)" }), ["move"]);
  assert.deepEqual(await subjects({ until: "2020-01-01" }), []);
  assert.deepEqual(await subjects({ since: "2020-01-01", revision: "HEAD~1" }), ["move", "first"]);
  assert.deepEqual(await subjects({ revision: "HEAD~2..HEAD~1" }), ["move"]);
  assert.deepEqual(await subjects({ path: "b" }), ["move"]);
  assert.deepEqual(await subjects({ path: "b", follow: true }), ["move", "first"]);
  assert.match(
    await yard.text("log", { limit: 1 }),
    /Bob: third \(.*v1.*\)\n\[more; go on with skip 1\]$/,
  );
  const { commits } = (await yard.run("log", { skip: 1, limit: 1 })).structuredContent;
  assert.equal(commits[0].body, "why: (because)");
});

Deno.test("show() returns a commit, a merge, a file and a folder", async () => {
  using yard = new Yard().repository({ "d/a": "1\n", bin: new Uint8Array([0, 1]) });
  yard.git(["checkout", "-q", "-b", "topic"]);
  yard.put("d/b", "2\n");
  yard.git(["add", "-A"]);
  yard.git(["commit", "-qm", "topic"]);
  yard.git(["checkout", "-q", "main"]);
  yard.git(["merge", "-q", "--no-ff", "topic", "-m", "merge"]);
  const merge = await yard.text("show");
  assert.match(merge, /^commit [0-9a-f]{40}\nMerge of .* and .*\nAuthor: Ada <ada@example.com>\n/);
  assert.match(merge, /\n\nmerge\n\ndiff --git a\/d\/b b\/d\/b\n/);
  assert.equal((await yard.run("show")).structuredContent.commit.parents.length, 2);
  assert.equal(await yard.text("show", { revision: "topic", path: "d/b" }), "2\n");
  assert.equal(await yard.text("show", { path: "./d" }), "tree HEAD:d\n\na\nb\n");
  await yard.fails("show", { path: "bin" }, /a binary file/);
  await yard.fails("show", { path: "no" }, /does not exist in 'HEAD'/);
});

Deno.test("blame() returns each line, and continues", async () => {
  using yard = new Yard().repository({ a: "1\n2\n3\n" });
  yard.put("a", "1\nzwei\n3\n");
  yard.git(["-c", "user.name=Bob", "commit", "-qam", "second"]);
  yard.put("a", "1\nzwei\n3\nnew\n");
  const text = await yard.text("blame", { path: "a" });
  assert.match(
    text,
    /^1 [0-9a-f]{10} Ada .*: 1\n2 [0-9a-f]{10} Bob .*: zwei\n3 .*\n4 not committed .*: new$/,
  );
  assert.match(
    await yard.text("blame", { path: "a", start: 2, limit: 1 }),
    /^2 .*\n\[more; .* start 3\]$/,
  );
  assert.match(
    await yard.text("blame", { path: "a", revision: "HEAD~1" }),
    /\n2 [0-9a-f]+ Ada .*: 2\n/,
  );
  await yard.fails("blame", { path: "a", start: 9 }, /file a has only 4 lines/);
  await yard.fails("blame", { path: "no" }, /no such path/);
});

Deno.test("branches() returns the current one, upstreams, and remote branches", async () => {
  using yard = new Yard().repository({ a: "1\n" });
  yard.git(["branch", "-q", "feature/x"]);
  yard.git(["branch", "-q", "--set-upstream-to=feature/x"]);
  yard.git(["commit", "-q", "--allow-empty", "-m", "second"]);
  yard.git(["update-ref", "refs/remotes/origin/main", "HEAD"]);
  const { branches } = (await yard.run("branches")).structuredContent;
  assert.equal(branches.length, 2);
  const main = branches.find(({ name }: { name: string }) => name === "main");
  const { hash: _hash, date: _date, ...rest } = main;
  assert.deepEqual(rest, {
    ...{ name: "main", current: true, remote: false, subject: "second" },
    ...{ upstream: "feature/x", gone: false, ahead: 1, behind: 0 },
  });
  const all = await yard.run("branches", { remote: true });
  assert.match(all.content[0]?.text ?? "", /^ {2}origin\/main [0-9a-f]{10} second$/m);
  assert.match(await yard.text("branches", { limit: 1 }), /\n\[more; give a greater limit\]$/);
});

Deno.test("A repository in a folder is found from below, and a linked work tree too", async () => {
  using yard = new Yard().repository({ "d/a": "1\n" }, "app");
  yard.put("app/d/a", "2\n");
  for (const repo of ["app", "app/d", `${yard.ws}/app`]) {
    const { structuredContent } = await yard.run("status", { repo });
    assert.equal(structuredContent.root, "app");
    assert.deepEqual(structuredContent.files, [{ path: "d/a", unstaged: "modified" }]);
  }
  yard.git(["worktree", "add", "-q", "../tree", "-b", "other"], "app");
  assert.equal(await yard.text("status", { repo: "tree" }), "On other\nNothing changed");
  yard.put("tree/d/a", "3\n");
  await yard.run("commit", { repo: "tree", message: "there", all: true });
  assert.equal(yard.git(["log", "-1", "--format=%s", "other"], "app"), "there\n");
  await yard.run("add", { repo: "app", paths: [`${yard.ws}/app/d/a`] });
});

Deno.test("a submodule is reported by its commit, staged, and is a separate repository", async () => {
  using yard = new Yard().repository({ f: "1\n" }, "seed");
  yard.repository({ a: "1\n" });
  yard.git(["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "./seed", "sub"]);
  yard.git(["add", "-A", "sub"]);
  yard.git(["commit", "-qm", "sub"]);
  yard.put("sub/f", "2\n");
  assert.match(await yard.text("status", { paths: ["sub"] }), /Nothing changed/);
  await yard.run("commit", { repo: "sub", message: "inside", all: true });
  assert.match(await yard.text("status", { paths: ["sub"] }), /\n M sub$/);
  assert.match(await yard.text("diff"), /-Subproject commit .*\n\+Subproject commit /);
  await yard.run("add", { paths: ["sub"] });
  await yard.run("commit", { message: "moved" });
  assert.match(await yard.text("show"), /\+Subproject commit /);
});

Deno.test("a broken repository, a lock and a failing git are reported", async () => {
  using yard = new Yard().repository({ a: "1\n" });
  yard.put("a", "2\n");
  yard.put(".git/index.lock", "");
  await yard.fails("add", { all: true }, /another git .*at work/);
  Deno.removeSync(`${yard.ws}/.git/index.lock`);
  yard.put(".git/config", "[core\n");
  await yard.fails("status", {}, /bad config line 1/);
  Deno.removeSync(`${yard.ws}/.git/config`);
  Deno.removeSync(`${yard.ws}/.git/HEAD`);
  await yard.fails("status", {}, /its \.git is broken/);
});

Deno.test("history follows the hashes, without replacements", async () => {
  using yard = new Yard().repository({ a: "1\n" });
  yard.git(["commit", "-q", "--allow-empty", "-m", "second"]);
  yard.git(["commit", "-q", "--allow-empty", "-m", "third"]);
  yard.git(["replace", "HEAD~1", "HEAD~2"]);
  assert.ok(!yard.git(["log", "--format=%s"]).includes("second"));
  assert.equal((await yard.run("log")).structuredContent.commits.length, 3);
  yard.git(["replace", "-d", yard.git(["rev-parse", "HEAD~1"]).trim()]);
  yard.put(".git/info/grafts", yard.git(["rev-parse", "HEAD"]));
  assert.equal(yard.git(["log", "--format=%s"]), "third\n");
  assert.equal((await yard.run("log")).structuredContent.commits.length, 3);
});

Deno.test("Programs of the person's own configuration are not started either", async () => {
  using yard = new Yard().repository({ a: "1\n" });
  const mark = `${yard.path}/mark`;
  yard.put("../home/.gitconfig", `[filter "own"]\n\tclean = ": > ${mark}; cat"\n`);
  yard.put(".gitattributes", "a filter=own\n");
  yard.put("a", "2\n");
  assert.match(await yard.text("status"), / M a/);
  await yard.run("diff");
  await yard.fails("add", { paths: ["a"] }, /"a" goes through the filter "own"/);
  assert.throws(() => Deno.statSync(mark));
  yard.git(["diff"]);
  assert.ok(Deno.statSync(mark).isFile);
});

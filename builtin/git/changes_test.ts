/**
 * Tests the tools that change something, on real repositories.
 *
 * @module
 */

import assert from "node:assert/strict";
import { Yard } from "./_host_test.ts";
import { assertGolden } from "../../tests/kit/golden.ts";

Deno.test("add() stages changes, deletions and swaps of files for folders, and lists the rest", async () => {
  using yard = new Yard().repository({ a: "1\n", b: "1\n", c: "1\n", ".gitignore": "ignored\n" });
  Deno.removeSync(`${yard.ws}/a`);
  Deno.removeSync(`${yard.ws}/b`);
  yard.put("b/inner", "1\n");
  yard.put("ignored", "1\n");
  yard.repository({ x: "1\n" }, "nested");
  await yard.fails("add", { paths: ["ignored"] }, /"ignored" .*: it is ignored/);
  await yard.fails("add", { paths: ["nested"] }, /a separate repository/);
  await yard.fails("add", { paths: ["c"] }, /nothing changed in it/);
  await yard.fails("add", {}, /give paths, or all/);
  await yard.fails("add", { paths: ["c"], all: true }, /give paths, or all/);
  const { structuredContent } = await yard.run("add", { all: true });
  assert.deepEqual(structuredContent.left_out, ["nested/"]);
  assert.equal(
    yard.git(["diff", "--cached", "--name-status", "--no-renames"]),
    "D\ta\nD\tb\nA\tb/inner\n",
  );
});

Deno.test("commit() commits staged changes, some paths, all, or amends", async () => {
  using yard = new Yard().repository({ a: "1\n", b: "1\n", c: "1\n" });
  for (const name of ["a", "b", "c"]) yard.put(name, "2\n");
  await yard.fails("commit", { message: "x" }, /nothing is staged;/);
  await yard.fails("commit", { message: " " }, /the message is empty/);
  await yard.run("add", { paths: ["a"] });
  await yard.run("commit", { message: "only b", paths: ["b"] });
  assert.equal(yard.git(["show", "--name-only", "--format="]), "b\n");
  const { structuredContent } = await yard.run("commit", { message: "a\n\n# no comment" });
  assert.equal(structuredContent.hash, yard.git(["rev-parse", "HEAD"]).trim());
  assert.equal(yard.git(["show", "--name-only", "--format=%B"]), "a\n\n# no comment\n\n\na\n");
  await yard.run("commit", { message: "rest", all: true });
  assert.equal(await yard.text("status"), "On main\nNothing changed");
  await yard.run("commit", { message: "better", amend: true });
  yard.put("c", "3\n");
  await yard.run("commit", { amend: true, all: true });
  assert.equal(yard.git(["log", "--format=%s"]), "better\na\nonly b\nfirst\n");
  await yard.run("commit", { message: "empty", allow_empty: true });
  assert.equal(yard.git(["log", "-1", "--format=%an <%ae>"]), "Ada <ada@example.com>\n");
  await yard.fails("commit", { message: "x", paths: ["no"] }, /nothing is staged/);
});

Deno.test("commit() takes the author from the configuration of the repository, the user, or included files", async () => {
  using yard = new Yard().repository({ a: "1\n" });
  const last = () => yard.git(["log", "-1", "--format=%an %ae %cn"]).trim();
  const commit = () => yard.run("commit", { message: "x", allow_empty: true });
  yard.put(
    "../home/.gitconfig",
    `[includeIf "gitdir:${yard.ws}/"]\n\tpath = work\n[user]\n\tname = Ada\n`,
  );
  yard.put("../home/work", "[user]\n\temail = ada@work\n");
  await commit();
  assert.equal(last(), "Ada ada@work Ada");
  yard.put("../home/work", "");
  await yard.fails("commit", { message: "x", allow_empty: true }, /git config --global user\.name/);
  yard.git(["config", "user.email", "own@repository"]);
  yard.git(["config", "author.name", "Author"]);
  await commit();
  assert.equal(last(), "Author own@repository Ada");
  await Deno.remove(`${yard.home}/.gitconfig`);
  await yard.fails("stash", { action: "push" }, /does not know the author|nothing changed/);
});

Deno.test("a merge with conflicts is reported, not committed, and concluded", async () => {
  using yard = new Yard().repository({ a: "1\n" });
  yard.git(["checkout", "-q", "-b", "topic"]);
  yard.put("a", "topic\n");
  yard.git(["commit", "-qam", "topic"]);
  yard.git(["checkout", "-q", "main"]);
  yard.put("a", "main\n");
  yard.git(["commit", "-qam", "main"]);
  yard.git(["merge", "topic"], ".", { fails: true });
  assertGolden("git/status during a merge", await yard.text("status"));
  const { files, patch } = (await yard.run("diff")).structuredContent;
  assert.deepEqual(files, [{ path: "a", status: "conflict", additions: 4, deletions: 0 }]);
  assert.match(patch, /\+<<<<<<< HEAD\n main\n\+=======\n\+topic\n/);
  await yard.fails("commit", { message: "x", all: true }, /conflicts in a;/);
  await yard.fails("commit", { message: "x" }, /conflicts in a;/);
  yard.put("a", "both\n");
  assert.match(await yard.text("add", { paths: ["a"] }), /^Staged 1 file\b/);
  await yard.run("commit", { message: "merged" });
  assert.equal(yard.git(["log", "-1", "--format=%s %p"]).split(" ").length, 3);
  assert.equal(await yard.text("status"), "On main\nNothing changed");
});

Deno.test("restore() brings back from the index or a revision, and unstages", async () => {
  using yard = new Yard().repository({ a: "1\n", "d/b": "1\n" });
  yard.put("a", "2\n");
  yard.git(["commit", "-qam", "second"]);
  yard.put("a", "3\n");
  Deno.removeSync(`${yard.ws}/d/b`);
  yard.git(["add", "a"]);
  const { structuredContent } = await yard.run("restore", { paths: ["a"], staged: true });
  assert.deepEqual(structuredContent, { restored: ["a"], restored_count: 1 });
  assert.equal(yard.get("a"), "3\n");
  await yard.run("restore", { paths: ["."] });
  assert.deepEqual([yard.get("a"), yard.get("d/b")], ["2\n", "1\n"]);
  await yard.run("restore", { paths: ["a"], source: "HEAD~1" });
  assert.equal(yard.get("a"), "1\n");
  await yard.fails("restore", { paths: ["no"] }, /not match any file/);
});

Deno.test("stash() puts aside, lists, shows, brings back and drops", async () => {
  using yard = new Yard().repository({ a: "1\n", b: "1\n" });
  await yard.fails("stash", { action: "push" }, /nothing changed/);
  assert.equal(await yard.text("stash", { action: "list" }), "The stash is empty");
  yard.put("a", "2\n");
  yard.put("b", "2\n");
  yard.put("new", "1\n");
  await yard.run("stash", { action: "push", paths: ["b"], message: "only b" });
  assert.deepEqual([yard.get("a"), yard.get("b")], ["2\n", "1\n"]);
  await yard.run("stash", { action: "push", untracked: true });
  assert.equal(await yard.text("status"), "On main\n2 in the stash\nNothing changed");
  const { stashes } = (await yard.run("stash", { action: "list" })).structuredContent;
  assert.deepEqual(stashes.map(({ stash }: { stash: number }) => stash), [0, 1]);
  assert.match(await yard.text("stash", { action: "list" }), /\n1 .* On main: only b$/);
  const shown = (await yard.run("stash", { action: "show" })).structuredContent;
  assert.deepEqual(shown.files.map(({ path }: { path: string }) => path), ["a", "new"]);
  await yard.run("stash", { action: "apply", stash: 1 });
  assert.equal(yard.get("b"), "2\n");
  await yard.run("stash", { action: "pop" });
  assert.deepEqual([yard.get("a"), yard.get("new")], ["2\n", "1\n"]);
  await yard.run("stash", { action: "drop" });
  await yard.fails("stash", { action: "drop" }, /not a valid reference|No stash entries/);
  await yard.fails("stash", { action: "show", stash: 7 }, /not a valid reference|stash/);
});

Deno.test("stash() merges as git does where the repository names its own merge program", async () => {
  using yard = new Yard().repository({
    a: "1\n2\n3\n4\n5\n6\n7\n",
    ".gitattributes": "a merge=own\n",
  });
  yard.git(["config", "merge.own.driver", "exit 1"]);
  yard.put("a", "1\n2\n3\n4\n5\n6\nstashed\n");
  await yard.run("stash", { action: "push" });
  yard.put("a", "committed\n2\n3\n4\n5\n6\n7\n");
  await yard.run("commit", { message: "x", all: true });
  await yard.run("stash", { action: "apply" });
  assert.equal(yard.get("a"), "committed\n2\n3\n4\n5\n6\nstashed\n");
  await yard.run("commit", { message: "y", all: true });
  yard.put("a", "committed\n2\n3\n4\n5\n6\nother\n");
  await yard.run("commit", { message: "z", all: true });
  await yard.fails("stash", { action: "pop" }, /CONFLICT \(content\): Merge conflict/);
  assert.match(yard.get("a"), /^<<<<<<<[^]*stashed[^]*>>>>>>>/m);
});

Deno.test("Files that go through a filter are not changed behind its back", async () => {
  using yard = new Yard().repository({ big: "1\n", plain: "1\n" });
  yard.put(".gitattributes", "big filter=lfs\nother filter=unknown\n");
  yard.put("other", "1\n");
  const said = /"big" .* filter "lfs", .*in a terminal/;
  yard.put("big", "2\n");
  yard.put("plain", "2\n");
  await yard.fails("add", { all: true }, said);
  await yard.fails("commit", { message: "x", all: true }, said);
  await yard.fails("commit", { message: "x", paths: ["."] }, said);
  await yard.fails("stash", { action: "push" }, said);
  await yard.fails("restore", { paths: ["."] }, said);
  await yard.run("add", { paths: ["plain", "other"] });
  yard.git(["stash", "push", "-q"]);
  yard.put(".gitattributes", "big filter=lfs\n");
  await yard.fails("stash", { action: "pop" }, said);
});

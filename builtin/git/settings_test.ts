/**
 * Compares settings of repositories with what git is given against them.
 *
 * @module
 */

import assert from "node:assert/strict";
import { Yard } from "./_host_test.ts";
import { overrides, requireUsable } from "./settings.ts";

function overridesOf(...keys: readonly string[]): Readonly<Record<string, string>> {
  const settings = keys.map((key) => ({ isOwn: true, key, value: "x" }));
  requireUsable("Cannot test", settings);
  return Object.fromEntries(overrides("Cannot test", settings));
}

Deno.test("settings that are known to be harmless keep their values", () => {
  const keys = "user.name branch.a.b.remote branch.main.vscode-merge-base remote.origin.url " +
    "gitflow.prefix.feature core.ignorecase diff.own.xfuncname merge.own.name submodule.s.url " +
    "extensions.worktreeconfig lfs.https://example.com/x.access hook.jobs core.fsmonitor";
  assert.deepEqual(overridesOf(...keys.split(" ")), {});
});

Deno.test("every other setting is overridden, also one that no git has yet (GX6)", () => {
  assert.deepEqual(
    overridesOf("hook.a.b.command", "hook.a.b.event", "hook.other.event"),
    { "hook.a.b.enabled": "false", "hook.other.enabled": "false" },
  );
  assert.deepEqual(overridesOf("core.sshcommand", "later.x.program", "diff.x.command"), {
    "core.sshcommand": "",
    "later.x.program": "",
    "diff.x.command": "",
  });
  assert.deepEqual(overridesOf("gc.recentobjectshook", "core.protectntfs", "submodule.s.update"), {
    "gc.recentobjectshook": "",
    "core.protectNTFS": "true",
    "submodule.s.update": "none",
  });
  assert.deepEqual(overridesOf("filter.x.clean"), {
    "filter.x.clean": "",
    "filter.x.smudge": "",
    "filter.x.process": "",
    "filter.x.required": "false",
  });
});

Deno.test("a setting that nothing can override is refused by its name (GX6)", async () => {
  const refused: Readonly<Record<string, string>> = {
    "include.path": "x",
    "includeIf.onbranch:x.path": "x",
    "include.later": "x",
    "extensions.later": "true",
    "extensions.x.noop": "true",
    "extensions.constructor": "true",
    "extensions.refStorage": "files:///tmp/refs",
  };
  for (const [key, value] of Object.entries(refused)) {
    using yard = new Yard().repository({ a: "1\n" });
    yard.git(["config", "--file", ".git/config", key, value]);
    const said = new RegExp(`its configuration has "${key}"`, "i");
    for (const tool of ["status", "log"] as const) await yard.fails(tool, {}, said);
  }
});

Deno.test("a repository with too many settings to override is refused", async () => {
  using yard = new Yard().repository({ a: "1\n" });
  const many = Array.from({ length: 1_001 }, (_, n) => `\tx${n} = 1\n`).join("");
  yard.put(".git/config", `${yard.get(".git/config")}[later]\n${many}`);
  await yard.fails("status", {}, / 1001 settings .* 1000 /);
});

Deno.test("git works with every setting of its own list in the repository", async () => {
  using yard = new Yard().repository({ a: "1\n" });
  const keys = yard.git(["help", "--config"]).split("\n").filter((line) => /^\w+\./.test(line))
    .map((key) => key.replace(/<[^>]*>|\*/g, "x"))
    .filter((key) => !/_|^(include|extensions)/i.test(key));
  assert.ok(keys.length > 100, `${keys.length}`);
  // No value is valid for all: what git reads of them is overridden, or fails here.
  const unsafe = keys.filter((key) => key.toLowerCase() in overridesOf(key.toLowerCase()));
  const lines = unsafe.map((key) => {
    const [, section, middle, name] = /^(\w+)\.(?:(.*)\.)?(.*)$/.exec(key) ?? [];
    return `[${section}${middle === undefined ? "" : ` "${middle}"`}]\n\t${name} = /x\n`;
  });
  yard.put(".git/config", yard.get(".git/config") + lines.join(""));
  yard.put("a", "2\n");
  await yard.run("status");
  await yard.run("diff");
  await yard.run("add", { all: true });
  await yard.run("commit", { message: "second" });
  await yard.run("commit", { message: "third", amend: true });
  await yard.run("log");
  await yard.run("show");
  await yard.run("blame", { path: "a" });
  yard.put("a", "3\n");
  await yard.run("stash", { action: "push" });
  await yard.run("stash", { action: "pop" });
  await yard.run("restore", { paths: ["a"] });
  assert.equal(yard.get("a"), "2\n");
});

/** Settings of a hostile repository, and the value that git reads instead. */
const FIXED_VALUES: Readonly<Record<string, readonly [hostile: string, read: string]>> = {
  "core.abbrev": ["4", "auto"],
  "core.attributesFile": ["/x", "/dev/null"],
  "core.excludesFile": ["/x", "/dev/null"],
  "core.fsmonitor": ["/x", "false"],
  "core.hooksPath": ["/x", "/dev/null"],
  "core.protectHFS": ["false", "true"],
  "core.protectNTFS": ["false", "true"],
  "core.quotePath": ["false", "true"],
  "diff.orderFile": ["/x", "/dev/null"],
  "gc.auto": ["1", "0"],
  "i18n.commitEncoding": ["UTF-16", "UTF-8"],
  "i18n.logOutputEncoding": ["UTF-16", "UTF-8"],
  "log.showSignature": ["true", "false"],
  "mailmap.file": ["/x", "/dev/null"],
  "maintenance.auto": ["true", "false"],
  "merge.x.driver": ["/x", "git merge-file -q %A %O %B"],
  "merge.x.recursive": ["binary", "text"],
  "rerere.enabled": ["true", "false"],
  "safe.bareRepository": ["all", "explicit"],
  "submodule.recurse": ["true", "false"],
  "submodule.s.update": ["merge", "none"],
};

Deno.test("git reads the fixed settings, whatever the repository and the user set (GX6)", async () => {
  for (const file of [".git/config", "../home/.gitconfig"]) {
    using yard = new Yard().repository({ a: "1\n" });
    for (const [key, [hostile]] of Object.entries(FIXED_VALUES)) {
      yard.git(["config", "--file", file, key, hostile]);
    }
    await yard.run("status");
    for (const [key, [hostile, read]] of Object.entries(FIXED_VALUES)) {
      const value = yard.settingInLastRun(key);
      if (file === ".git/config") assert.equal(value, read, key);
      // The files that the user ignores stay ignored.
      else assert.equal(value === hostile, key === "core.excludesFile", `${key} = ${value}`);
    }
  }
});

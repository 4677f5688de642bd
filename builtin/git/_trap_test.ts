/**
 * Makes repositories that use git's ways to start a program. Each program leaves a marker.
 *
 * @module
 */

import { type Name, Yard } from "./_host_test.ts";

export type Call = readonly [tool: Name, args: object];
/** One way to start a program. */
export interface Trap {
  /** Its settings. `RUN x` is a program that leaves the marker `x`, `OUT` a place outside. */
  readonly config: Readonly<Record<string, string>>;
  /** What is planted in addition to settings. */
  readonly also?: (yard: Yard, fill: (text: string) => string) => void;
  /** The arguments for plain git, and the marker that it leaves. */
  readonly plain: readonly string[];
  readonly marker: string;
  /** The calls of tools. */
  readonly calls: readonly Call[];
}

const CONFLICT: Call = ["stash", { action: "pop" }];
const HOOKS = "pre-commit commit-msg prepare-commit-msg post-commit post-checkout post-rewrite " +
  "post-index-change pre-auto-gc reference-transaction";
const COMMIT_ALL: Call = ["commit", { message: "x", paths: ["more.txt"] }];

/** Every trap by its name. */
export const TRAPS: Readonly<Record<string, Trap>> = {
  fsmonitor: {
    config: { "core.fsmonitor": "RUN fsmonitor" },
    plain: ["status"],
    marker: "fsmonitor",
    calls: [["status", {}], ["diff", {}], ["add", { all: true }]],
  },
  clean: {
    config: { "filter.evil.clean": "RUN clean", "filter.evil.required": "true" },
    plain: ["status"],
    marker: "clean",
    calls: [["status", {}], ["diff", {}], ["add", { paths: ["more.txt"] }], COMMIT_ALL],
  },
  process: {
    config: { "filter.long.process": "RUN process" },
    plain: ["status"],
    marker: "process",
    calls: [["status", {}], ["diff", {}]],
  },
  "a filter with = in its name": {
    config: { "filter.a=b.clean": "RUN equals" },
    plain: ["status"],
    marker: "equals",
    calls: [["status", {}], ["diff", {}]],
  },
  smudge: {
    config: { "filter.evil.smudge": "RUN smudge" },
    plain: ["restore", "clean.txt"],
    marker: "smudge",
    calls: [["restore", { paths: ["clean.txt"] }], ["restore", { paths: ["more.txt"] }]],
  },
  "external diff": {
    config: { "diff.external": "RUN external" },
    plain: ["diff"],
    marker: "external",
    calls: [["diff", {}], ["show", {}], ["stash", { action: "show" }], ["log", {}]],
  },
  "diff command": {
    config: { "diff.evil.command": "RUN command" },
    plain: ["diff"],
    marker: "command",
    calls: [["diff", {}], ["show", {}], ["stash", { action: "push" }]],
  },
  textconv: {
    config: { "diff.conv.textconv": "RUN textconv" },
    plain: ["diff"],
    marker: "textconv",
    calls: [["diff", {}], ["blame", { path: "b.conv" }], ["show", { revision: "HEAD~1" }]],
  },
  "textconv of a blob": {
    config: { "diff.conv.textconv": "RUN textconv" },
    plain: ["show", "--textconv", "HEAD:b.conv"],
    marker: "textconv",
    calls: [["show", { path: "b.conv" }]],
  },
  "textconv of blame": {
    config: { "diff.conv.textconv": "RUN textconv" },
    plain: ["blame", "b.conv"],
    marker: "textconv",
    calls: [["blame", { path: "b.conv" }]],
  },
  "merge driver": {
    config: { "merge.evil.driver": "RUN driver", "merge.default": "evil" },
    plain: ["stash", "pop"],
    marker: "driver",
    calls: [CONFLICT],
  },
  "check of signatures": {
    config: { "log.showSignature": "true", "gpg.program": "RUN gpg" },
    plain: ["log"],
    marker: "gpg",
    calls: [["log", {}], ["show", { revision: "HEAD~1" }]],
  },
  signing: {
    config: { "commit.gpgSign": "true", "gpg.program": "RUN gpg" },
    plain: ["commit", "-am", "x"],
    marker: "gpg",
    calls: [COMMIT_ALL, ["stash", { action: "push" }]],
  },
  "signing with SSH": {
    config: { "commit.gpgSign": "true", "gpg.format": "ssh", "gpg.ssh.program": "RUN gpg" },
    also: (yard) => yard.git(["config", "user.signingKey", "/nowhere"]),
    plain: ["commit", "-am", "x"],
    marker: "gpg",
    calls: [COMMIT_ALL],
  },
  editor: {
    config: { "core.editor": "RUN editor" },
    plain: ["commit", "--amend"],
    marker: "editor",
    calls: [["commit", { amend: true }], COMMIT_ALL],
  },
  hooks: {
    config: { "gc.auto": "1" },
    also: (yard) => plantHooks(yard, ".git/hooks"),
    plain: ["commit", "-am", "x"],
    marker: "hook",
    calls: [
      ["add", { paths: ["more.txt"] }],
      ["restore", { paths: ["more.txt"], staged: true }],
      COMMIT_ALL,
      ["commit", { message: "x", amend: true }],
      ["stash", { action: "push" }],
      ["stash", { action: "pop" }],
    ],
  },
  hooksPath: {
    config: { "core.hooksPath": "planted" },
    also: (yard) => plantHooks(yard, "planted"),
    plain: ["commit", "-am", "x"],
    marker: "hook",
    calls: [COMMIT_ALL, ["stash", { action: "push" }]],
  },
  "a submodule's own configuration": {
    config: { "submodule.sub.ignore": "none", "submodule.recurse": "true" },
    also: (yard, fill) => {
      yard.git(["config", "filter.deep.clean", fill("RUN submodule")], "sub");
      yard.put(".git/modules/sub/info/attributes", "* filter=deep\n");
      yard.put("sub/f", "9\n");
    },
    plain: ["status"],
    marker: "submodule",
    calls: [
      ["status", {}],
      ["diff", {}],
      ["diff", { from: "HEAD" }],
      ["stash", { action: "push" }],
      ["stash", { action: "pop" }],
      ["add", { all: true }],
      ["restore", { paths: ["."], staged: true }],
      ["restore", { paths: ["a.md"] }],
      ["commit", { message: "x", paths: ["more.txt"] }],
      ["commit", { message: "x", all: true }],
      ["commit", { message: "x" }],
      ["commit", { message: "x", allow_empty: true }],
      ["commit", { message: "x", amend: true }],
      ["restore", { paths: ["."], source: "HEAD~1" }],
      CONFLICT,
    ],
  },
  "the patch of a submodule": {
    config: { "diff.submodule": "diff" },
    also: (yard, fill) => {
      yard.git(["-c", "user.name=A", "commit", "-q", "--allow-empty", "-m", "x"], "sub");
      yard.put("sub/f", "9\n");
      yard.git(["commit", "-qam", "y"], "sub");
      yard.git(["config", "diff.external", fill("RUN submodule")], "sub");
    },
    plain: ["diff"],
    marker: "submodule",
    calls: [["diff", {}], ["add", { all: true }], ["diff", { staged: true }]],
  },
  ext: {
    config: { "remote.origin.url": "ext::RUN remote", "protocol.ext.allow": "always" },
    also: promise,
    plain: ["show", "HEAD:plain.txt"],
    marker: "remote",
    calls: [["show", { path: "plain.txt" }]],
  },
  uploadpack: {
    config: { "remote.origin.url": "OUT", "remote.origin.uploadpack": "RUN remote" },
    also: promise,
    plain: ["show", "HEAD:plain.txt"],
    marker: "remote",
    calls: [["show", { path: "plain.txt" }]],
  },
  ssh: {
    config: { "remote.origin.url": "ssh://localhost/x", "core.sshCommand": "RUN remote" },
    also: promise,
    plain: ["show", "HEAD:plain.txt"],
    marker: "remote",
    calls: [["show", { path: "plain.txt" }]],
  },
  "a bare repository in a folder": {
    config: {},
    also: (yard, fill) => {
      yard.git(["init", "-q", "--bare", "bare"]);
      yard.git(["config", "-f", "bare/config", "core.fsmonitor", fill("RUN bare")]);
      yard.git(["config", "-f", "bare/config", "core.bare", "false"]);
      yard.git(["config", "-f", "bare/config", "core.worktree", ".."]);
    },
    plain: ["-C", "bare", "status"],
    marker: "bare",
    calls: [["status", { repo: "bare" }], ["add", { all: true }]],
  },
};

/** Builds a repository with a stash, a submodule and changes, to plant traps in. */
export function ground(): Yard {
  const yard = new Yard();
  yard.repository({ f: "1\n" }, "seed");
  yard.git(["init", "-q", "-b", "main"]);
  const files = "clean.txt long.txt equals.txt a.md b.conv more.txt plain.txt".split(" ");
  for (const name of files) yard.put(name, "one\ntwo\nthree\n");
  yard.put(
    ".gitattributes",
    "clean.txt filter=evil\nlong.txt filter=long\nequals.txt filter=a=b\n" +
      "*.md diff=evil\n*.conv diff=conv\n",
  );
  yard.git(["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "./seed", "sub"]);
  Deno.removeSync(`${yard.ws}/seed`, { recursive: true });
  yard.git(["add", "-A"]);
  yard.git(["commit", "-q", "-m", "first"]);
  sign(yard);
  yard.put("plain.txt", "one\nTWO\nthree\n");
  yard.git(["stash", "push", "-q"]);
  yard.put("plain.txt", "one\n2\nthree\n");
  yard.git(["commit", "-qam", "second"]);
  for (const name of files.slice(0, -1)) yard.put(name, "one\nTwo\nthree\n");
  return yard;
}

/** The markers that programs left. */
export function markers(yard: Yard): string[] {
  return [...Deno.readDirSync(`${yard.path}/marks`)].map(({ name }) => name).sort();
}

/** The content of the folder outside the workspace, without the markers. */
export function outside(yard: Yard): string {
  const names = [...Deno.readDirSync(`${yard.path}/outside`)].map(({ name }) => name).sort();
  return names.map((name) => {
    const path = `${yard.path}/outside/${name}`;
    return `${name}: ${Deno.statSync(path).isFile ? Deno.readTextFileSync(path) : "folder"}`;
  }).join("\n");
}

/** Adds a commit that claims a signature. Checking it would start a program. */
function sign(yard: Yard): void {
  const text = yard.git(["cat-file", "commit", "HEAD"]);
  const parent = yard.git(["rev-parse", "HEAD"]).trim();
  const signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----";
  const signed = text.replace("\nauthor", `\nparent ${parent}\nauthor`)
    .replace("\n\n", `\n${signature}\n\n`);
  yard.put("commit", signed);
  const hash = yard.git(["hash-object", "-t", "commit", "-w", "commit"]).trim();
  Deno.removeSync(`${yard.ws}/commit`);
  yard.git(["reset", "-q", "--soft", hash]);
}

/** Plants traps. */
export function plant(yard: Yard, traps: readonly Trap[]): void {
  Deno.mkdirSync(`${yard.path}/marks`);
  yard.put("../outside/secret", "TOP SECRET\n");
  const fill = (text: string) =>
    text.replaceAll("OUT", `${yard.path}/outside`)
      .replace(/RUN (\w+)/g, (_, marker) => program(yard, marker));
  for (const { config, also } of traps) {
    also?.(yard, fill);
    for (const [key, value] of Object.entries(config)) yard.git(["config", key, fill(value)]);
  }
}

/** Some settings name a program without arguments, so each marker has its own program. */
function program(yard: Yard, marker: string): string {
  const path = `${yard.path}/run-${marker}`;
  const mark = `: > "${yard.path}/marks/${marker}"`;
  Deno.writeTextFileSync(path, `#!/bin/sh\n${mark}\ncat "$1" 2>/dev/null\n`);
  Deno.chmodSync(path, 0o755);
  return path;
}

function plantHooks(yard: Yard, folder: string): void {
  for (const name of HOOKS.split(" ")) {
    yard.put(`${folder}/${name}`, `#!/bin/sh\n: > "${yard.path}/marks/hook"\n`);
    Deno.chmodSync(`${yard.ws}/${folder}/${name}`, 0o755);
  }
}

/** Removes an object that a remote is said to have. */
function promise(yard: Yard): void {
  const hash = yard.git(["rev-parse", "HEAD:plain.txt"]).trim();
  Deno.removeSync(`${yard.ws}/.git/objects/${hash.slice(0, 2)}/${hash.slice(2)}`);
  yard.git(["config", "remote.origin.promisor", "true"]);
  yard.git(["config", "core.repositoryFormatVersion", "1"]);
  yard.git(["config", "extensions.partialClone", "origin"]);
}

/**
 * Hooks in the configuration of a repository, as git runs them since 2.54, through a spawned PML.
 *
 * @module
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { RawStdio } from "../kit/raw_stdio.ts";
import type { Workspace } from "../kit/workspace.ts";
import { codeOf, endWell, textOf } from "./oracles.ts";
import { honest } from "./repositories.ts";
import { makeAttackWorkspace } from "./stage.ts";

const ALLOWED = { version: 1, permissions: { allow: ["filesystem:*", "git:*"] } } as const;
const CALLS = [
  ["status", {}],
  ["diff", {}],
  ["log", {}],
  ["add", { paths: ["a"] }],
  ["commit", { message: "x" }],
  ["commit", { message: "y", amend: true }],
  ["stash", { action: "list" }],
] as const;

const realGit = execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();
const [, major, minor] = /(\d+)\.(\d+)/.exec(
  execFileSync(realGit, ["--version"], { encoding: "utf8" }),
)?.map(Number) ?? [];

/**
 * A wrapper of the real git. It records its environment, and does what git 2.54 does with hooks in
 * the configuration: it runs the commands of those that are not disabled.
 */
function newerGit(ws: Workspace): string {
  return `#!/bin/sh
real() { ${realGit} "$@"; }
case " $* " in *" config "*) exec ${realGit} "$@" ;; esac
env | grep '^GIT_CONFIG_' | sort > '${ws.path}/recorded-'$$
for key in $(real "$1" "$2" "$3" config --name-only --get-regexp '^hook\\..*\\.event$'); do
  name=\${key%.event}
  [ "$(real "$1" "$2" "$3" config "$name.enabled")" = false ] && continue
  sh -c "$(real "$1" "$2" "$3" config "$name.command")"
done
exec ${realGit} "$@"
`;
}

function plantHooks(ws: Workspace): void {
  const git = (...args: string[]) => execFileSync(realGit, args, { cwd: ws.file("r") });
  for (const name of ["x", "a.b", "A=b"]) {
    git("config", `hook.${name}.command`, `: > '${ws.path}/hook-ran'`);
    for (const event of ["pre-commit", "post-index-change"]) {
      git("config", "--add", `hook.${name}.event`, event);
    }
  }
  git("config", "later.program", "run me");
}

async function callAll(ws: Workspace, env: Readonly<Record<string, string>>): Promise<void> {
  await using pml = new RawStdio(ws, { env });
  await pml.open();
  for (const [tool, args] of CALLS) {
    const answer = await pml.callTool(`git__${tool}`, { repo: "r", ...args });
    assert.equal(codeOf(answer), undefined, textOf(answer));
    assert.ok((answer.result?.isError as unknown) !== true, `${tool}: ${textOf(answer)}`);
  }
  await endWell(ws, pml);
}

Deno.test("hooks in the configuration of a repository are disabled for each run of git (GX6)", async () => {
  await using ws = await makeAttackWorkspace({ pml: ALLOWED, prepare: honest });
  plantHooks(ws);
  const bin = join(ws.root, "bin");
  await mkdir(bin);
  await writeFile(join(bin, "git"), newerGit(ws), { mode: 0o755 });
  await callAll(ws, { PATH: `${bin}:${ws.env.PATH}` });
  const names = await readdir(ws.path);
  const recorded = names.filter((name) => name.startsWith("recorded-"));
  assert.ok(recorded.length >= CALLS.length, names.join());
  for (const name of recorded) {
    const text = await readFile(ws.file(name), "utf8");
    const given = new Map(
      [...text.matchAll(/^GIT_CONFIG_KEY_(\d+)=(.*)$/gm)].map(([, number, key]) => [
        key,
        new RegExp(`^GIT_CONFIG_VALUE_${number}=(.*)$`, "m").exec(text)?.[1],
      ]),
    );
    const expected = { "hook.x.enabled": "false", "hook.a.b.enabled": "false" };
    for (const [key, value] of Object.entries({ ...expected, "hook.A=b.enabled": "false" })) {
      assert.equal(given.get(key), value, `${key} in ${text}`);
    }
    assert.equal(given.get("later.program"), "");
    assert.equal(given.get("core.hooksPath"), "/dev/null");
  }
  assert.ok(!names.includes("hook-ran"));
});

Deno.test({
  name: "no hook in the configuration of a repository runs with a git that supports them (GX6)",
  ignore: !(Number(major) > 2 || (major === 2 && Number(minor) >= 54)),
  fn: async () => {
    await using ws = await makeAttackWorkspace({ pml: ALLOWED, prepare: honest });
    plantHooks(ws);
    await callAll(ws, {});
    assert.ok(!(await readdir(ws.path)).includes("hook-ran"));
    execFileSync(realGit, ["commit", "-q", "--allow-empty", "-m", "z"], { cwd: ws.file("r") });
    assert.ok((await readdir(ws.path)).includes("hook-ran"), "the hooks do not bite");
  },
});

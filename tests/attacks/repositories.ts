/**
 * Repositories in a workspace and next to it: an honest one, and every way that leads outside.
 *
 * @module
 */

import { execFileSync } from "node:child_process";
import { mkdir, readdir, rename, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Workspace } from "../kit/workspace.ts";

/** Content of the repository outside, which no tool may return. */
export const SECRET = "secret-9a61c0e27f5b4d38";

/** Configures the user's name, which commits need. */
export async function person(ws: Workspace): Promise<void> {
  const config = "[user]\n\tname = Ada\n\temail = ada@example.com\n";
  await writeFile(join(dirname(ws.home), ".gitconfig"), config);
}

/** Creates an honest repository `r` with one change. */
export async function honest(ws: Workspace): Promise<void> {
  await person(ws);
  await repository(ws, ws.file("r"), { a: "one\n", "d/b": "kept\n" });
  await writeFile(ws.file("r/a"), "two\n");
}

async function repository(
  ws: Workspace,
  folder: string,
  files: Readonly<Record<string, string>>,
): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  for (
    const args of [["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "first"]]
  ) {
    run(ws, folder, args);
  }
}

/** Creates a repository outside, and every way that leads to it in the workspace. */
export async function plantOutside(ws: Workspace): Promise<void> {
  const other = join(ws.root, "other");
  await repository(ws, other, { secret: SECRET, a: SECRET });
  await writeFile(join(other, "a"), `${SECRET}\nchanged\n`);
  await symlink(other, ws.file("link"));
  const plants: Readonly<Record<string, (git: string) => Promise<unknown>>> = {
    pointer: (git) => writeFile(git, `gitdir: ${other}/.git\n`),
    "pointer-up": (git) => writeFile(git, "gitdir: ../../other/.git\n"),
    "linked-git": (git) => symlink(`${other}/.git`, git),
  };
  for (const [name, make] of Object.entries(plants)) {
    await mkdir(ws.file(name));
    await make(ws.file(`${name}/.git`));
  }
  const within = async (name: string, spoil: (git: string) => Promise<unknown>) => {
    await repository(ws, ws.file(name), { a: "mine\n" });
    await spoil(ws.file(`${name}/.git`));
  };
  await within("common", (git) => writeFile(`${git}/commondir`, "../../../other/.git\n"));
  await within(
    "borrows",
    (git) => writeFile(`${git}/objects/info/alternates`, `${other}/.git/objects\n`),
  );
  await within("config-link", async (git) => {
    await rename(`${git}/config`, `${git}/was`);
    await symlink(`${other}/.git/config`, `${git}/config`);
  });
  await within("pipe", (git) => Promise.resolve(execFileSync("mkfifo", [`${git}/MERGE_MSG`])));
  await within(
    "worktree",
    (git) => Promise.resolve(run(ws, git, ["config", "core.worktree", other])),
  );
  await within(
    "includes",
    (git) => Promise.resolve(run(ws, git, ["config", "include.path", `${other}/.git/config`])),
  );
  run(ws, ws.path, ["init", "-q", "--bare", "bare"]);
}

/** Returns the files outside, with their modification times. */
export async function outerState(ws: Workspace): Promise<readonly string[]> {
  const other = join(ws.root, "other");
  const names = (await readdir(other, { recursive: true })).sort();
  return [
    ...(await readdir(ws.root)).sort(),
    ...await Promise.all(names.map(async (name) => {
      const { isFile, mtime } = await Deno.lstat(join(other, name));
      return `${name} ${isFile ? mtime?.getTime() : ""}`;
    })),
  ];
}

/** Returns git's own output about the honest repository. */
export function plain(ws: Workspace, args: readonly string[]): string {
  return run(ws, ws.file("r"), args).trim();
}

function run(ws: Workspace, cwd: string, args: readonly string[]): string {
  const env = { PATH: ws.env.PATH ?? "", HOME: dirname(ws.home), GIT_CONFIG_NOSYSTEM: "1" };
  return execFileSync("git", [...args], { cwd, env, encoding: "utf8" });
}

/**
 * Stages files, except those that a filter would change.
 *
 * @module
 */

import { pathspec } from "./asking.ts";
import { fail, quoted } from "./failure.ts";
import { entriesOf, type Entry, onOneLine, unquote } from "./parsing.ts";
import type { Repository } from "./repository.ts";

const LISTED = 100;

/** Returns the changed paths. A submodule counts as changed only if its commit changed. */
export async function changedEntries(
  repository: Repository,
  { paths, options = [] }: {
    readonly paths: readonly string[] | undefined;
    readonly options?: readonly string[];
  },
): Promise<Entry[]> {
  const kind = ["status", "--porcelain=v2", "--no-renames", "--ignore-submodules=dirty"];
  const args = [...kind, ...options, ...pathspec(repository, paths)];
  return entriesOf(await repository.git(args, { whole: true }));
}

/** Throws if a filter would change the content of a path, because no filter is run. */
export async function requireUnfiltered(
  { what, filters, git }: Repository,
  raws: readonly string[],
): Promise<void> {
  if (raws.length === 0) return;
  const attributes = await git(["check-attr", "--stdin", "filter"], {
    stdin: lines(raws),
    whole: true,
  });
  for (const line of attributes.split("\n")) {
    const [, raw = "", name = ""] = /^(.*): filter: (.*)$/.exec(line) ?? [];
    // LFS can be configured outside of the repository, and it keeps large files out of the history.
    if (!filters.has(name) && name !== "lfs") continue;
    const file = quoted(unquote(raw));
    const why = `${file} goes through the filter ${quoted(name)}, and none is run here`;
    throw fail(what, `${why}; do this one in a terminal`);
  }
}

/** Stages changed paths. `git add` would read submodules with their configuration. */
export async function stage(repository: Repository, entries: readonly Entry[]): Promise<void> {
  const raws = entries.map(({ raw }) => raw);
  if (raws.length === 0) return;
  await requireUnfiltered(repository, raws);
  const args = ["update-index", "--add", "--remove", "--replace", "--stdin"];
  await repository.git(args, { stdin: lines(raws) });
}

/** Throws if the paths have nothing to stage, and says why. */
export function requireFound(
  { what }: Repository,
  { paths, stageable, omitted }: {
    readonly paths: readonly string[];
    readonly stageable: readonly Entry[];
    readonly omitted: readonly Entry[];
  },
): void {
  if (stageable.length > 0) return;
  const names = quoted(paths.join(", "));
  const why = omitted.some(({ code }) => code === "!!")
    ? "it is ignored"
    : omitted.length > 0
    ? "it is a separate repository"
    : "it is not there, or nothing changed in it";
  throw fail(what, `${names} has nothing to stage: ${why}`);
}

/** Returns the paths of a `--name-only` list, in git's quoting. */
export function namesIn(list: string): string[] {
  return list.split("\n").filter((line) => line !== "");
}

/** Returns paths in the form in which git reads them from its input. */
export function lines(raws: readonly string[]): string {
  return raws.map((raw) => `${raw}\n`).join("");
}

/** Returns some file names, and the number of omitted names. */
export function limitNames(rows: readonly string[]): string[] {
  const omitted = rows.length - LISTED;
  return [...rows.slice(0, LISTED).map(onOneLine), ...(omitted > 0 ? [`[${omitted} more]`] : [])];
}

/** Returns the variables that name the author. Throws with a hint if no author is configured. */
export async function authorVariables(repository: Repository): Promise<Record<string, string>> {
  const { what, setting } = repository;
  const included = await repository.includedAuthor();
  const find = (name: string) => setting(name) ?? included.get(name);
  const pick = (role: string, part: string) => find(`${role}.${part}`) ?? find(`user.${part}`);
  const env = Object.fromEntries(
    ["author", "committer"].flatMap((role) =>
      ["name", "email"].map((part) => [`GIT_${role}_${part}`.toUpperCase(), pick(role, part) ?? ""])
    ),
  );
  if (Object.values(env).every((text) => text.trim() !== "")) return env;
  const set = 'git config --global user.name "NAME" and git config --global user.email ADDRESS';
  throw fail(what, `git does not know the author; ask the user to run ${set} in a terminal`);
}

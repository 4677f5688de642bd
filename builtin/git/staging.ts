/**
 * Stages files, except those that a filter would change.
 *
 * @module
 */

import { pathspec } from "./asking.ts";
import { fail, quoted } from "./failure.ts";
import { entriesOf, type Entry, shown, unquoted } from "./parsing.ts";
import type { Repository } from "./repository.ts";

const LISTED = 100;

/** Returns what changed, one entry for each path. Of submodules only the commit counts. */
export async function changed(
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
  const told = await git(["check-attr", "--stdin", "filter"], { stdin: lines(raws), whole: true });
  for (const line of told.split("\n")) {
    const [, raw = "", name = ""] = /^(.*): filter: (.*)$/.exec(line) ?? [];
    // LFS keeps large files out of the history, wherever it is configured.
    if (!filters.has(name) && name !== "lfs") continue;
    const file = quoted(unquoted(raw));
    const why = `${file} goes through the filter ${quoted(name)}, and none is run here`;
    throw fail(what, `${why}; do this one in a terminal`);
  }
}

/** Stages what changed. `git add` would look into submodules, with their configuration. */
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
  { paths, fresh, left }: {
    readonly paths: readonly string[];
    readonly fresh: readonly Entry[];
    readonly left: readonly Entry[];
  },
): void {
  if (fresh.length > 0) return;
  const names = quoted(paths.join(", "));
  const why = left.some(({ code }) => code === "!!")
    ? "it is ignored"
    : left.length > 0
    ? "it is a separate repository"
    : "it is not there, or nothing changed in it";
  throw fail(what, `${names} has nothing to stage: ${why}`);
}

/** Returns the paths of a `--name-only` list, as git wrote them. */
export function named(list: string): string[] {
  return list.split("\n").filter((line) => line !== "");
}

/** Returns paths as git reads them from its input. */
export function lines(raws: readonly string[]): string {
  return raws.map((raw) => `${raw}\n`).join("");
}

/** Returns some file names, and how many more there are. */
export function listed(rows: readonly string[]): string[] {
  const left = rows.length - LISTED;
  return [...rows.slice(0, LISTED).map(shown), ...(left > 0 ? [`[${left} more]`] : [])];
}

/** Returns the variables that name the author. Throws with a hint if nobody is named. */
export async function author(repository: Repository): Promise<Record<string, string>> {
  const { what, setting } = repository;
  const included = await repository.included();
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

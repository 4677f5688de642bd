/**
 * Puts changes aside and brings them back.
 *
 * @module
 */

import { optionText } from "./asking.ts";
import type { Args } from "./call.ts";
import { fail } from "./failure.ts";
import { onOneLine, records } from "./parsing.ts";
import type { Repository } from "./repository.ts";
import { requireWritable } from "./secret.ts";
import { omittedNote, PLAIN, toResult } from "./showing.ts";
import {
  authorVariables,
  changedEntries,
  limitNames,
  lines,
  namesIn,
  requireUnfiltered,
} from "./staging.ts";

/** The maximum length of all paths. Git passes them to other commands, whose length is limited. */
const MAX_PATHS = 500_000;
const MAX_LISTED = 100;

/** Puts changes aside. */
export async function putAside(
  repository: Repository,
  { message, paths, untracked = false }: Args,
) {
  const { what, git } = repository;
  const env = await authorVariables(repository);
  const options = [`--untracked-files=${untracked ? "all" : "no"}`];
  const entries = await changedEntries(repository, { paths, options });
  // Each path is given, because without paths git reads submodules with their configuration.
  const raws = entries.filter(({ path }) => !path.endsWith("/")).map(({ raw }) => raw);
  if (raws.length === 0) throw fail(what, "nothing changed that could be put aside");
  const input = lines(raws);
  if (input.length > MAX_PATHS) throw fail(what, "too many files changed; give paths");
  requireWritable(repository, raws);
  await requireUnfiltered(repository, raws);
  await git([
    ...["stash", "push", "--quiet", "--pathspec-from-file=-"],
    ...(untracked ? ["--include-untracked"] : []),
    ...(message === undefined ? [] : [`--message=${optionText(repository, message)}`]),
  ], { env, stdin: input });
  const rows = entries.map(({ path }) => path);
  return toResult([`Put aside ${rows.length} files as stash 0`, ...limitNames(rows)].join("\n"), {
    done: true,
    files: rows.slice(0, 1_000),
  });
}

/** Lists the stashes, the latest first. */
export async function listAside({ git }: Repository) {
  const text = await git(["stash", "list", "-z", "--format=tformat:%H%x00%cI%x00%gs%x00"]);
  const stashes = records(text, 4).map(([hash, date, said], stash) => ({
    stash,
    hash,
    date,
    said,
  }));
  const rows = stashes.slice(0, MAX_LISTED)
    .map(({ stash, date, said = "" }) => `${stash} ${date?.slice(0, 10)} ${onOneLine(said)}`);
  const noRows = rows.length === 0 ? ["The stash is empty"] : [];
  const cut = omittedNote(stashes.length, MAX_LISTED, "drop some");
  return toResult([...noRows, ...rows, ...cut].join("\n"), {
    stashes: stashes.slice(0, MAX_LISTED),
  });
}

/** Applies, pops or drops a stash. */
export async function bringBack(repository: Repository, name: string, args: Args) {
  const { action = "", restore_index } = args;
  if (action !== "drop") {
    const listArgs = ["stash", "show", "--include-untracked", "--name-only", ...PLAIN];
    const list = await repository.git([...listArgs, name], { whole: true });
    requireWritable(repository, namesIn(list));
    await requireUnfiltered(repository, namesIn(list));
  }
  const index = restore_index && action !== "drop" ? ["--index"] : [];
  await repository.git(["stash", action, "--quiet", ...index, name]);
  const done: Readonly<Record<string, string>> = { apply: "Applied", pop: "Applied and dropped" };
  return toResult(`${done[action] ?? "Dropped"} ${name}`, { done: true });
}

/**
 * The built-in module `git`. It reads and changes repositories of the workspace, and trusts none of
 * them.
 *
 * @module
 */

import type { Host } from "../../src/sandbox/host.ts";
import { optionText, pathIn, pathspec, revision } from "./asking.ts";
import type { Args } from "./call.ts";
import { COMMIT, COMMIT_FIELDS, commitOf, showFile } from "./commits.ts";
import { fail, quoted } from "./failure.ts";
import { branchStateOf, changesOf, entriesOf, onOneLine, records, unquote } from "./parsing.ts";
import { openRepository } from "./repository.ts";
import { requireReadable, requireWritable } from "./secret.ts";
import { omittedNote, PATCH, patchResult, PLAIN, toResult } from "./showing.ts";
import {
  authorVariables,
  changedEntries,
  limitNames,
  namesIn,
  requireFound,
  requireUnfiltered,
  stage,
} from "./staging.ts";
import { bringBack, listAside, putAside } from "./stashing.ts";

/** Shows the branch and its changes. */
export async function status({ repo, paths, limit = 500, untracked = true }: Args, host: Host) {
  const repository = await openRepository("Cannot read the status", repo, host);
  const kind = ["status", "--porcelain=v2", "--branch", "--show-stash", "--find-renames"];
  const options = [
    "--ignore-submodules=dirty",
    `--untracked-files=${untracked ? "normal" : "no"}`,
  ];
  const text = await repository.git([...kind, ...options, ...pathspec(repository, paths)]);
  const [branchState, entries] = [branchStateOf(text), entriesOf(text)];
  const { operation, root } = repository;
  const { branch, commit, upstream, ahead, behind } = branchState;
  const where = branch === null
    ? `Detached at ${commit?.slice(0, 10)}`
    : `On ${branch}${commit === null ? ", no commits yet" : ""}`;
  const track = upstream && `, follows ${upstream}` +
      (ahead === undefined ? " (gone)" : ` (ahead ${ahead}, behind ${behind})`);
  const head = [
    where + (track ?? ""),
    ...(operation === undefined ? [] : [`A ${operation} is under way`]),
    ...(branchState.stashes > 0 ? [`${branchState.stashes} in the stash`] : []),
  ];
  const rows = entries.slice(0, limit).map(({ code, path, from }) =>
    `${code} ${from === undefined ? "" : `${onOneLine(from)} -> `}${onOneLine(path)}`
  );
  const clean = rows.length === 0 ? ["Nothing changed"] : [];
  const cut = omittedNote(entries.length, limit, "give paths or a greater limit");
  return toResult([...head, ...clean, ...rows, ...cut].join("\n"), {
    root: root.slice(host.workspace.length + 1) || ".",
    ...branchState,
    ...(operation !== undefined && { operation }),
    files: entries.slice(0, limit).map(({ raw: _raw, code: _code, ...entry }) => entry),
    file_count: entries.length,
  });
}

/** Shows changes in the work tree, in the index, or between two revisions. */
export async function diff(args: Args, host: Host) {
  const { repo, staged, from, to, paths, context = 3, offset } = args;
  const what = "Cannot show the difference";
  if (to !== undefined && (from === undefined || staged)) {
    throw fail(what, "to goes with from, and not with staged");
  }
  const repository = await openRepository(what, repo, host);
  const revisions = [from, to].filter((end) => end !== undefined)
    .map((end) => revision(repository, end));
  // A conflict is compared with our side. Without this option, git would combine three versions in
  // another format.
  const against = staged ? ["--cached"] : from === undefined ? ["--ours"] : [];
  const text = await repository.git([
    ...["diff", ...PATCH, `--unified=${context}`, ...against],
    ...["--end-of-options", ...revisions, ...pathspec(repository, paths)],
  ]);
  return patchResult(changesOf(text), { repository, offset });
}

/** Lists commits, the latest first. */
export async function log(args: Args, host: Host) {
  const { repo, limit = 20, skip = 0, path, follow, revision: requested = "HEAD" } = args;
  const repository = await openRepository("Cannot read the log", repo, host);
  const filters = (["author", "since", "until", "grep"] as const).flatMap((name) => {
    const text = args[name];
    return text === undefined ? [] : [`--${name}=${optionText(repository, text)}`];
  });
  if (follow && path === undefined) throw fail(repository.what, "follow goes with path");
  const text = await repository.git([
    ...["log", "-z", "--no-notes", "--no-patch"],
    ...[`--format=tformat:${COMMIT}`, `--max-count=${limit + 1}`, `--skip=${skip}`],
    ...["--fixed-strings", "--regexp-ignore-case", ...filters, ...(follow ? ["--follow"] : [])],
    ...PLAIN,
    ...["--end-of-options", revision(repository, requested, true)],
    ...pathspec(repository, path === undefined ? [] : [path]),
  ]);
  const found = records(text, COMMIT_FIELDS + 1).map(commitOf);
  const commits = found.slice(0, limit);
  const rows = commits.map(({ hash, date, author, subject, refs }) => {
    const names = refs.length > 0 ? ` (${refs.join(", ")})` : "";
    return `${hash.slice(0, 10)} ${date.slice(0, 10)} ${onOneLine(author.name)}: ${
      onOneLine(subject)
    }${names}`;
  });
  const next = found.length > limit ? { next_skip: skip + limit } : {};
  const cut = found.length > limit ? [`[more; go on with skip ${skip + limit}]`] : [];
  const noRows = rows.length === 0 ? ["No commits"] : [];
  return toResult([...rows, ...noRows, ...cut].join("\n"), { commits, ...next });
}

/** Shows a commit with its changes, or a file or folder at a revision. */
export async function show(args: Args, host: Host) {
  const { repo, revision: requested = "HEAD", path, context = 3, offset } = args;
  const what = `Cannot show ${quoted(path === undefined ? requested : `${requested}:${path}`)}`;
  const repository = await openRepository(what, repo, host);
  const rev = revision(repository, requested);
  if (path !== undefined) return await showFile(repository, { rev, path, offset });
  const text = await repository.git([
    ...["show", ...PATCH, `--unified=${context}`, "--no-notes"],
    // The patch of a merge is the difference from its first parent, as for other commits.
    ...[`--format=tformat:${COMMIT}`, "--diff-merges=first-parent"],
    ...["--end-of-options", `${rev}^{commit}`, "--"],
  ]);
  const fields = text.split("\0", COMMIT_FIELDS);
  const commit = commitOf(fields);
  const rest = text.slice(fields.reduce((length, field) => length + field.length + 1, 0));
  const { hash, parents, author, date, subject, body } = commit;
  const merge = parents.length > 1 ? [`Merge of ${parents.join(" and ")}`] : [];
  const signature = `${author.name} <${author.email}>`;
  const head = [
    `commit ${hash}`,
    ...merge,
    `Author: ${signature}`,
    `Date: ${date}`,
    "",
    subject,
    "",
  ];
  if (body) head.push(body, "");
  return patchResult(changesOf(rest), {
    repository,
    offset,
    head: head.join("\n"),
    fields: { commit },
  });
}

/** Shows the last commit that changed each line of a file. */
export async function blame(args: Args, host: Host) {
  const { repo, path = "", revision: requested, start = 1, limit = 200 } = args;
  const what = `Cannot blame ${quoted(path)}`;
  const repository = await openRepository(what, repo, host);
  requireReadable(repository, pathIn(repository, path));
  const text = await repository.git([
    ...["blame", "--line-porcelain", "--no-textconv", "--no-ext-diff", "--no-ignore-revs-file"],
    `-L${start},+${limit + 1}`,
    ...(requested === undefined ? [] : [revision(repository, requested)]),
    ...pathspec(repository, [path]),
  ]);
  const found = [...text.matchAll(/^([0-9a-f]{40,64}) \d+ (\d+).*\n((?:[a-z].*\n)*)\t(.*)$/gm)].map(
    ([, hash = "", line, about = "", content = ""]) => {
      const field = (key: string) => new RegExp(`^${key} (.*)$`, "m").exec(about)?.[1] ?? "";
      const date = new Date(Number(field("author-time")) * 1_000).toISOString();
      return { line: Number(line), hash, author: field("author"), date, content };
    },
  );
  const blamed = found.slice(0, limit);
  const rows = blamed.map(({ line, hash, author, date, content }) => {
    const who = /^0+$/.test(hash) ? "not committed" : `${hash.slice(0, 10)} ${onOneLine(author)}`;
    return `${line} ${who} ${date.slice(0, 10)}: ${content}`;
  });
  const next = found.length > limit ? { next_start: start + limit } : {};
  const cut = found.length > limit ? [`[more; go on with start ${start + limit}]`] : [];
  return toResult([...rows, ...cut].join("\n"), { lines: blamed, ...next });
}

/** Lists branches, the latest first. */
export async function branches({ repo, remote, limit = 100 }: Args, host: Host) {
  const repository = await openRepository("Cannot list the branches", repo, host);
  const fields = "HEAD refname objectname committerdate:iso-strict upstream upstream:track subject";
  const format = fields.split(" ").map((field) => `%(${field})%00`).join("");
  const text = await repository.git([
    ...["for-each-ref", `--count=${limit + 1}`, "--sort=-committerdate", `--format=${format}`],
    ...["refs/heads", ...(remote ? ["refs/remotes"] : [])],
  ]);
  const found = records(text, 7).map(
    ([head, ref = "", hash = "", date = "", up, track, subject]) => {
      const count = (word: string) =>
        Number(new RegExp(`${word} (\\d+)`).exec(track ?? "")?.[1] ?? 0);
      const name = ref.replace(/^\n?refs\/(heads|remotes)\//, "");
      const upstream = up?.replace(/^refs\/(heads|remotes)\//, "");
      return {
        name,
        current: head?.trim() === "*",
        remote: ref.startsWith("refs/remotes/"),
        hash,
        date,
        subject: subject ?? "",
        ...(upstream && { upstream, gone: track === "[gone]" }),
        ...(upstream && { ahead: count("ahead"), behind: count("behind") }),
      };
    },
  );
  const listedBranches = found.slice(0, limit);
  const rows = listedBranches.map(
    ({ name, current, hash, subject, upstream, ahead, behind, gone }) => {
      const state = gone ? "gone" : `ahead ${ahead}, behind ${behind}`;
      const track = upstream ? ` [${upstream}: ${state}]` : "";
      return `${current ? "*" : " "} ${name} ${hash.slice(0, 10)}${track} ${onOneLine(subject)}`;
    },
  );
  const noRows = rows.length === 0 ? ["No branches: there are no commits yet"] : [];
  const cut = found.length > limit ? ["[more; give a greater limit]"] : [];
  const structured = { branches: listedBranches, more: found.length > limit };
  return toResult([...noRows, ...rows, ...cut].join("\n"), structured);
}

/** Stages files for the next commit. */
export async function add({ repo, paths = [], all = false }: Args, host: Host) {
  const what = "Cannot add";
  if (all === paths.length > 0) throw fail(what, "give paths, or all");
  const repository = await openRepository(what, repo, host);
  const options = ["--untracked-files=all", ...(all ? [] : ["--ignored=matching"])];
  const entries = await changedEntries(repository, { paths, options });
  const isRepository = ({ path, code }: { path: string; code: string }) =>
    code === "??" && path.endsWith("/");
  const stageable = entries.filter((entry) =>
    entry.unstaged && entry.code !== "!!" && !isRepository(entry)
  );
  const skippedEntries = entries.filter((entry) => entry.code === "!!" || isRepository(entry));
  if (!all) requireFound(repository, { paths, stageable, omitted: skippedEntries });
  await stage(repository, stageable);
  const staged = stageable.map(({ path, code, unstaged = "" }) => ({
    path,
    change: code === "??" ? "added" : unstaged,
  }));
  const rows = staged.map(({ path, change }) => `${change} ${onOneLine(path)}`);
  const skipped = skippedEntries.map(({ path }) => path);
  const notes = skipped.length > 0
    ? ["Left out, because ignored or separate repositories:", ...limitNames(skipped)]
    : [];
  const count = `${stageable.length} file${stageable.length === 1 ? "" : "s"}`;
  return toResult([`Staged ${count}`, ...limitNames(rows), ...notes].join("\n"), {
    staged: staged.slice(0, 1_000),
    staged_count: staged.length,
    left_out: skipped.slice(0, 1_000),
  });
}

/** Commits staged changes, some paths, or all changes to tracked files. */
export async function commit(args: Args, host: Host) {
  const { repo, message, paths = [], all = false, amend = false, allow_empty = false } = args;
  const what = "Cannot commit";
  if (all && paths.length > 0) throw fail(what, "give paths or all, not both");
  if (!message?.trim() && !amend) throw fail(what, "the message is empty");
  const repository = await openRepository(what, repo, host);
  const env = await authorVariables(repository);
  const untracked = ["--untracked-files=no"];
  const entries = await changedEntries(repository, { paths, options: untracked });
  const conflicts = entries.filter(({ code }) => code.includes("U") || /^(AA|DD)$/.test(code));
  if (conflicts.length > 0) {
    const names = limitNames(conflicts.map(({ path }) => path)).join(", ");
    throw fail(what, `there are conflicts in ${names}; resolve them, then add the files`);
  }
  const takesUnstaged = all || paths.length > 0;
  const committed = entries.filter((entry) => entry.staged || (takesUnstaged && entry.unstaged));
  const mayBeEmpty = amend || allow_empty || repository.operation !== undefined;
  if (committed.length === 0 && !mayBeEmpty) {
    throw fail(what, "nothing is staged; stage files with add, or give paths or all");
  }
  const unstaged = committed.filter((entry) => entry.unstaged);
  if (all) await stage(repository, unstaged);
  else if (takesUnstaged) await requireUnfiltered(repository, unstaged.map(({ raw }) => raw));
  const text = await repository.git([
    ...[
      "-c",
      "core.abbrev=no",
      "commit",
      "--no-verify",
      "--no-gpg-sign",
      "--cleanup=whitespace",
      "--no-status",
    ],
    // The code above checked for changes. Git's own check would read submodules with their
    // configuration.
    ...["--allow-empty", ...(amend ? ["--amend"] : [])],
    ...(message === undefined ? ["--no-edit"] : ["--file=-"]),
    ...(paths.length > 0 ? ["--only", ...pathspec(repository, paths)] : ["--"]),
  ], { env, stdin: optionText(repository, message ?? "") });
  const [, hash = ""] = /^\[.* ([0-9a-f]{40,64})\] /.exec(text) ?? [];
  return toResult(limitNames(text.trimEnd().split("\n")).join("\n"), { hash });
}

/** Restores files as they are in the index or a revision, or unstages them. */
export async function restore(args: Args, host: Host) {
  const { repo, paths = [], staged = false, source } = args;
  const what = "Cannot restore";
  if (paths.length === 0) throw fail(what, "give paths");
  const repository = await openRepository(what, repo, host);
  const rev = source === undefined ? [] : [revision(repository, source)];
  const where = pathspec(repository, paths);
  const compare = ["--name-only", "--no-renames", ...(staged ? ["--cached"] : []), ...PLAIN];
  const list = await repository.git(
    ["diff", ...compare, "--end-of-options", ...rev, ...where],
    { whole: true },
  );
  const raws = namesIn(list);
  if (!staged) {
    requireWritable(repository, raws);
    await requireUnfiltered(repository, raws);
  }
  await repository.git([
    ...["restore", "--quiet", "--no-recurse-submodules", staged ? "--staged" : "--worktree"],
    ...rev.map((source) => `--source=${source}`),
    ...where,
  ]);
  const names = raws.map(unquote);
  const head = `Restored ${names.length} files${staged ? " in the index" : ""}`;
  return toResult([head, ...limitNames(names)].join("\n"), {
    restored: names.slice(0, 1_000),
    restored_count: names.length,
  });
}

/** Puts changes aside, lists and shows stashes, and applies or drops them. */
export async function stash(args: Args, host: Host) {
  const { repo, action = "list", stash: number = 0, offset } = args;
  const repository = await openRepository(`Cannot ${action} the stash`, repo, host);
  const name = `stash@{${number}}`;
  if (action === "push") return await putAside(repository, args);
  if (action === "list") return await listAside(repository);
  if (action !== "show") return await bringBack(repository, name, args);
  const text = await repository.git(["stash", "show", "--include-untracked", ...PATCH, name]);
  return patchResult(changesOf(text), { repository, offset });
}

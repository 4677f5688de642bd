/**
 * The built-in module `git`. It reads and changes repositories of the workspace, and trusts none of
 * them.
 *
 * @module
 */

import type { Host } from "../../src/sandbox/host.ts";
import { pathIn, pathspec, revision, value } from "./asking.ts";
import type { Args } from "./call.ts";
import { COMMIT, COMMIT_FIELDS, commitOf, shownFile } from "./commits.ts";
import { fail, quoted } from "./failure.ts";
import { changesOf, entriesOf, records, shown, standingOf, unquoted } from "./parsing.ts";
import { openRepository } from "./repository.ts";
import { requireOpen, requireWritable } from "./secret.ts";
import { answer, more, PATCH, patched, PLAIN } from "./showing.ts";
import {
  author,
  changed,
  listed,
  named,
  requireFound,
  requireUnfiltered,
  stage,
} from "./staging.ts";
import { bringBack, listAside, putAside } from "./stashing.ts";

/** Shows the branch and its changes. */
export async function status({ repo, paths, limit = 500, untracked = true }: Args, host: Host) {
  const repository = await openRepository("Cannot read the status", repo, host);
  const kind = ["status", "--porcelain=v2", "--branch", "--show-stash", "--find-renames"];
  const shownToo = [
    "--ignore-submodules=dirty",
    `--untracked-files=${untracked ? "normal" : "no"}`,
  ];
  const text = await repository.git([...kind, ...shownToo, ...pathspec(repository, paths)]);
  const [standing, entries] = [standingOf(text), entriesOf(text)];
  const { operation, root } = repository;
  const { branch, commit, upstream, ahead, behind } = standing;
  const where = branch === null
    ? `Detached at ${commit?.slice(0, 10)}`
    : `On ${branch}${commit === null ? ", no commits yet" : ""}`;
  const track = upstream && `, follows ${upstream}` +
      (ahead === undefined ? " (gone)" : ` (ahead ${ahead}, behind ${behind})`);
  const head = [
    where + (track ?? ""),
    ...(operation === undefined ? [] : [`A ${operation} is under way`]),
    ...(standing.stashes > 0 ? [`${standing.stashes} in the stash`] : []),
  ];
  const rows = entries.slice(0, limit).map(({ code, path, from }) =>
    `${code} ${from === undefined ? "" : `${shown(from)} -> `}${shown(path)}`
  );
  const clean = rows.length === 0 ? ["Nothing changed"] : [];
  const cut = more(entries.length, limit, "give paths or a greater limit");
  return answer([...head, ...clean, ...rows, ...cut].join("\n"), {
    root: root.slice(host.workspace.length + 1) || ".",
    ...standing,
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
  const ends = [from, to].filter((end) => end !== undefined)
    .map((end) => revision(repository, end));
  // A conflict is compared with our side. Otherwise git would combine three versions in a format of
  // its own.
  const against = staged ? ["--cached"] : from === undefined ? ["--ours"] : [];
  const text = await repository.git([
    ...["diff", ...PATCH, `--unified=${context}`, ...against],
    ...["--end-of-options", ...ends, ...pathspec(repository, paths)],
  ]);
  return patched(changesOf(text), { repository, offset });
}

/** Lists commits, the latest first. */
export async function log(args: Args, host: Host) {
  const { repo, limit = 20, skip = 0, path, follow, revision: asked = "HEAD" } = args;
  const repository = await openRepository("Cannot read the log", repo, host);
  const filters = (["author", "since", "until", "grep"] as const).flatMap((name) => {
    const text = args[name];
    return text === undefined ? [] : [`--${name}=${value(repository, text)}`];
  });
  if (follow && path === undefined) throw fail(repository.what, "follow goes with path");
  const text = await repository.git([
    ...["log", "-z", "--no-notes", "--no-patch"],
    ...[`--format=tformat:${COMMIT}`, `--max-count=${limit + 1}`, `--skip=${skip}`],
    ...["--fixed-strings", "--regexp-ignore-case", ...filters, ...(follow ? ["--follow"] : [])],
    ...PLAIN,
    ...["--end-of-options", revision(repository, asked, true)],
    ...pathspec(repository, path === undefined ? [] : [path]),
  ]);
  const found = records(text, COMMIT_FIELDS + 1).map(commitOf);
  const commits = found.slice(0, limit);
  const rows = commits.map(({ hash, date, author, subject, refs }) => {
    const names = refs.length > 0 ? ` (${refs.join(", ")})` : "";
    return `${hash.slice(0, 10)} ${date.slice(0, 10)} ${shown(author.name)}: ${
      shown(subject)
    }${names}`;
  });
  const next = found.length > limit ? { next_skip: skip + limit } : {};
  const cut = found.length > limit ? [`[more; go on with skip ${skip + limit}]`] : [];
  const none = rows.length === 0 ? ["No commits"] : [];
  return answer([...rows, ...none, ...cut].join("\n"), { commits, ...next });
}

/** Shows a commit with its changes, or a file or folder at a revision. */
export async function show(args: Args, host: Host) {
  const { repo, revision: asked = "HEAD", path, context = 3, offset } = args;
  const what = `Cannot show ${quoted(path === undefined ? asked : `${asked}:${path}`)}`;
  const repository = await openRepository(what, repo, host);
  const rev = revision(repository, asked);
  if (path !== undefined) return await shownFile(repository, { rev, path, offset });
  const text = await repository.git([
    ...["show", ...PATCH, `--unified=${context}`, "--no-notes"],
    // Compared with its first parent, a merge has a patch like any other commit.
    ...[`--format=tformat:${COMMIT}`, "--diff-merges=first-parent"],
    ...["--end-of-options", `${rev}^{commit}`, "--"],
  ]);
  const fields = text.split("\0", COMMIT_FIELDS);
  const commit = commitOf(fields);
  const rest = text.slice(fields.reduce((length, field) => length + field.length + 1, 0));
  const { hash, parents, author, date, subject, body } = commit;
  const merge = parents.length > 1 ? [`Merge of ${parents.join(" and ")}`] : [];
  const by = `${author.name} <${author.email}>`;
  const head = [`commit ${hash}`, ...merge, `Author: ${by}`, `Date: ${date}`, "", subject, ""];
  if (body) head.push(body, "");
  return patched(changesOf(rest), { repository, offset, head: head.join("\n"), told: { commit } });
}

/** Shows for each line of a file which commit changed it last. */
export async function blame(args: Args, host: Host) {
  const { repo, path = "", revision: asked, start = 1, limit = 200 } = args;
  const what = `Cannot blame ${quoted(path)}`;
  const repository = await openRepository(what, repo, host);
  requireOpen(repository, pathIn(repository, path));
  const text = await repository.git([
    ...["blame", "--line-porcelain", "--no-textconv", "--no-ext-diff", "--no-ignore-revs-file"],
    `-L${start},+${limit + 1}`,
    ...(asked === undefined ? [] : [revision(repository, asked)]),
    ...pathspec(repository, [path]),
  ]);
  const found = [...text.matchAll(/^([0-9a-f]{40,64}) \d+ (\d+).*\n((?:[a-z].*\n)*)\t(.*)$/gm)].map(
    ([, hash = "", line, about = "", content = ""]) => {
      const said = (key: string) => new RegExp(`^${key} (.*)$`, "m").exec(about)?.[1] ?? "";
      const date = new Date(Number(said("author-time")) * 1_000).toISOString();
      return { line: Number(line), hash, author: said("author"), date, content };
    },
  );
  const blamed = found.slice(0, limit);
  const rows = blamed.map(({ line, hash, author, date, content }) => {
    const who = /^0+$/.test(hash) ? "not committed" : `${hash.slice(0, 10)} ${shown(author)}`;
    return `${line} ${who} ${date.slice(0, 10)}: ${content}`;
  });
  const next = found.length > limit ? { next_start: start + limit } : {};
  const cut = found.length > limit ? [`[more; go on with start ${start + limit}]`] : [];
  return answer([...rows, ...cut].join("\n"), { lines: blamed, ...next });
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
  const shownOnes = found.slice(0, limit);
  const rows = shownOnes.map(({ name, current, hash, subject, upstream, ahead, behind, gone }) => {
    const state = gone ? "gone" : `ahead ${ahead}, behind ${behind}`;
    const track = upstream ? ` [${upstream}: ${state}]` : "";
    return `${current ? "*" : " "} ${name} ${hash.slice(0, 10)}${track} ${shown(subject)}`;
  });
  const none = rows.length === 0 ? ["No branches: there are no commits yet"] : [];
  const cut = found.length > limit ? ["[more; give a greater limit]"] : [];
  const told = { branches: shownOnes, more: found.length > limit };
  return answer([...none, ...rows, ...cut].join("\n"), told);
}

/** Stages files for the next commit. */
export async function add({ repo, paths = [], all = false }: Args, host: Host) {
  const what = "Cannot add";
  if (all === paths.length > 0) throw fail(what, "give paths, or all");
  const repository = await openRepository(what, repo, host);
  const options = ["--untracked-files=all", ...(all ? [] : ["--ignored=matching"])];
  const entries = await changed(repository, { paths, options });
  const isRepository = ({ path, code }: { path: string; code: string }) =>
    code === "??" && path.endsWith("/");
  const fresh = entries.filter((one) => one.unstaged && one.code !== "!!" && !isRepository(one));
  const left = entries.filter((one) => one.code === "!!" || isRepository(one));
  if (!all) requireFound(repository, { paths, fresh, left });
  await stage(repository, fresh);
  const staged = fresh.map(({ path, code, unstaged = "" }) => ({
    path,
    change: code === "??" ? "added" : unstaged,
  }));
  const rows = staged.map(({ path, change }) => `${change} ${shown(path)}`);
  const skipped = left.map(({ path }) => path);
  const notes = skipped.length > 0
    ? ["Left out, because ignored or separate repositories:", ...listed(skipped)]
    : [];
  return answer([`Staged ${fresh.length} files`, ...listed(rows), ...notes].join("\n"), {
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
  const env = await author(repository);
  const untracked = ["--untracked-files=no"];
  const entries = await changed(repository, { paths, options: untracked });
  const conflicts = entries.filter(({ code }) => code.includes("U") || /^(AA|DD)$/.test(code));
  if (conflicts.length > 0) {
    const names = listed(conflicts.map(({ path }) => path)).join(", ");
    throw fail(what, `there are conflicts in ${names}; resolve them, then add the files`);
  }
  const whole = all || paths.length > 0;
  const wanted = entries.filter((one) => one.staged || (whole && one.unstaged));
  const isFree = amend || allow_empty || repository.operation !== undefined;
  if (wanted.length === 0 && !isFree) {
    throw fail(what, "nothing is staged; stage files with add, or give paths or all");
  }
  const unstaged = wanted.filter((one) => one.unstaged);
  if (all) await stage(repository, unstaged);
  else if (whole) await requireUnfiltered(repository, unstaged.map(({ raw }) => raw));
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
    // Whether there are changes was checked above. Git's own check would look into submodules, with
    // their configuration.
    ...["--allow-empty", ...(amend ? ["--amend"] : [])],
    ...(message === undefined ? ["--no-edit"] : ["--file=-"]),
    ...(paths.length > 0 ? ["--only", ...pathspec(repository, paths)] : ["--"]),
  ], { env, stdin: value(repository, message ?? "") });
  const [, hash = ""] = /^\[.* ([0-9a-f]{40,64})\] /.exec(text) ?? [];
  return answer(listed(text.trimEnd().split("\n")).join("\n"), { hash });
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
  const raws = named(list);
  if (!staged) {
    requireWritable(repository, raws);
    await requireUnfiltered(repository, raws);
  }
  await repository.git([
    ...["restore", "--quiet", "--no-recurse-submodules", staged ? "--staged" : "--worktree"],
    ...rev.map((one) => `--source=${one}`),
    ...where,
  ]);
  const names = raws.map(unquoted);
  const head = `Restored ${names.length} files${staged ? " in the index" : ""}`;
  return answer([head, ...listed(names)].join("\n"), {
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
  return patched(changesOf(text), { repository, offset });
}

/**
 * Runs git in a repository that may be hostile. The repository's configuration cannot start programs
 * or read files outside of the repository.
 *
 * @module
 */

import type { ExecOptions, Host } from "../../src/sandbox/host.ts";
import { fail, gitError } from "./failure.ts";
import { findPlace, type RepositoryPlace } from "./place.ts";
import { FIXED, NOWHERE, overrides, type Pair, requireUsable, type Setting } from "./settings.ts";

/** A repository that was checked. */
export interface Repository extends RepositoryPlace {
  /** The attempted action, for errors. */
  readonly what: string;
  /** Runs git and returns its output. Throws if git fails. */
  git(args: readonly string[], options?: GitOptions): Promise<string>;
  /** Returns a setting of the repository, else of the user. */
  setting(key: string): string | undefined;
  /** The names of all configured filters. */
  readonly filters: ReadonlySet<string>;
  /** Reads the settings of the author from files that the user's configuration includes. */
  includedAuthor(): Promise<ReadonlyMap<string, string>>;
}

/** Options of one run of git. */
export interface GitOptions extends Pick<ExecOptions, "stdin" | "env"> {
  /** Whether to throw if the output was too long and a part of it was omitted. */
  readonly whole?: boolean;
}

const MAX_BYTES = 16 * 1024 * 1024;
const INCLUDE = /^include(if\..*)?\.path$/s;
const FILTER = /^filter\.(.*)\.\w+$/s;
/** Git ignores the system's configuration. It reads the user's, but runs none of its programs. */
const ENVIRONMENT = {
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_ATTR_NOSYSTEM: "1",
  GIT_ALLOW_PROTOCOL: "none",
  GIT_NO_LAZY_FETCH: "1",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_TERMINAL_PROMPT: "0",
  GIT_EDITOR: "false",
  GIT_LITERAL_PATHSPECS: "1",
  // Replacements would show another history than the hashes identify.
  GIT_NO_REPLACE_OBJECTS: "1",
  GIT_GRAFT_FILE: NOWHERE,
  // Errors are recognized by their English words.
  LC_ALL: "C",
};
/** Finds a repository and reads its configuration. Reading it runs no program. */
export async function openRepository(
  what: string,
  repo: string | undefined,
  host: Host,
): Promise<Repository> {
  const place = await findPlace(what, repo ?? ".", host);
  const run = runner(what, place, host);
  const env = withConfig(FIXED);
  const list = ["config", "--list", "-z", "--show-scope", "--no-includes"];
  const settings = settingsOf(await run(list, { env, whole: true }));
  const ownSettings = settings.filter((setting) => setting.isOwn);
  requireUsable(what, ownSettings);
  const setting = (key: string) =>
    (ownSettings.findLast((entry) => entry.key === key) ??
      settings.findLast((entry) => entry.key === key))?.value;
  const safe = withConfig([...FIXED, ...overrides(what, settings)]);
  const safeEnv = { ...safe, GIT_CONFIG_GLOBAL: NOWHERE };
  return {
    ...place,
    what,
    setting,
    filters: filtersOf(settings),
    includedAuthor: async () => {
      const hasInclude = settings.some(({ isOwn, key }) => !isOwn && INCLUDE.test(key));
      if (!hasInclude) return new Map();
      // This runs inside the repository, because conditions of includes depend on its path. No file
      // of the repository is read.
      const author = ["--get-regexp", "^(user|author|committer)\\.(name|email)$"];
      const args = ["config", "--global", "--includes", "-z", ...author];
      // Git fails if there is no author.
      return pairsOf(await run(args, { env }).catch(() => ""));
    },
    git: (args, options = {}) => run(args, { ...options, env: { ...safeEnv, ...options.env } }),
  };
}

function runner(what: string, { root, gitDir }: RepositoryPlace, host: Host) {
  const fixed = ["--no-pager", `--git-dir=${gitDir}`, `--work-tree=${root}`];
  return async (args: readonly string[], { whole, ...options }: GitOptions): Promise<string> => {
    const execOptions = { ...options, cwd: root, maxBytes: MAX_BYTES };
    const { code, stdout, stderr, omitted } = await host.exec(
      "git",
      [...fixed, ...args],
      execOptions,
    );
    // Git reports a conflict on stdout.
    if (code !== 0) throw gitError(what, `${stderr}\n${stdout}`);
    if (whole && omitted.stdout > 0) throw fail(what, "there is too much of it; give paths");
    // The text after the gap is dropped, because the gap may contain the name of its file.
    const gap = `\n[${omitted.stdout} bytes left out]\n`;
    return omitted.stdout > 0 ? stdout.split(gap, 1) + gap : stdout;
  };
}

/** Returns variables with the settings. With `-c`, a name would end at its first `=`. */
function withConfig(pairs: readonly Pair[]): Record<string, string> {
  const variables = pairs.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return {
    ...ENVIRONMENT,
    ...Object.fromEntries(variables),
    GIT_CONFIG_COUNT: String(pairs.length),
  };
}

function settingsOf(output: string): Setting[] {
  const parts = output.split("\0");
  return Array.from({ length: (parts.length - 1) / 2 }, (_, index) => {
    const [scope, text = ""] = parts.slice(2 * index);
    const [key, value] = pairOf(text);
    return { isOwn: scope === "local" || scope === "worktree", key, value };
  });
}

function pairsOf(output: string): Map<string, string> {
  return new Map(output.split("\0").map(pairOf));
}

/** Splits a text at the first line end. A key without a line end has no value. */
function pairOf(text: string): Pair {
  const end = text.search(/\n|$/);
  return [text.slice(0, end), text.slice(end + 1)];
}

function filtersOf(settings: readonly Setting[]): Set<string> {
  return new Set(settings.flatMap(({ key }) => FILTER.exec(key)?.slice(1) ?? []));
}

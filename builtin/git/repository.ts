/**
 * Runs git in a repository that may be hostile: its own configuration starts no program and reads
 * no file elsewhere.
 *
 * @module
 */

import type { ExecOptions, Host } from "../../src/core/host.ts";
import { fail, quoted, refused } from "./failure.ts";
import { findPlace, type Place } from "./place.ts";

/** A repository that is ready to be asked. */
export interface Repository extends Place {
  /** What the call is about, for errors. */
  readonly what: string;
  /** Runs git and gives what it wrote; throws where it fails. */
  git(args: readonly string[], options?: GitOptions): Promise<string>;
  /** Gives a setting: the repository's, else the person's. */
  setting(key: string): string | undefined;
  /** The names of filters that someone configured. */
  readonly filters: ReadonlySet<string>;
  /** Reads the author from the files that the person's configuration includes, if any. */
  included(): Promise<ReadonlyMap<string, string>>;
}

/** What a run of git is given beside its arguments. */
export interface GitOptions extends Pick<ExecOptions, "stdin" | "env"> {
  /** Refuses an answer that was too long to be kept whole. */
  readonly whole?: boolean;
}

type Pair = readonly [key: string, value: string];
interface Setting {
  readonly own: boolean;
  readonly key: string;
  readonly value: string;
}

const NOWHERE = "/dev/null";
const MAX_BYTES = 16 * 1024 * 1024;
const INCLUDE = /^include(if\..*)?\.path$/s;
const DRIVER = /^(filter|merge)\.(.*)\.\w+$/s;
/** The system's configuration is nobody's here; the person's is read, never followed. */
const ENVIRONMENT = {
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_ATTR_NOSYSTEM: "1",
  GIT_ALLOW_PROTOCOL: "none",
  GIT_NO_LAZY_FETCH: "1",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_TERMINAL_PROMPT: "0",
  GIT_EDITOR: "false",
  GIT_LITERAL_PATHSPECS: "1",
  // History is shown as its hashes say.
  GIT_NO_REPLACE_OBJECTS: "1",
  GIT_GRAFT_FILE: NOWHERE,
  // Errors are recognized by their English words.
  LC_ALL: "C",
};
const FIXED: readonly Pair[] = [
  ["safe.bareRepository", "explicit"],
  ["core.fsmonitor", "false"],
  ["core.hooksPath", NOWHERE],
  ["core.attributesFile", NOWHERE],
  ["diff.orderFile", NOWHERE],
  ["mailmap.file", NOWHERE],
  ["gc.auto", "0"],
  ["maintenance.auto", "false"],
  ["rerere.enabled", "false"],
  ["submodule.recurse", "false"],
  ["log.showSignature", "false"],
  ["core.quotePath", "true"],
  ["core.abbrev", "auto"],
  ["i18n.commitEncoding", "UTF-8"],
  ["i18n.logOutputEncoding", "UTF-8"],
];

/** Finds a repository and reads its configuration, which runs nothing. */
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
  const own = settings.filter((setting) => setting.own);
  requireUsable(what, own);
  const setting = (key: string) =>
    (own.findLast((one) => one.key === key) ?? settings.findLast((one) => one.key === key))?.value;
  const safe = withConfig([...FIXED, ...overrides(settings)]);
  const closed = { ...safe, GIT_CONFIG_GLOBAL: NOWHERE };
  return {
    ...place,
    what,
    setting,
    filters: new Set(namesOf("filter", settings)),
    included: async () => {
      const some = settings.some(({ own, key }) => !own && INCLUDE.test(key));
      if (!some) return new Map();
      // Inside the repository, because conditions ask where that is; no file of its own is read.
      const author = ["--get-regexp", "^(user|author|committer)\\.(name|email)$"];
      const args = ["config", "--global", "--includes", "-z", ...author];
      // Git fails where it finds none.
      return pairsOf(await run(args, { env }).catch(() => ""));
    },
    git: (args, options = {}) => run(args, { ...options, env: { ...closed, ...options.env } }),
  };
}

function runner(what: string, { root, gitDir }: Place, host: Host) {
  const fixed = ["--no-pager", `--git-dir=${gitDir}`, `--work-tree=${root}`];
  return async (args: readonly string[], { whole, ...options }: GitOptions): Promise<string> => {
    const all = { ...options, cwd: root, maxBytes: MAX_BYTES };
    const { code, stdout, stderr, omitted } = await host.exec("git", [...fixed, ...args], all);
    // Git tells a conflict where it tells the rest.
    if (code !== 0) throw refused(what, `${stderr}\n${stdout}`);
    if (whole && omitted.stdout > 0) throw fail(what, "there is too much of it; give paths");
    return stdout;
  };
}

/** Settings go in as variables: a `-c` would end a name at its first `=`. */
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

function settingsOf(listed: string): Setting[] {
  const parts = listed.split("\0");
  return Array.from({ length: (parts.length - 1) / 2 }, (_, index) => {
    const [scope, text = ""] = parts.slice(2 * index);
    const [key, value] = pairOf(text);
    return { own: scope === "local" || scope === "worktree", key, value };
  });
}

function pairsOf(listed: string): Map<string, string> {
  return new Map(listed.split("\0").map(pairOf));
}

/** Cuts at the first line end; a key without one has no value. */
function pairOf(text: string): Pair {
  const end = text.search(/\n|$/);
  return [text.slice(0, end), text.slice(end + 1)];
}

function requireUsable(what: string, settings: readonly Setting[]): void {
  for (const { key } of settings) {
    const told = `its configuration has ${quoted(key)}`;
    if (INCLUDE.test(key)) {
      const hint = "copy what is in that file into the configuration itself";
      throw fail(what, `${told}, and no other file is read for it; ${hint}`);
    }
    // The name came as text: with this sign in it, it may be that of other bytes.
    if (DRIVER.test(key) && key.includes("\uFFFD")) throw fail(what, `${told}, which is not UTF-8`);
  }
}

function overrides(settings: readonly Setting[]): Pair[] {
  const own = settings.filter((setting) => setting.own);
  const person = (key: string) => settings.findLast((one) => !one.own && one.key === key)?.value;
  const ignored = person("core.excludesfile") ??
    (own.some(({ key }) => key === "core.excludesfile") ? NOWHERE : undefined);
  const ends = own.some(({ key }) => key === "core.autocrlf") ? undefined : person("core.autocrlf");
  return [
    ...(ignored === undefined ? [] : [["core.excludesFile", ignored] as const]),
    ...(ends === undefined ? [] : [["core.autocrlf", ends] as const]),
    ...namesOf("filter", own).flatMap((name): Pair[] => [
      [`filter.${name}.clean`, ""],
      [`filter.${name}.smudge`, ""],
      [`filter.${name}.process`, ""],
      [`filter.${name}.required`, "false"],
    ]),
    // An empty driver would pass for a merge without conflict.
    ...namesOf("merge", own).flatMap((name): Pair[] => [
      [`merge.${name}.driver`, "git merge-file -q %A %O %B"],
      [`merge.${name}.recursive`, "text"],
    ]),
  ];
}

function namesOf(kind: string, settings: readonly Setting[]): string[] {
  const found = settings.map(({ key }) => DRIVER.exec(key) ?? [])
    .filter(([, section]) => section === kind);
  return [...new Set(found.map(([, , name = ""]) => name))];
}

/**
 * Decides which settings of a repository git may obey. Each setting that is not in `HARMLESS` is
 * overridden, so settings of later versions of git have no effect, too.
 *
 * @module
 */

import { fail, quoted } from "./failure.ts";

/** A setting as the environment passes it to git. */
export type Pair = readonly [key: string, value: string];
/** One setting of git, and whether it is the repository's own. */
export interface Setting {
  readonly isOwn: boolean;
  /** Section and name are in lower case. The part between them is unchanged. */
  readonly key: string;
  readonly value: string;
}

export const NOWHERE = "/dev/null";
const MAX_OVERRIDES = 1_000;

/** Settings of each run, which override the settings of the repository. */
export const FIXED: readonly Pair[] = [
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
const FIXED_KEYS = new Set(FIXED.map(([key]) => key.toLowerCase()));

/**
 * Settings that start no program and name no file outside of the repository: whole sections
 * (`user`), single settings (`core.eol`), or settings with any name in between (`branch.*.remote`).
 */
const HARMLESS = new Set([
  // Names, texts and formats of output.
  ..."advice author branch color column committer grep gui i18n log pretty status user".split(" "),
  // Numbers and switches.
  ..."add am apply attr checkout feature index notes pack rebase reftable repack rerere".split(" "),
  ..."revert sparse splitindex stash tag versionsort worktree".split(" "),
  // For transports only. GIT_ALLOW_PROTOCOL closes all of them.
  ..."clone fetch protocol pull push receive remote remotes transfer url".split(" "),
  // For other programs only.
  ..."gerrit gitflow lfs svn svn-remote".split(" "),
  // Git ignores these in a repository.
  "safe",
  ...prefixed(
    "blame",
    "blankboundary coloring date markignoredlines markunblamablelines showemail showroot",
  ),
  ...prefixed("commit", "cleanup gpgsign status verbose"),
  ...prefixed(
    "commitgraph",
    "changedpathsversion generationversion maxnewfilters readchangedpaths",
  ),
  ...prefixed(
    "core",
    "autocrlf bare bigfilethreshold checkroundtripencoding checkstat commentchar commentstring " +
      "commitgraph compression createobject deltabasecachelimit eol filemode filesreflocktimeout " +
      "fscache fsync fsyncmethod fsyncobjectfiles hidedotfiles ignorecase ignorestat " +
      "logallrefupdates longpaths loosecompression maxtreedepth multipackindex notesref " +
      "packedgitlimit packedgitwindowsize packedrefstimeout precomposeunicode prefersymlinkrefs " +
      "preloadindex repositoryformatversion safecrlf sharedrepository sparsecheckout " +
      "sparsecheckoutcone splitindex symlinks trustctime untrackedcache usereplacerefs " +
      "warnambiguousrefs whitespace worktree",
  ),
  ...prefixed(
    "diff",
    "algorithm autorefreshindex colormoved colormovedws context dirstat ignoresubmodules " +
      "indentheuristic interhunkcontext mnemonicprefix noprefix relative renamelimit renames " +
      "statgraphwidth statnamewidth submodule suppressblankempty wordregex wserrorhighlight",
  ),
  ...prefixed("diff.*", "algorithm binary cachetextconv funcname wordregex xfuncname"),
  ...prefixed("format", "encodeemailheaders filenamemaxlength pretty subjectprefix"),
  ...prefixed(
    "gc",
    "aggressivedepth aggressivewindow autodetach autopacklimit bigpackthreshold cruftpacks " +
      "logexpiry maxcruftsize packrefs pruneexpire reflogexpire reflogexpireunreachable " +
      "rerereresolved rerereunresolved worktreepruneexpire writecommitgraph",
  ),
  ...prefixed("gc.*", "reflogexpire reflogexpireunreachable"),
  ...prefixed("gpg", "format mintrustlevel"),
  // How many hooks run at once. The settings of one hook have its name in the middle.
  "hook.jobs",
  ...prefixed(
    "merge",
    "autostash branchdesc conflictstyle default defaulttoupstream directoryrenames ff log " +
      "renamelimit renames renormalize stat suppressdest verbosity verifysignatures",
  ),
  "merge.*.name",
  ...prefixed(
    "submodule",
    "active alternateerrorstrategy alternatelocation fetchjobs propagatebranches",
  ),
  ...prefixed("submodule.*", "active branch fetchrecursesubmodules ignore path url"),
]);

/** Extensions of the repository's format, and the values that keep git inside of it. */
const EXTENSIONS: ReadonlyMap<string, RegExp> = new Map([
  ["compatobjectformat", /^sha(1|256)$/],
  ["noop", /^/],
  ["noop-v1", /^/],
  ["objectformat", /^sha(1|256)$/],
  ["partialclone", /^/],
  ["preciousobjects", /^/],
  // A value with an address keeps the references in another folder.
  ["refstorage", /^(files|reftable)$/],
  ["relativeworktrees", /^/],
  ["worktreeconfig", /^/],
]);

/** The overrides of some settings. Other settings become empty: false, no program or no file. */
const OVERRIDES: ReadonlyMap<string, readonly Pair[]> = new Map([
  ["core.protecthfs", [["core.protectHFS", "true"]]],
  ["core.protectntfs", [["core.protectNTFS", "true"]]],
  ["filter.*", [["clean", ""], ["smudge", ""], ["process", ""], ["required", "false"]]],
  // The command and the events stay, because git refuses an event without a command.
  ["hook.*", [["enabled", "false"]]],
  // An empty driver would look like a merge without conflict.
  ["merge.*", [["driver", "git merge-file -q %A %O %B"], ["recursive", "text"]]],
  ["submodule.*.update", [["update", "none"]]],
]);

/** Throws if the repository has a setting that nothing can override. */
export function requireUsable(what: string, ownSettings: readonly Setting[]): void {
  for (const { key, value } of ownSettings) {
    const setting = `its configuration has ${quoted(key)}`;
    const { section, name } = partsOf(key);
    if (/^include(if)?$/.test(section)) {
      const hint = "copy the content of that file into it";
      throw fail(what, `${setting}, and no other file is read for it; ${hint}`);
    }
    if (section === "extensions" && !isKnownExtension(key, value)) {
      const hint = "do this in a terminal";
      throw fail(
        what,
        `${setting} = ${quoted(value)}, an extension that is not supported; ${hint}`,
      );
    }
    // If the decoded name contains this character, its bytes were not UTF-8, so no override can have
    // the same name.
    const isWritable = !key.includes("\uFFFD") || name === "" || isHarmless(key);
    if (!isWritable) throw fail(what, `${setting}, which is not UTF-8`);
  }
}

/** Returns the overrides for the settings of a repository. Throws if there are too many. */
export function overrides(what: string, settings: readonly Setting[]): Pair[] {
  const ownSettings = settings.filter((setting) => setting.isOwn);
  const userSetting = (key: string) =>
    settings.findLast((entry) => !entry.isOwn && entry.key === key)?.value;
  const ignored = userSetting("core.excludesfile");
  const lineEndings = ownSettings.some(({ key }) => key === "core.autocrlf")
    ? undefined
    : userSetting("core.autocrlf");
  const pairs = new Map(ownSettings.flatMap(({ key }) => overridesOf(key)));
  if (pairs.size > MAX_OVERRIDES) {
    const why = `its configuration has ${pairs.size} settings that git must not obey`;
    throw fail(what, `${why}, and ${MAX_OVERRIDES} is the most; remove some of them`);
  }
  if (ownSettings.some(({ key }) => key === "core.excludesfile")) {
    pairs.set("core.excludesfile", NOWHERE);
  }
  if (ignored !== undefined) pairs.set("core.excludesfile", ignored);
  if (lineEndings !== undefined) pairs.set("core.autocrlf", lineEndings);
  return [...pairs];
}

function overridesOf(key: string): readonly Pair[] {
  if (isHarmless(key)) return [];
  const { section, middle, name } = partsOf(key);
  if (section === "extensions") return [];
  const exact = middle === undefined ? OVERRIDES.get(key) : undefined;
  if (exact !== undefined) return exact;
  const overridesByName = middle === undefined
    ? undefined
    : OVERRIDES.get(`${section}.*`) ?? OVERRIDES.get(`${section}.*.${name}`);
  return overridesByName?.map(([last, value]) => [`${section}.${middle}.${last}`, value]) ??
    [[key, ""]];
}

function isHarmless(key: string): boolean {
  const { section, middle, name } = partsOf(key);
  return FIXED_KEYS.has(key) || HARMLESS.has(section) ||
    HARMLESS.has(middle === undefined ? key : `${section}.*.${name}`);
}

function isKnownExtension(key: string, value: string): boolean {
  const { middle, name } = partsOf(key);
  return middle === undefined && EXTENSIONS.get(name)?.test(value) === true;
}

function partsOf(key: string) {
  const [, section = "", middle, name = ""] = /^([^.]*)\.(?:(.*)\.)?([^.]*)$/s.exec(key) ?? [];
  return { section, middle, name };
}

function prefixed(section: string, names: string): string[] {
  return names.split(" ").map((name) => `${section}.${name}`);
}

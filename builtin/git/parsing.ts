/**
 * Parses the output of git.
 *
 * @module
 */

/** A path that changed. */
export interface Change {
  readonly path: string;
  /** The path before a rename. */
  readonly from?: string;
  readonly status: string;
  readonly additions?: number;
  readonly deletions?: number;
}

/** One path of `status`. */
export interface Entry {
  readonly path: string;
  /** The path in git's own quoting. */
  readonly raw: string;
  readonly from?: string;
  /** Two letters: the change in the index and the change in the work tree. */
  readonly code: string;
  readonly staged?: string;
  readonly unstaged?: string;
}

/** The branch, its upstream and the number of stashes, from `status`. */
export interface BranchState {
  readonly branch: string | null;
  readonly commit: string | null;
  readonly upstream?: string;
  readonly ahead?: number;
  readonly behind?: number;
  readonly stashes: number;
}

const CHANGE_WORDS: Readonly<Record<string, string>> = {
  M: "modified",
  T: "type changed",
  A: "added",
  D: "deleted",
  R: "renamed",
  C: "copied",
  U: "conflict",
  "?": "untracked",
  "!": "ignored",
};
const ESCAPES: Readonly<Record<string, number>> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13 };

/** Returns a name without git's quoting. A name that is not UTF-8 stays quoted. */
export function unquote(name: string): string {
  if (!name.startsWith('"')) return name;
  const bytes = [...name.slice(1, -1).matchAll(/\\([0-7]{3})|\\(.)|[^\\]/gs)].map(
    ([sign, octal, escaped]) =>
      octal === undefined
        ? escaped === undefined ? sign.charCodeAt(0) : ESCAPES[escaped] ?? escaped.charCodeAt(0)
        : parseInt(octal, 8),
  );
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(new Uint8Array(bytes));
  } catch {
    return name; // its bytes are not UTF-8; the quoted name can be shown
  }
}

/** Quotes a name that contains control characters or line ends. */
export function onOneLine(name: string): string {
  return /[\p{C}\u2028\u2029]/u.test(name) ? JSON.stringify(name) : name;
}

/** Parses `status --porcelain=v2`. */
export function entriesOf(text: string): Entry[] {
  return text.split("\n").flatMap((line) => {
    const kind = line[0] ?? "";
    const fields = "12u".includes(kind || "-") ? { 1: 8, 2: 9, u: 10 }[kind] ?? 0 : 1;
    if (!/^[12u?!] /.test(line)) return [];
    const parts = line.split(" ");
    const [raw = "", from] = parts.slice(fields).join(" ").split("\t");
    const code = fields === 1 ? kind + kind : parts[1]?.replaceAll(".", " ") ?? "  ";
    const path = unquote(raw);
    const entry = { path, raw, code, ...(from !== undefined && { from: unquote(from) }) };
    if (kind === "u") return [{ ...entry, unstaged: "conflict" }];
    const [staged, unstaged] = [CHANGE_WORDS[code[0] ?? ""], CHANGE_WORDS[code[1] ?? ""]];
    if (fields === 1) return [{ ...entry, unstaged }];
    return [{ ...entry, ...(staged && { staged }), ...(unstaged && { unstaged }) }];
  });
}

/** Parses the lines of `status --porcelain=v2 --branch --show-stash` that begin with `#`. */
export function branchStateOf(text: string): BranchState {
  const headerOf = (key: string) => new RegExp(`^# ${key} (.*)$`, "m").exec(text)?.[1];
  const [, ahead, behind] = /^\+(\d+) -(\d+)$/.exec(headerOf("branch.ab") ?? "") ?? [];
  const [branch = "", oid = ""] = [headerOf("branch.head"), headerOf("branch.oid")];
  const upstream = headerOf("branch.upstream");
  return {
    branch: branch === "(detached)" ? null : branch,
    commit: oid === "(initial)" ? null : oid,
    ...(upstream !== undefined && { upstream }),
    ...(ahead !== undefined && { ahead: Number(ahead), behind: Number(behind) }),
    stashes: Number(headerOf("stash") ?? 0),
  };
}

/** Parses `--raw --numstat --patch`: the paths that changed, and the patch. */
export function changesOf(
  text: string,
): { readonly files: readonly Change[]; readonly patch: string } {
  const lines = text.split("\n");
  const firstWithout = (test: RegExp, from: number) => {
    const end = lines.findIndex((line, at) => at >= from && !test.test(line));
    return end < 0 ? lines.length : end;
  };
  const begin = firstWithout(/^$/, 0);
  const rawEnd = firstWithout(/^:/, begin);
  const numEnd = firstWithout(/^(\d+|-)\t(\d+|-)\t/, rawEnd);
  const counts = lines.slice(rawEnd, numEnd).map((line) => line.split("\t"));
  const raws = lines.slice(begin, rawEnd).map((line) => line.split("\t"));
  const files = raws.map(([head = "", name = "", to], index): Change => {
    const letter = /([A-Z])[A-Z]*\d*$/.exec(head)?.[1] ?? "";
    // The counts write a renamed path in another form, so it is found by its position.
    const count = counts.findLast(([, , path]) => path === name) ??
      (to !== undefined && counts.length === raws.length ? counts[index] : undefined);
    const [additions, deletions] = [Number(count?.[0]), Number(count?.[1])];
    return {
      path: unquote(to ?? name),
      ...(to !== undefined && { from: unquote(name) }),
      status: CHANGE_WORDS[letter] ?? letter,
      ...(count !== undefined && count[0] !== "-" && { additions, deletions }),
    };
  });
  // Git lists a path in conflict twice, once for each side.
  const seen = new Set<string>();
  const once = files.filter(({ path }) => !seen.has(path) && seen.add(path));
  return { files: once, patch: lines.slice(numEnd).join("\n").replace(/^\n+/, "").trimEnd() };
}

/** Splits a text into records of `size` fields. Each field ends with NUL. */
export function records(text: string, size: number): string[][] {
  const fields = text.split("\0");
  const count = Math.floor(fields.length / size);
  return Array.from({ length: count }, (_, at) => fields.slice(at * size, (at + 1) * size));
}

/**
 * Walks through folders, and matches names with patterns.
 *
 * @module
 */

import type { Host } from "./call.ts";
import { actionText, fail, quoted, reportStep, withReason } from "./failure.ts";

/** The maximum number of entries in a result. */
export const MAX_ENTRIES = 5_000;
/** The maximum number of entries that `directory_tree` counts. */
export const MAX_COUNTED = 100_000;
/** Folders at this depth are not opened. */
const MAX_DEPTH = 100;

type Test = (text: string) => boolean;

/** Returns the entries of a folder, sorted by name. */
export async function entriesOf(path: string) {
  const entries = await withReason(actionText("list", path), Array.fromAsync(Deno.readDir(path)));
  return entries.sort((a, b) => a.name < b.name ? -1 : 1);
}

/** Returns the line of an entry in a list. */
export function entryLine({ name, isSymlink, isDirectory }: Deno.DirEntry): string {
  return `[${isSymlink ? "LINK" : isDirectory ? "DIR" : "FILE"}] ${escapeName(name)}`;
}

/**
 * Escapes line breaks and control characters of a name, because otherwise one name could look like
 * two entries.
 */
export function escapeName(name: string): string {
  return name.replace(/[\p{Cc}\u2028\u2029]/gu, encodeURIComponent);
}

/** Returns a size with its unit. */
export function sizeText(bytes: number): string {
  const power = Math.min(4, Math.floor(Math.log2(bytes || 1) / 10));
  const unit = ["B", "KB", "MB", "GB", "TB"][power];
  return `${power === 0 ? bytes : (bytes / 1024 ** power).toFixed(2)} ${unit}`;
}

/** Returns the first rows of a list, and the number of omitted rows. */
export function limitRows(rows: readonly string[]): string[] {
  return addNotes(rows.slice(0, MAX_ENTRIES), rows.length - MAX_ENTRIES);
}

/** Adds the number of omitted rows, and of folders that could not be opened. */
export function addNotes(rows: string[], more: number, closedCount = 0): string[] {
  if (more > 0) rows.push(`${more}${more < MAX_COUNTED - MAX_ENTRIES ? "" : "+"} more not shown`);
  if (closedCount > 0) rows.push(`${closedCount} folders could not be opened`);
  return rows;
}

/** Returns a path or a pattern with `/` between its names. */
export function toSlashes(path: string, os = Deno.build.os): string {
  return os === "windows" ? path.replaceAll("\\", "/") : path;
}

/** Joins a folder and a name with `/`, also on Windows. */
export function join(folder: string, name: string): string {
  if (folder === "." || folder === "") return name;
  const plain = toSlashes(folder);
  return plain.endsWith("/") ? plain + name : `${plain}/${name}`;
}

/** Returns the URI of a real path, which begins with a drive on Windows and with `/` elsewhere. */
export function fileUri(path: string): string {
  const [drive = "", ...names] = path.split("/");
  return ["file://", drive && `/${drive}`, ...names.map((name) => `/${encodeURIComponent(name)}`)]
    .join("");
}

/**
 * Visits everything below a folder, level by level, without following links, until `visit` returns
 * false. Returns the number of folders that could not be opened or are too deep.
 */
export async function walk(
  root: string,
  { excludePatterns, host }: { readonly host: Host; readonly excludePatterns: readonly string[] },
  visit: (path: string, entry: Deno.DirEntry) => boolean,
): Promise<number> {
  const skip = excludePatterns.map((text) => compileGlob(text.includes("*") ? text : `**/${text}`));
  const folders = [""];
  let [visited, closedCount] = [0, 0];
  for (const folder of folders) {
    const entries = await entriesOf(folder ? join(root, folder) : root).catch((error) => {
      if (folder === "") throw error;
      closedCount++;
      return [];
    });
    for (const entry of entries) {
      reportStep(host, visited++);
      const path = join(folder, entry.name);
      if (skip.some((isMatch) => isMatch(path))) continue;
      if (!visit(path, entry)) return closedCount;
      if (!entry.isDirectory) continue;
      if (path.split("/").length < MAX_DEPTH) folders.push(path);
      else closedCount++;
    }
  }
  return closedCount;
}

/** Compiles a glob to a test of a path. `a/**` matches everything below `a`, but not `a` itself. */
export function compileGlob(pattern: string): Test {
  const forms = expandBraces(toSlashes(pattern)).map((form) => {
    const parts = form.split("/").filter((part) => part !== "" && part !== ".");
    if (parts.at(-1) === "**") parts.push("*");
    return parts.map((part) => part === "**" ? undefined : compileSegment(part));
  });
  return (path) => {
    const names = path.split("/");
    return forms.some((form) => matches(form, names));
  };
}

/** Expands `{a,b}` to one pattern for each choice. */
function expandBraces(pattern: string): string[] {
  const forms = [pattern];
  for (let at = 0; at < forms.length;) {
    if (forms.length > 1_000) throw fail(`Cannot use ${quoted(pattern)}`, "it has too many braces");
    const [all, choices] = /\{([^{},]*,[^{}]*)\}/.exec(forms[at] ?? "") ?? [];
    const form = forms[at++];
    if (form === undefined || all === undefined || choices === undefined) continue;
    forms.splice(--at, 1, ...choices.split(",").map((choice) => form.replace(all, () => choice)));
  }
  return forms;
}

function compileSegment(text: string): Test {
  if (!/[*?]/.test(text)) return (name) => name === text;
  const tests = Array.from(
    text,
    (sign): Test | undefined =>
      sign === "*" ? undefined : (found) => sign === "?" || sign === found,
  );
  return (name) => matches(tests, [...name]);
}

/**
 * Matches items with tests; `undefined` matches any run of items. Only the latest run is extended, so
 * the time is at most the product of both lengths.
 */
export function matches(tests: readonly (Test | undefined)[], items: readonly string[]): boolean {
  let [testIndex, runIndex, runEnd] = [0, -1, 0];
  for (let itemIndex = 0; itemIndex < items.length;) {
    const test = tests[testIndex];
    if (test?.(items[itemIndex] ?? "")) {
      testIndex++;
      itemIndex++;
    } else if (testIndex < tests.length && test === undefined) {
      runIndex = testIndex++;
      runEnd = itemIndex;
    } else if (runIndex >= 0) {
      testIndex = runIndex + 1;
      itemIndex = ++runEnd;
    } else return false;
  }
  return tests.slice(testIndex).every((test) => test === undefined);
}

/**
 * The built-in module `filesystem`. It reads, edits, lists, finds and moves files of the workspace.
 *
 * @module
 */

import type { Args, Host } from "./call.ts";
import {
  applyEdit,
  diffRows,
  type Draft,
  linesOf,
  toHunks,
  trackOrigins,
  withEndings,
} from "./editing.ts";
import {
  actionText,
  fail,
  ignoreMissing,
  NO_FOLDER,
  NOT_TEXT,
  quoted,
  reportStep,
  withAccessCheck,
  withReason,
} from "./failure.ts";
import {
  assertRegularFile,
  decode,
  MAX_BYTES,
  PROBE,
  readBytes,
  readLines,
  readPart,
  readText,
} from "./reading.ts";
import {
  addNotes,
  compileGlob,
  entriesOf,
  entryLine,
  escapeName,
  fileUri,
  join,
  limitRows,
  MAX_COUNTED,
  MAX_ENTRIES,
  sizeText,
  toSlashes,
  walk,
} from "./walking.ts";
import { findTarget, oneAtATime, replaceFile } from "./writing.ts";

/** Reads a text file, or its first or last lines. */
export async function read_file({ path, head, tail }: Args) {
  const what = actionText("read", path);
  if (head === undefined && tail === undefined) return await readText(what, path);
  if (head !== undefined && tail !== undefined) throw fail(what, "give head or tail, not both");
  const openFile = () => Deno.open(path);
  await assertRegularFile(what, path, async () => (await openFile()).close());
  const file = await withReason(what, openFile());
  try {
    if ((await readPart(file, { at: 0, length: PROBE })).includes(0)) throw fail(what, NOT_TEXT);
    return decode(what, await readLines(what, file, { head, tail })).replace(/\r?\n$/, "");
  } finally {
    file.close();
  }
}

export { read_file as read_text_file };

const MIME = "png=image/png jpg=image/jpeg jpeg=image/jpeg gif=image/gif webp=image/webp " +
  "bmp=image/bmp svg=image/svg+xml avif=image/avif mp3=audio/mpeg wav=audio/wav ogg=audio/ogg " +
  "flac=audio/flac m4a=audio/mp4 pdf=application/pdf mp4=video/mp4 webm=video/webm";

/** Reads a file as base64: an image, audio, or any other file as an embedded resource. */
export async function read_media_file({ path }: Args) {
  const blob = (await readBytes(actionText("read", path), path)).toBase64();
  const extension = /\.(\w+)$/.exec(path)?.[1] ?? "-";
  const mimeType = new RegExp(`\\b${extension}=(\\S+)`, "i").exec(MIME)?.[1] ??
    "application/octet-stream";
  const type = mimeType.slice(0, 5);
  if (type === "image" || type === "audio") return { content: [{ type, data: blob, mimeType }] };
  const uri = fileUri(await Deno.realPath(path));
  return { content: [{ type: "resource", resource: { uri, mimeType, blob } }] };
}

/** Reads several text files. The error of a file replaces its text. */
export async function read_multiple_files({ paths }: Args, host: Host) {
  const parts: string[] = [];
  let limit = MAX_BYTES;
  for (const path of paths) {
    reportStep(host, parts.length);
    try {
      const text = await readText(actionText("read", path), path, limit);
      limit -= text.length;
      parts.push(`${path}:\n${text}\n`);
    } catch (error) {
      parts.push(`${path}: Error - ${error instanceof Error ? error.message : error}`);
    }
  }
  return parts.join("\n---\n");
}

/** Lists a folder. */
export async function list_directory({ path }: Args) {
  return limitRows((await entriesOf(path)).map(entryLine)).join("\n") || "The folder is empty";
}

/** Lists a folder with the size of each file. */
export async function list_directory_with_sizes({ path, sortBy }: Args, host: Host) {
  const rows: { readonly text: string; readonly size: number }[] = [];
  let [files, folders, sum] = [0, 0, 0];
  for (const entry of await entriesOf(path)) {
    reportStep(host, rows.length);
    // A file that was removed meanwhile, or that cannot be read, has no size.
    const stat = entry.isFile && await Deno.lstat(join(path, entry.name)).catch(() => undefined);
    const size = stat ? stat.size : 0;
    rows.push({ text: entryLine(entry) + (stat ? ` ${sizeText(size)}` : ""), size });
    if (entry.isDirectory) folders++;
    else files++;
    sum += size;
  }
  if (sortBy === "size") rows.sort((a, b) => b.size - a.size);
  const total = `\nTotal: ${files} files, ${folders} directories\nCombined size: ${sizeText(sum)}`;
  return [...limitRows(rows.map(({ text }) => text)), total].join("\n");
}

/** Patterns that are left out below a folder. A folder such as `.git` can be listed itself. */
const NOISE = [".git", "**/.git"];

/** Shows everything below a folder as JSON. If the limit is reached, deeper levels are left out. */
export async function directory_tree({ path, excludePatterns = [] }: Args, host: Host) {
  const tree: object[] = [];
  const folders = new Map([["", tree]]);
  let count = 0;
  const closedCount = await walk(
    path,
    { excludePatterns: [...NOISE, ...excludePatterns], host },
    (treePath, entry) => {
      if (++count > MAX_ENTRIES) return count < MAX_COUNTED;
      const { name, isDirectory, isSymlink } = entry;
      const type = isSymlink ? "link" : isDirectory ? "directory" : "file";
      const children: object[] | undefined = isDirectory ? [] : undefined;
      folders.get(treePath.slice(0, -name.length - 1))?.push({ name, type, children });
      if (children !== undefined) folders.set(treePath, children);
      return true;
    },
  );
  const [json = "", ...more] = addNotes([JSON.stringify(tree)], count - MAX_ENTRIES, closedCount);
  if (more.length === 0) return json;
  // The notes are a separate block, so that the first block is valid JSON.
  return { content: [{ type: "text", text: json }, { type: "text", text: more.join("\n") }] };
}

/** Finds files and folders by a glob over their paths below a folder. */
export async function search_files({ path, pattern, excludePatterns = [] }: Args, host: Host) {
  const isMatch = compileGlob(pattern);
  const rows: string[] = [];
  let count = 0;
  const closedCount = await walk(
    path,
    { excludePatterns: [...NOISE, ...excludePatterns], host },
    (below) => {
      if (isMatch(below) && ++count <= MAX_ENTRIES) rows.push(escapeName(join(path, below)));
      return true;
    },
  );
  const deeper = pattern.includes("**") ? "" : `; try **/${pattern}`;
  if (count === 0) rows.push(`No matches found${deeper}`);
  return addNotes(rows, count - MAX_ENTRIES, closedCount).join("\n");
}

/** Shows the type, size, times and mode of a file, a folder or a link. */
export async function get_file_info({ path }: Args) {
  const stat = await withReason(actionText("look at", path), Deno.lstat(path));
  return {
    type: stat.isSymlink ? "link" : stat.isDirectory ? "directory" : stat.isFile ? "file" : "other",
    size: stat.size,
    created: stat.birthtime?.toISOString(),
    modified: stat.mtime?.toISOString(),
    accessed: stat.atime?.toISOString(),
    permissions: stat.mode === null ? undefined : (stat.mode & 0o777).toString(8).padStart(3, "0"),
  };
}

/** Returns the path of the workspace. */
export function list_allowed_directories(_args: Args, host: Host) {
  return `Allowed directories:\n${host.workspace}`;
}

/** Creates a file, or replaces its whole content in one step. */
export async function write_file({ path, content }: Args, host: Host) {
  const what = actionText("write", path);
  const file = await findTarget(what, path);
  return await oneAtATime(file.path, async () => {
    host.signal?.throwIfAborted();
    const bytes = await replaceFile(what, file, content);
    const size = `${bytes} byte${bytes === 1 ? "" : "s"}`;
    return `Wrote ${size} to ${path} (${file.exists ? "replaced" : "new file"})`;
  });
}

/** Replaces parts of a text file, all edits or none, and returns the diff. */
export async function edit_file({ path, edits, dryRun }: Args, host: Host) {
  const what = actionText("edit", path);
  const file = await findTarget(what, path);
  return await oneAtATime(file.path, async () => {
    const raw = await readText(what, file.path);
    const before = linesOf(raw.replaceAll("\r\n", "\n"));
    let draft: Draft = { lines: before, origins: before.map((_, index) => index) };
    for (const [index, edit] of edits.entries()) {
      const which = edits.length === 1 ? what : `${what}: edit ${index + 1} of ${edits.length}`;
      draft = trackOrigins(draft, applyEdit(which, draft.lines.join(""), edit));
    }
    host.signal?.throwIfAborted();
    const diff = toHunks(diffRows(before, draft));
    if (diff.length === 0) return `No change: ${path} has this text already`;
    if (!dryRun) await replaceFile(what, file, withEndings(raw, draft));
    return limitRows([`--- ${path}`, `+++ ${path}`, ...diff]).join("\n");
  });
}

/** Creates a folder and its parents. */
export async function create_directory({ path }: Args) {
  const reasons = { AlreadyExists: "it exists and is not a folder" };
  await withReason(actionText("create", path), Deno.mkdir(path, { recursive: true }), reasons);
  return `The folder ${path} is there`;
}

/** Moves or renames a file or folder. The destination must not exist. */
export async function move_file({ source, destination }: Args) {
  const what = `${actionText("move", source)} to ${quoted(destination)}`;
  await withReason(what, withAccessCheck(Deno.lstat(source), () => Deno.rename(source, source)));
  if (await withReason(what, Deno.lstat(destination).catch(ignoreMissing))) {
    throw fail(what, "the destination exists already");
  }
  const reasons = { NotFound: NO_FOLDER, EINVAL: "a folder cannot move into itself" };
  await withReason(what, Deno.rename(source, destination), reasons);
  return `Moved ${source} to ${destination}`;
}

/** Removes a file, or a link without its target. */
export async function remove_file({ path }: Args) {
  const what = actionText("remove", path);
  const { isDirectory } = await withReason(
    what,
    withAccessCheck(Deno.lstat(path), () => Deno.remove(path)),
  );
  if (isDirectory) throw fail(what, "it is a folder; use remove_directory");
  await withReason(what, Deno.remove(path));
  return `Removed ${path}`;
}

/** Removes an empty folder, or a folder with its content if `recursive` is set. */
export async function remove_directory({ path, recursive = false }: Args, host: Host) {
  const what = actionText("remove", path);
  // With a slash or a dot at the end, the path of a link would mean its target.
  const withoutSlash = toSlashes(path).replace(/(?<=[^/])(\/\.?)+$/, "");
  const { isDirectory } = await withReason(
    what,
    withAccessCheck(Deno.lstat(withoutSlash), () => Deno.remove(withoutSlash)),
  );
  if (!isDirectory) throw fail(what, "it is not a folder; use remove_file");
  const [real, root] = [await Deno.realPath(withoutSlash), await Deno.realPath(host.workspace)];
  if (`${root}/`.startsWith(`${real}/`)) throw fail(what, "it contains the workspace");
  if (!recursive && (await entriesOf(real)).length > 0) {
    throw fail(what, "it is not empty; set recursive to delete all of it");
  }
  await withReason(what, Deno.remove(real, { recursive }));
  return `Removed ${path}`;
}

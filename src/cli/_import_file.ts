/**
 * Edits the file that `pml import` writes, keeps a copy of the old file, and puts it back on
 * `--undo`.
 *
 * @module
 */

import { basename, dirname, join } from "node:path";
import type { App } from "../app/app.ts";
import type { ServerDefinition } from "../servers/kind.ts";
import { FILE_NAME } from "../config/workspace.ts";
import { sha256 } from "../core/hash.ts";
import { defined, objectOf, textOf } from "../core/json.ts";
import { isInside } from "../io/place.ts";
import { containsKnownKey } from "../core/key_kinds.ts";
import { isRandom, isSecretName } from "../core/secret_words.ts";
import { readPlainText, unlessGone, writePrivate } from "../io/private_files.ts";
import { withValue } from "./_client_file.ts";
import { recordAction } from "./_command_context.ts";
import { usage } from "./_failure.ts";
import { backUp, fileNotChanged, place, readInside, type TextFile } from "./_files.ts";
import { type YamlSetting, yamlWith } from "../config/yaml_text.ts";

/** A file that is to be edited. `found` is undefined if it does not exist yet. */
export interface TargetFile {
  readonly path: string;
  readonly found: TextFile | undefined;
}

/** A server that was taken out of a client's file: its name in PML, and its path of keys there. */
export interface MovedServer {
  readonly name: string;
  readonly key: readonly string[];
}

/** One edit, as it is recorded in the PML home so that it can be undone. */
interface ImportRecord {
  /** The path of the copy of the old file, and the old file's hash; null if there was no file. */
  readonly backup: string | null;
  readonly before: string | null;
  readonly after: string;
  /** Whether the old file was trusted. */
  readonly trusted: boolean;
  /** Set if the edit took imported servers out of a client's file. */
  readonly isMove?: boolean;
  /** The servers that a move took out. */
  readonly moved?: readonly MovedServer[];
  /** The names of the servers that the edit added. */
  readonly added?: readonly string[];
  /** The clients' files that have the added servers. */
  readonly from?: readonly string[];
  /** The built-in servers that the import denied. */
  readonly denied?: readonly string[];
  /** The names of servers in whose place the user wanted built-in ones. */
  readonly doubles?: readonly string[];
  /** The definition that the edit replaced, if it was no import. */
  readonly replaced?: ReplacedEntry;
}

/** A definition that another one of the name `name` replaced. */
export interface ReplacedEntry {
  readonly name: string;
  /** The section that has the new definition. */
  readonly into: SectionName;
  /** The place of the earlier definition. */
  readonly section: SectionName;
  readonly title: string;
}

/** A name and its text, in JSON, TOML or YAML. */
const VALUE = /["']?([\w.-]{1,64})["']?\s{0,8}[:=]\s{0,8}["']?([^"'\s,]{6,400})/g;

type ServerEntries = Readonly<Record<string, unknown>>;

/** The sections that define servers. */
export const SECTIONS = ["private_mcps", "mcpServers"] as const;
/** The name of such a section. */
export type SectionName = (typeof SECTIONS)[number];
const NEW_WORKSPACE = '{\n  "version": 1\n}\n';

/** Finds the user's `config.yaml`, or the workspace file. */
export async function findTarget(app: App, workspace: boolean): Promise<TargetFile> {
  const path = workspace ? app.policy.rulesFile : app.loaded().person.path;
  await Deno.mkdir(app.config().home, { recursive: true, mode: 0o700 });
  return await readTarget(path);
}

/** Reads a file that is to be edited. Throws if it is a link, or is not in the folder `inside`. */
export async function readTarget(path: string, inside?: string): Promise<TargetFile> {
  const folder = await Deno.realPath(dirname(path));
  // guard: client-file-elsewhere
  if (inside !== undefined && !isInside(inside, folder)) {
    throw fileNotChanged(path, "it lies elsewhere");
  }
  if (!(await Deno.stat(folder)).isDirectory) throw fileNotChanged(path, "its folder is a file");
  const own = join(folder, basename(path));
  const found = await readInside(folder, basename(path));
  if (found !== undefined && found.path !== own) throw fileNotChanged(path, "it is a link");
  return { path: own, found };
}

/** Returns the servers that a file defines. */
export async function presentServers(target: TargetFile): Promise<ServerEntries> {
  const value = objectOf(await valueIn(target));
  return Object.assign({}, ...SECTIONS.map((name) => objectOf(value[name])));
}

/** Finds where a server is defined: the workspace's file goes before the user's. */
export async function definedIn(app: App, { name, title = name }: ServerDefinition) {
  const { file, person } = app.loaded();
  const defines = (one: { readonly name: string }) => one.name === name;
  const workspace = file?.servers.some(defines) === true || !person.servers.some(defines);
  const target = await findTarget(app, workspace);
  const value = objectOf(await valueIn(target));
  const section = SECTIONS.find((one) => Object.hasOwn(objectOf(value[one]), title));
  return { workspace, target, title, section };
}

/**
 * Adds servers to a file. The file keeps the trust that it had; a new workspace file is trusted.
 */
export async function addServers(
  app: App,
  target: TargetFile,
  { servers, ...source }: Pick<ImportRecord, "from" | "denied" | "doubles"> & {
    readonly servers: ServerEntries;
  },
): Promise<string> {
  const { path, found } = target;
  const text = await textWith(target, [{ at: ["mcpServers"], entry: servers, adds: true }]);
  const added = Object.keys(servers);
  const { backup, trusted } = await editFile(app, target, { text, added, ...source });
  if (found === undefined) return "created";
  const but = trusted || !isTrustable(path) || app.config().trusted ? "" : "; it is not trusted";
  return `changed; the file before is ${backup}${but}`;
}

/**
 * Writes the new text of a file so that it can be undone: a copy of the old one is kept. Returns
 * the path of the copy, and whether the old text was trusted.
 */
export async function editFile(
  app: App,
  { path, found }: TargetFile,
  { text, mode, ...about }:
    & Omit<ImportRecord, "backup" | "before" | "after" | "trusted">
    & { readonly text: string; readonly mode?: number },
): Promise<{ readonly backup: string | undefined; readonly trusted: boolean }> {
  const { store } = app.policy;
  return await store.whileEditing(path, async () => {
    const [before, after] = [hashOf(found), sha256(text)];
    const trusted = before !== null && await store.isTrusted(path, before);
    const earlier = editsOf(app, path);
    const hasKey = found !== undefined && containsSecret(app, found.text);
    const backup = found && await backUp(found, { elsewhere: backupFolder(app), hasKey });
    const done = { backup: backup ?? null, before, after, trusted, ...about };
    try {
      await keepDone(app, path, [...earlier, done]);
      if (found !== undefined) await replace(app, { path, found, text, trusted });
      else await make(app, { path, text, ...defined({ mode }) });
    } catch (error) {
      // Nothing was written, so there is nothing to undo. On a full disk the record stays as it is,
      // and needs its copy if it is a new one.
      await keepDone(app, path, earlier).catch(() => {});
      const isOpen = editsOf(app, path).length > earlier.length;
      if (backup !== undefined && !isOpen) await Deno.remove(backup);
      throw error;
    }
    return { backup, trusted };
  });
}

/** The undo of an edit: a text that describes it, and the function that performs it. */
export interface FileUndo {
  readonly path: string;
  readonly said: string;
  readonly run: () => Promise<string>;
}

/** Returns whether the last edit of a file replaced a server. */
export function isReplacement(app: App, path: string): boolean {
  return editsOf(app, path).at(-1)?.replaced !== undefined;
}

/** Returns whether the last edit of a file can be undone: a move of servers, or another edit. */
export function canUndo(app: App, path: string, isMove = false): boolean {
  const last = editsOf(app, path).at(-1);
  return last !== undefined && (last.isMove ?? false) === isMove;
}

/** The edit that `findUndo()` finds, and the part of it. */
interface UndoScope {
  /** The name of the edit. */
  readonly what?: string;
  /** Removes the added entries from a text, for a file whose other parts were changed since. */
  readonly without?: ((text: string) => Promise<string>) | undefined;
  /** Puts only a part of the servers of a move back. */
  readonly part?: MovePart | undefined;
}

/**
 * Finds the last edit of a file; `what` names it. Returns a text that describes an undo, and the
 * function that performs it.
 */
export async function findUndo(
  app: App,
  target: TargetFile,
  { what: named = "the import", without, part }: UndoScope = {},
): Promise<FileUndo> {
  const { path, found } = target;
  const all = editsOf(app, path);
  const last = all.at(-1);
  if (last === undefined) {
    throw usage(`Cannot undo: no import wrote ${path}`, "`--workspace` undoes one into .pml.json");
  }
  const { backup, before, after, replaced } = last;
  const what = replaced === undefined ? named : `the replacement of ${replaced.name}`;
  const now = hashOf(found);
  // guard: undo-changed
  if (now !== after && now !== before) {
    // A workspace file that the user does not trust is not edited.
    const isOpen = !isTrustable(path) ||
      found !== undefined && await app.policy.store.isTrusted(path, sha256(found.text));
    const remaining = async (text: string) =>
      isOpen && replaced !== undefined
        ? await withEarlier(target, last)
        : last.added === undefined || !isOpen
        ? await without?.(text)
        : await withoutAdded(target, last.added);
    const rest = found && await remaining(found.text).catch(() => undefined);
    if (found !== undefined && rest !== undefined) {
      return undoOfPart(app, { path, present: found, rest, all, what });
    }
    const kept = backup === null ? "there was no file" : `the file is ${backup}`;
    throw fileNotChanged(path, `it was changed after ${what}; before it, ${kept}`);
  }
  const copy = backup === null ? undefined : await readInside(dirname(backup), basename(backup));
  // guard: undo-copy
  if (hashOf(copy) !== before) {
    throw fileNotChanged(backup ?? path, `it is not the file that was there before ${what}`);
  }
  if (part !== undefined && copy !== undefined && found !== undefined && now === after) {
    return undoOfMovePart(app, { path, present: found, copy, all, part });
  }
  const said = copy === undefined
    ? `${path} was made by ${what} and will be removed`
    : `${path} will be restored as it was before ${what}`;
  const run = () =>
    app.policy.store.whileEditing(path, async () => {
      if (editsOf(app, path).length !== all.length) {
        throw fileNotChanged(path, "it was changed meanwhile");
      }
      if (found !== undefined && now === after) {
        await putBack(app, { path, found, copy, last });
      }
      await keepDone(app, path, all.slice(0, -1));
      if (copy !== undefined) await Deno.remove(copy.path);
      return `${path}: ${copy === undefined ? "removed" : `as it was before ${what}`}`;
    });
  return { path, said, run };
}

/** The part of a move that is undone. */
export interface MovePart {
  /** The names of the servers that come back, for the user. */
  readonly names: string;
  /** The servers that stay out of the file. */
  readonly rest: readonly MovedServer[];
  /** Returns the text of the file before the move, without the servers of `rest`. */
  readonly textOf: (before: string) => Promise<string>;
}

/** Returns the undo of a part of a move. The record and the copy stay for the other servers. */
async function undoOfMovePart(
  app: App,
  { path, present, copy, all, part: { names, rest, textOf } }: {
    readonly path: string;
    readonly present: TextFile;
    readonly copy: TextFile;
    readonly all: readonly ImportRecord[];
    readonly part: MovePart;
  },
): Promise<FileUndo> {
  const text = await textOf(copy.text);
  const run = () =>
    app.policy.store.whileEditing(path, async () => {
      const [last] = editsOf(app, path).slice(all.length - 1);
      if (last === undefined || last.after !== all.at(-1)?.after) {
        throw fileNotChanged(path, "it was changed meanwhile");
      }
      await replace(app, { path, found: present, text, trusted: false });
      const open = { ...last, after: sha256(text), moved: rest };
      await keepDone(app, path, [...all.slice(0, -1), open]);
      return `${path}: ${names} put back`;
    });
  return { path, said: `${names} will be put back into ${path}`, run };
}

/** Returns the text of a file without servers that an import added. */
async function withoutAdded(target: TargetFile, names: readonly string[]): Promise<string> {
  const settings = names.map((name) => ({ at: ["mcpServers", name] as const, entry: undefined }));
  return await textWith(target, settings);
}

/**
 * Returns the text of a file with the definition that an edit replaced, from the copy of the old
 * file; undefined if the copy is another file.
 */
async function withEarlier(
  target: TargetFile,
  { backup, before, replaced }: ImportRecord,
): Promise<string | undefined> {
  if (backup === null || replaced === undefined) return undefined;
  const copy = await readInside(dirname(backup), basename(backup));
  if (hashOf(copy) !== before) return undefined;
  const { name, into, section, title } = replaced;
  const value = objectOf(await valueIn({ path: target.path, found: copy }));
  const entry = objectOf(value[section])[title];
  const isMoved = section !== into || title !== name;
  return await textWith(target, [
    ...isMoved ? [{ at: [into, name] as const, entry: undefined }] : [],
    { at: [section, title], entry },
  ]);
}

/** Returns the undo that removes only the part that PML added, because other parts changed since. */
function undoOfPart(
  app: App,
  { path, present, rest, all, what }: {
    readonly path: string;
    readonly present: TextFile;
    readonly rest: string;
    readonly all: readonly ImportRecord[];
    readonly what: string;
  },
): FileUndo {
  const isThere = rest !== present.text;
  const isReplaced = all.at(-1)?.replaced !== undefined;
  const part = isReplaced
    ? `only the definition before ${what} comes back`
    : `only the entries of ${what} will be removed`;
  const summary = isThere
    ? `${path} was changed since: ${part}`
    : isReplaced
    ? `${path} has the definition before ${what}`
    : `${path} no longer has the entries of ${what}`;
  const run = () =>
    app.policy.store.whileEditing(path, async () => {
      if (editsOf(app, path).length !== all.length) {
        throw fileNotChanged(path, "it was changed meanwhile");
      }
      const trusted = await app.policy.store.isTrusted(path, sha256(present.text));
      if (isThere) await replace(app, { path, found: present, text: rest, trusted });
      await keepDone(app, path, all.slice(0, -1));
      const { backup = null } = all.at(-1) ?? {};
      if (backup !== null) await Deno.remove(backup).catch(unlessGone);
      const did = isReplaced
        ? `the definition before ${what} is back`
        : `the entries of ${what} were removed`;
      return `${path}: ${isThere ? did : "unchanged"}`;
    });
  return { path, said: summary, run };
}

async function putBack(app: App, { path, found, copy, last }: {
  readonly path: string;
  readonly found: TextFile;
  readonly copy: TextFile | undefined;
  readonly last: ImportRecord;
}): Promise<void> {
  const { trusted } = last;
  if (copy !== undefined) return await replace(app, { path, found, text: copy.text, trusted });
  const again = await readInside(dirname(path), basename(path));
  if (again?.text !== found.text) throw fileNotChanged(path, "it was changed meanwhile");
  await app.policy.store.move(path, { from: last.after, to: [] });
  await Deno.remove(path);
  // The folder of a client, which was made for the file. One that is not empty stays.
  const folder = dirname(path);
  if (folder !== app.config().workspace) await Deno.remove(folder).catch(() => {});
}

/** Makes a file that does not exist. A workspace file that PML makes is trusted. */
export async function make(
  app: App,
  { path, text, shown, mode = isTrustable(path) ? 0o644 : 0o600 }: {
    readonly path: string;
    readonly text: string;
    /** The content of a workspace file, if it is shown to the user. */
    readonly shown?: readonly string[];
    readonly mode?: number;
  },
): Promise<void> {
  // Trust comes first, as for every file that PML makes.
  if (isTrustable(path)) {
    await app.policy.store.trust({ path, hash: sha256(text), servers: {}, shown });
  }
  await place(path, { text, mode });
  await recordAction({ app }, "file written", { path, after: sha256(text) });
}

/** Replaces the text of a file. The file keeps the trust that it had. */
export async function replace(app: App, { path, found, text, trusted }: {
  readonly path: string;
  readonly found: TextFile;
  readonly text: string;
  readonly trusted: boolean;
}): Promise<void> {
  const { store } = app.policy;
  const [from, to] = [sha256(found.text), sha256(text)];
  const write = () => place(path, { text, mode: found.mode, over: found.text });
  if (trusted) await store.whileWriting(path, { from, to }, write);
  else await write();
  await recordAction({ app }, "file written", { path, before: from, after: to });
}

function hashOf(file: TextFile | undefined): string | null {
  return file === undefined ? null : sha256(file.text);
}

function isTrustable(path: string): boolean {
  return basename(path) === FILE_NAME;
}

/** Returns the text of a file with these settings. A missing file counts as empty. */
export async function textWith(
  { path, found }: TargetFile,
  settings: readonly YamlSetting[],
): Promise<string> {
  if (!isTrustable(path)) return await yamlWith(found?.text ?? "", { path, settings });
  let text = found?.text ?? NEW_WORKSPACE;
  for (const setting of settings) text = await withValue(text, { path, ...setting });
  return text;
}

/** Returns the parsed value of a file; an empty object if there is no file. */
export async function valueIn({ path, found }: TargetFile): Promise<unknown> {
  if (found === undefined) return {};
  if (!isTrustable(path)) return (await import("yaml")).parse(found.text);
  return (await import("jsonc-parser")).parse(found.text.replace(/^\uFEFF/, ""));
}

function donePath(app: App, path: string): string {
  return join(app.config().home, "imports", `${sha256(path)}.json`);
}

/** Returns the edits of a file that can be undone, the last one at the end. */
export function editsOf(app: App, path: string): readonly ImportRecord[] {
  const file = donePath(app, path);
  let all: unknown;
  try {
    all = JSON.parse(readPlainText(file) ?? "[]");
  } catch {
    // Half a record is none.
  }
  // A copy is next to its file, or in the PML home. No other file replaces it, or is removed.
  const isDone = (one: unknown) => {
    const { backup, before } = objectOf(one);
    // guard: undo-outside
    if (backup === null) return before === null;
    return [dirname(path), backupFolder(app)].includes(dirname(textOf(backup)));
  };
  if (Array.isArray(all) && all.every(isDone)) return all;
  throw fileNotChanged(file, `it is not a record of PML's changes to ${path}`);
}

function backupFolder(app: App): string {
  return join(app.config().home, "backups");
}

/** Returns whether a text of a client's file may contain a key. */
function containsSecret(app: App, text: string): boolean {
  if (app.parts.redactor.redact(text) !== text || containsKnownKey(text)) return true;
  for (const [, name = "", value = ""] of text.matchAll(VALUE)) {
    if (isSecretName(name) && !value.includes("${")) return true;
    if (isRandom(value)) return true;
  }
  return false;
}

async function keepDone(app: App, path: string, all: readonly ImportRecord[]): Promise<void> {
  await writePrivate(donePath(app, path), all);
}

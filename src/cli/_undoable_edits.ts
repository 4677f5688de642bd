/**
 * Edits files of the user so that each edit can be undone: keeps a copy of the old file, and restores
 * it for `--undo`.
 *
 * @module
 */

import { basename, dirname, join } from "node:path";
import type { App } from "../app/app.ts";
import type { FileServers } from "../config/client_servers.ts";
import type { ServerDefinition } from "../servers/kind.ts";
import { FILE_NAME } from "../config/workspace.ts";
import { sha256 } from "../core/hash.ts";
import { objectOf, textOf, withoutUndefined } from "../core/json.ts";
import { serverSlug } from "../core/tool_id.ts";
import { isInside } from "../io/path_info.ts";
import { containsKnownKey } from "../core/key_kinds.ts";
import { isRandom, isSecretName } from "../core/secret_words.ts";
import { readPlainText, unlessGone, writePrivate } from "../io/private_files.ts";
import { withValue } from "./_client_file.ts";
import { recordAction } from "./_command_context.ts";
import { usage } from "./_failure.ts";
import { backUp, fileNotChanged, readInside, type TextFile, writeFile } from "./_files.ts";
import type { ShownEffect } from "../policy/multi_tool_rules.ts";
import type { ServerPins } from "../policy/pins.ts";
import type { RuleList } from "../policy/rule_lists.ts";
import { type YamlSetting, yamlWith } from "../config/yaml_text.ts";
import { loadYaml } from "../config/yaml.ts";

/** A file to edit. `found` is undefined if the file does not exist yet. */
export interface TargetFile {
  readonly path: string;
  readonly found: TextFile | undefined;
}

/** A server that was taken out of a client's file: its name in PML, and its path of keys there. */
export interface MovedServer {
  readonly name: string;
  readonly key: readonly string[];
  /** The path of PML's file that has the server. Earlier versions did not record it. */
  readonly file?: string;
}

/** The record of one edit in the PML home, with which it can be undone. */
interface EditRecord {
  /** The path of the edited file. Earlier versions did not record it. */
  readonly path?: string;
  /** The path of the copy of the old file; null if there was no file. */
  readonly backup: string | null;
  /** The hash of the old file; null if there was no file. */
  readonly before: string | null;
  /** The hash of the new file. */
  readonly after: string;
  /** Whether the old file was trusted. */
  readonly trusted: boolean;
  /** Set if the edit took imported servers out of a client's file. */
  readonly isMove?: boolean;
  /** The servers that a move took out. */
  readonly moved?: readonly MovedServer[];
  /** The names of the servers that the edit added. */
  readonly added?: readonly string[];
  /** The definitions of the added servers at the time of the import, by their names. */
  readonly definitions?: ServerEntries;
  /** The clients' files from which the servers were added. */
  readonly from?: readonly string[];
  /** The built-in servers that the import denied. */
  readonly denied?: readonly string[];
  /** The names of servers that were not added, because the user wanted built-in ones instead. */
  readonly doubles?: readonly string[];
  /** The definition that the edit replaced; undefined for an import. */
  readonly replaced?: ReplacedEntry;
  /** The rules and grants of earlier servers that were removed with the edit. */
  readonly ended?: readonly ServerRules[];
  /** The rules and grants of a replaced server that the user kept. Earlier versions did not record it. */
  readonly keptRules?: readonly ServerRules[];
  /** The pins of the replaced server. Earlier versions did not record them. */
  readonly pins?: ServerPins;
}

/** The rules and grants of a server in one file. */
export interface ServerRules {
  /** Whether they were in the workspace's file; otherwise in the user's. */
  readonly workspace: boolean;
  /** The path of the file. Earlier versions did not record it. */
  readonly path?: string;
  /** The effects that the user saw for allow rules of one answer. Recorded together with `path`. */
  readonly effects?: Readonly<Record<string, ShownEffect>>;
  readonly rules: Readonly<Partial<Record<RuleList, readonly string[]>>>;
  /** The grants, by the name of the server. */
  readonly grants: Readonly<Record<string, unknown>>;
}

/** A definition that was replaced by a new one. */
export interface ReplacedEntry {
  /** The name of the new definition. */
  readonly name: string;
  /** The section that contains the new definition. */
  readonly into: SectionName;
  /** The section of the earlier definition. */
  readonly section: SectionName;
  /** The name of the earlier definition. */
  readonly title: string;
}

/** Matches a name and its text in JSON, TOML or YAML. */
const NAMED_VALUE = /["']?([\w.-]{1,64})["']?\s{0,8}[:=]\s{0,8}["']?([^"'\s,]{6,400})/g;
type ServerEntries = Readonly<Record<string, unknown>>;

/** The sections that define servers. */
export const SECTIONS = ["private_mcps", "mcpServers"] as const;
/** The name of a section that defines servers. */
export type SectionName = (typeof SECTIONS)[number];
/** The text of a new workspace file. */
const NEW_WORKSPACE = '{\n  "version": 1\n}\n';

/** Finds the user's `config.yaml`, or the workspace file. */
export async function findTarget(app: App, workspace: boolean): Promise<TargetFile> {
  const path = workspace ? app.policy.rulesFile : app.loaded().userConfig.path;
  await Deno.mkdir(app.config().home, { recursive: true, mode: 0o700 });
  return await readTarget(path);
}

/** Reads a file for an edit. Throws if it is a link, or is not in the folder `inside`. */
export async function readTarget(path: string, inside?: string): Promise<TargetFile> {
  const folder = await Deno.realPath(dirname(path));
  // guard: client-file-elsewhere
  if (inside !== undefined && !isInside(inside, folder)) {
    throw fileNotChanged(path, "it lies elsewhere");
  }
  if (!(await Deno.stat(folder)).isDirectory) throw fileNotChanged(path, "its folder is a file");
  const realPath = join(folder, basename(path));
  const found = await readInside(folder, basename(path));
  if (found !== undefined && found.path !== realPath) throw fileNotChanged(path, "it is a link");
  return { path: realPath, found };
}

/** Returns the servers that a file defines. */
export async function presentServers(target: TargetFile): Promise<ServerEntries> {
  const value = objectOf(await parseTarget(target));
  return Object.assign({}, ...SECTIONS.map((name) => objectOf(value[name])));
}

/** Returns the definitions that imports added to a file, by name. Each import may add another one. */
export function importedDefinitions(
  app: App,
  { path }: TargetFile,
): ReadonlyMap<string, readonly unknown[]> {
  const all = readEdits(app, path).flatMap(({ definitions = {} }) => Object.entries(definitions));
  const byName = Map.groupBy(all, ([name]) => serverSlug(name));
  return new Map(
    [...byName].map(([name, entries]) => [name, entries.map(([, definition]) => definition)]),
  );
}

/** Returns the servers of a file, and those that imports added to it. */
export async function serversOf(app: App, target: TargetFile): Promise<Required<FileServers>> {
  return { definitions: await presentServers(target), imported: importedDefinitions(app, target) };
}

/**
 * Returns the servers of the workspace file; undefined if PML does not use or cannot read this file.
 * A server there has not been imported if the user does not trust the file.
 */
export async function workspaceServers(
  app: App,
): Promise<Required<FileServers> & { readonly path: string } | undefined> {
  try {
    const target = await findTarget(app, true);
    if (target.found === undefined || !await isInUse(app, target)) return undefined;
    return { path: target.path, ...await serversOf(app, target) };
  } catch {
    return undefined; // a command that edits the file reports the error
  }
}

/** Returns whether PML uses the servers of a file: not those of an untrusted workspace file. */
export async function isInUse(app: App, { path, found }: TargetFile): Promise<boolean> {
  if (!isWorkspaceFile(path) || found === undefined || app.config().trusted) return true;
  return await app.policy.store.isTrusted(path, sha256(found.text));
}

/** Finds the file and the section that define a server. The workspace's file goes before the user's. */
export async function findDefinition(app: App, { name, title = name }: ServerDefinition) {
  const { file, userConfig } = app.loaded();
  const defines = (definition: { readonly name: string }) => definition.name === name;
  const workspace = file?.servers.some(defines) === true || !userConfig.servers.some(defines);
  const target = await findTarget(app, workspace);
  const value = objectOf(await parseTarget(target));
  const section = SECTIONS.find((each) => Object.hasOwn(objectOf(value[each]), title));
  return { workspace, target, title, section };
}

/**
 * Adds servers to a file, and returns a text about it. The file stays trusted if it was trusted before;
 * a new workspace file is trusted.
 */
export async function addServers(
  app: App,
  target: TargetFile,
  { servers, ...source }: Pick<EditRecord, "from" | "denied" | "doubles" | "ended"> & {
    readonly servers: ServerEntries;
  },
): Promise<string> {
  const { path, found } = target;
  const text = await textWith(target, [{ at: ["mcpServers"], entry: servers, adds: true }]);
  const added = Object.keys(servers);
  const about = { added, definitions: servers, ...source };
  const { backup, trusted } = await editFile(app, target, { text, ...about });
  if (found === undefined) return "created";
  const isUntrusted = !trusted && isWorkspaceFile(path) && !app.config().trusted;
  return `changed; the file before is ${backup}${isUntrusted ? "; it is not trusted" : ""}`;
}

/**
 * Writes the new text of a file, and keeps a copy of the old file for an undo. Returns the path of the
 * copy, and whether the old text was trusted.
 */
export async function editFile(
  app: App,
  { path, found }: TargetFile,
  { text, mode, ...about }:
    & Omit<EditRecord, "path" | "backup" | "before" | "after" | "trusted">
    & { readonly text: string; readonly mode?: number },
): Promise<{ readonly backup: string | undefined; readonly trusted: boolean }> {
  const { store } = app.policy;
  return await store.whileEditing(path, async () => {
    const [before, after] = [hashOf(found), sha256(text)];
    const trusted = before !== null && await store.isTrusted(path, before);
    const earlier = readEdits(app, path);
    const hasKey = found !== undefined && containsSecret(app, found.text);
    const backup = found && await backUp(found, { elsewhere: backupFolder(app), hasKey });
    const edit = { path, backup: backup ?? null, before, after, trusted, ...about };
    try {
      await writeEdits(app, path, [...earlier, edit]);
      if (found !== undefined) await replaceFile(app, { path, found, text, trusted });
      else await createFile(app, { path, text, ...withoutUndefined({ mode }) });
    } catch (error) {
      // The file was not written, so the record of the edit is removed. On a full disk this can fail.
      // The record then stays, and its copy with it.
      await writeEdits(app, path, earlier).catch(() => {});
      const isRecorded = readEdits(app, path).length > earlier.length;
      if (backup !== undefined && !isRecorded) await Deno.remove(backup);
      throw error;
    }
    return { backup, trusted };
  });
}

/** The undo of an edit: a text that describes it, and the function that performs it. */
export interface FileUndo {
  readonly path: string;
  readonly summary: string;
  readonly run: () => Promise<string>;
}

/**
 * Returns the index of the last import into one of PML's files, or of the last replacement of a server
 * there; -1 if there is none.
 */
export function lastEditIndex(app: App, path: string, kind: "import" | "replacement"): number {
  const isReplacement = kind === "replacement";
  return readEdits(app, path)
    .findLastIndex(({ replaced }) => (replaced !== undefined) === isReplacement);
}

/** Returns whether the last edit of a file is a move of servers, or with `isMove: false` another edit. */
export function canUndo(app: App, path: string, isMove = false): boolean {
  const last = readEdits(app, path).at(-1);
  return last !== undefined && (last.isMove ?? false) === isMove;
}

/** The options of `findUndo()`. */
export interface UndoScope {
  /** The name of the edit for texts; by default "the import". */
  readonly editName?: string;
  /** Removes the added entries from a text. Called if other parts of the file changed after the edit. */
  readonly withoutEntries?: ((text: string) => Promise<string>) | undefined;
  /** The part of a move to undo; by default all. */
  readonly part?: MovePart | undefined;
  /** Whether the caller undoes all edits since the last move, which the summary then describes. */
  readonly undoesAll?: boolean;
  /** The folder of the file's project, which stays; by default that of the app. */
  readonly root?: string | undefined;
  /** Settings that the undo of a replacement also makes, if other parts of the file changed after it. */
  readonly more?: readonly YamlSetting[];
  /**
   * The index of the edit to undo; by default of the last one. If later edits follow it, the undo
   * changes only its own entries.
   */
  readonly index?: number;
}

/**
 * Finds the last edit of a file, or that of `index`. Returns a text that describes its undo, and the
 * function that performs the undo.
 */
export async function findUndo(
  app: App,
  target: TargetFile,
  { editName = "the import", withoutEntries, part, undoesAll = false, root, more = [], index = -1 }:
    UndoScope = {},
): Promise<FileUndo> {
  const { path, found } = target;
  const all = readEdits(app, path);
  const last = all.at(index);
  if (last === undefined) {
    throw usage(
      `Cannot undo: there is no import into ${path} to undo`,
      "`pml import` lists the servers of your clients",
    );
  }
  const { backup, before, after, replaced } = last;
  const what = replaced === undefined ? editName : `the replacement of ${replaced.name}`;
  const currentHash = hashOf(found);
  // guard: undo-changed
  if (last !== all.at(-1) || currentHash !== after && currentHash !== before) {
    // PML does not edit a workspace file that the user does not trust.
    const isEditable = !isWorkspaceFile(path) ||
      found !== undefined && await app.policy.store.isTrusted(path, sha256(found.text));
    const withoutEdit = async (text: string) =>
      isEditable && replaced !== undefined
        ? await withEarlierDefinition(target, last, more)
        : last.added === undefined || !isEditable
        ? await withoutEntries?.(text)
        : await withoutAdded(target, last.added);
    const restored = found && await withoutEdit(found.text).catch(() => undefined);
    if (found !== undefined && restored !== undefined) {
      return toPartUndo(app, { path, present: found, restored, all, last, what });
    }
    const kept = backup === null ? "there was no file" : `the file is ${backup}`;
    throw fileNotChanged(path, `it was changed after ${what}; before it, ${kept}`);
  }
  const copy = backup === null ? undefined : await readInside(dirname(backup), basename(backup));
  // guard: undo-copy
  if (hashOf(copy) !== before) {
    throw fileNotChanged(backup ?? path, `it is not the file that was there before ${what}`);
  }
  if (part !== undefined && copy !== undefined && found !== undefined && currentHash === after) {
    return toMovePartUndo(app, { path, present: found, copy, all, part });
  }
  const edits = undoesAll ? all.slice(all.findLastIndex(({ isMove }) => isMove) + 1) : [last];
  const summary = summaryOf(path, edits, what);
  const run = () =>
    app.policy.store.whileEditing(path, async () => {
      if (readEdits(app, path).length !== all.length) {
        throw fileNotChanged(path, "it was changed meanwhile");
      }
      if (found !== undefined && currentHash === after) {
        await restoreFile(app, { path, found, copy, last, root });
      }
      await writeEdits(app, path, all.slice(0, -1));
      if (copy !== undefined) await Deno.remove(copy.path);
      return `${path}: ${copy === undefined ? "removed" : `as it was before ${what}`}`;
    });
  return { path, summary, run };
}

/** Returns the summary of the undo of edits that follow each other. */
function summaryOf(path: string, edits: readonly EditRecord[], what: string): string {
  const isGapless = edits.every(({ before }, at) => at === 0 || before === edits[at - 1]?.after);
  if (!isGapless) {
    return `${path} was changed between its edits: only the entries of ${what} will be removed`;
  }
  return edits[0]?.before === null
    ? `${path} was made by ${what} and will be removed`
    : `${path} will be restored as it was before ${what}`;
}

/** The part of a move to undo. */
export interface MovePart {
  /** The names of the restored servers, as text for the user. */
  readonly names: string;
  /** The servers that stay out of the file. */
  readonly rest: readonly MovedServer[];
  /** Returns the text of the file before the move, without the servers of `rest`. */
  readonly textOf: (before: string) => Promise<string>;
}

/** Returns the undo of a part of a move. The record and the copy stay for the other servers. */
async function toMovePartUndo(
  app: App,
  { path, present, copy, all, part: { names, rest, textOf } }: {
    readonly path: string;
    readonly present: TextFile;
    readonly copy: TextFile;
    readonly all: readonly EditRecord[];
    readonly part: MovePart;
  },
): Promise<FileUndo> {
  const text = await textOf(copy.text);
  const run = () =>
    app.policy.store.whileEditing(path, async () => {
      const [last] = readEdits(app, path).slice(all.length - 1);
      if (last === undefined || last.after !== all.at(-1)?.after) {
        throw fileNotChanged(path, "it was changed meanwhile");
      }
      await replaceFile(app, { path, found: present, text, trusted: false });
      const remaining = { ...last, after: sha256(text), moved: rest };
      await writeEdits(app, path, [...all.slice(0, -1), remaining]);
      return `${path}: ${names} put back`;
    });
  return { path, summary: `${names} will be put back into ${path}`, run };
}

/** Returns the text of a file without the servers that an import added. */
async function withoutAdded(target: TargetFile, names: readonly string[]): Promise<string> {
  const settings = names.map((name) => ({ at: ["mcpServers", name] as const, entry: undefined }));
  return await textWith(target, settings);
}

/**
 * Returns the text of a file with these settings and the definition that an edit replaced, from the
 * copy of the old file; undefined if the copy was changed.
 */
async function withEarlierDefinition(
  target: TargetFile,
  { backup, before, replaced }: EditRecord,
  settings: readonly YamlSetting[],
): Promise<string | undefined> {
  if (backup === null || replaced === undefined) return undefined;
  const copy = await readInside(dirname(backup), basename(backup));
  if (hashOf(copy) !== before) return undefined;
  const { name, into, section, title } = replaced;
  const value = objectOf(await parseTarget({ path: target.path, found: copy }));
  const entry = objectOf(value[section])[title];
  const isMoved = section !== into || title !== name;
  return await textWith(target, [
    ...settings,
    ...isMoved ? [{ at: [into, name] as const, entry: undefined }] : [],
    { at: [section, title], entry },
  ]);
}

/** Returns the undo of only the edited part, because other parts of the file changed after the edit. */
function toPartUndo(
  app: App,
  { path, present, restored, all, last, what }: {
    readonly path: string;
    readonly present: TextFile;
    /** The text of the file after the undo. */
    readonly restored: string;
    readonly all: readonly EditRecord[];
    /** The edit to undo. */
    readonly last: EditRecord;
    readonly what: string;
  },
): FileUndo {
  const hasChange = restored !== present.text;
  const { replaced, backup } = last;
  const isReplaced = replaced !== undefined;
  const part = isReplaced
    ? `only the definition before ${what} comes back`
    : `only the entries of ${what} will be removed`;
  const summary = hasChange
    ? `${path} was changed since: ${part}`
    : isReplaced
    ? `${path} has the definition before ${what}`
    : `${path} no longer has the entries of ${what}`;
  const run = () =>
    app.policy.store.whileEditing(path, async () => {
      if (readEdits(app, path).length !== all.length) {
        throw fileNotChanged(path, "it was changed meanwhile");
      }
      const trusted = await app.policy.store.isTrusted(path, sha256(present.text));
      if (hasChange) await replaceFile(app, { path, found: present, text: restored, trusted });
      await writeEdits(app, path, all.filter((edit) => edit !== last));
      if (backup !== null) await Deno.remove(backup).catch(unlessGone);
      const changeText = isReplaced
        ? `the definition before ${what} is back`
        : `the entries of ${what} were removed`;
      return `${path}: ${hasChange ? changeText : "unchanged"}`;
    });
  return { path, summary, run };
}

/** Restores a file from its copy. Removes it if the edit created it. */
async function restoreFile(app: App, { path, found, copy, last, root }: {
  readonly path: string;
  readonly found: TextFile;
  readonly copy: TextFile | undefined;
  readonly last: EditRecord;
  readonly root: string | undefined;
}): Promise<void> {
  const { trusted } = last;
  if (copy !== undefined) return await replaceFile(app, { path, found, text: copy.text, trusted });
  const present = await readInside(dirname(path), basename(path));
  if (present?.text !== found.text) throw fileNotChanged(path, "it was changed meanwhile");
  await app.policy.store.move(path, { from: last.after, to: [] });
  await Deno.remove(path);
  // Also removes the folder of a client that was created for the file, unless it has other files.
  const folder = dirname(path);
  if (folder !== (root ?? app.config().workspace)) await Deno.remove(folder).catch(() => {});
}

/** Creates a file. A workspace file that PML creates is trusted. */
export async function createFile(
  app: App,
  { path, text, shown, mode = isWorkspaceFile(path) ? 0o644 : 0o600 }: {
    readonly path: string;
    readonly text: string;
    /** The lines about the content of a workspace file that the user saw. */
    readonly shown?: readonly string[];
    readonly mode?: number;
  },
): Promise<void> {
  // Trusts the text first, so that the file never exists without trust.
  if (isWorkspaceFile(path)) {
    await app.policy.store.trust({ path, hash: sha256(text), servers: {}, shown });
  }
  await writeFile(path, { text, mode });
  await recordAction({ app }, "file written", { path, after: sha256(text) });
}

/** Replaces the text of a file. The new text is trusted if `trusted` is set. */
export async function replaceFile(app: App, { path, found, text, trusted }: {
  readonly path: string;
  readonly found: TextFile;
  readonly text: string;
  readonly trusted: boolean;
}): Promise<void> {
  const { store } = app.policy;
  const [from, to] = [sha256(found.text), sha256(text)];
  const write = () => writeFile(path, { text, mode: found.mode, expectedText: found.text });
  if (trusted) await store.whileWriting(path, { from, to }, write);
  else await write();
  await recordAction({ app }, "file written", { path, before: from, after: to });
}

/** Returns the hash of a file in its records; null if it does not exist. */
export function hashOf(file: TextFile | undefined): string | null {
  return file === undefined ? null : sha256(file.text);
}

/** Returns whether a path is that of a workspace file. */
export function isWorkspaceFile(path: string): boolean {
  return basename(path) === FILE_NAME;
}

/** Returns the text of a file with these settings. A missing file counts as empty. */
export async function textWith(
  { path, found }: TargetFile,
  settings: readonly YamlSetting[],
): Promise<string> {
  if (!isWorkspaceFile(path)) return await yamlWith(found?.text ?? "", { path, settings });
  let text = found?.text ?? NEW_WORKSPACE;
  for (const setting of settings) text = await withValue(text, { path, ...setting });
  return text;
}

/** Parses a file; an empty object if it does not exist. */
export async function parseTarget({ path, found }: TargetFile): Promise<unknown> {
  if (found === undefined) return {};
  if (!isWorkspaceFile(path)) return (await loadYaml()).parse(found.text);
  return (await import("jsonc-parser")).parse(found.text.replace(/^\uFEFF/, ""));
}

/** Returns the path of the record of the edits of a file. */
export function recordPath(app: App, path: string): string {
  return join(app.config().home, "imports", `${sha256(path)}.json`);
}

/** Reads the records of the edits of a file that can be undone, the last edit at the end. */
export function readEdits(app: App, path: string): readonly EditRecord[] {
  const file = recordPath(app, path);
  let all: unknown;
  try {
    all = JSON.parse(readPlainText(file) ?? "[]");
  } catch {
    // Reported below.
  }
  // A copy is next to its file or in the PML home. A record with another path is not valid, so that an
  // undo never reads or removes another file.
  const isValid = (edit: unknown) => {
    const { backup, before } = objectOf(edit);
    if (backup === null) return before === null;
    // guard: undo-outside
    return [dirname(path), backupFolder(app)].includes(dirname(textOf(backup)));
  };
  if (Array.isArray(all) && all.every(isValid)) return all;
  throw fileNotChanged(file, `it is not a record of PML's changes to ${path}`);
}

/** Returns the folder of copies in the PML home. */
export function backupFolder(app: App): string {
  return join(app.config().home, "backups");
}

/** Returns whether the text of a file may contain a key. */
export function containsSecret(app: App, text: string): boolean {
  if (app.parts.redactor.redact(text) !== text || containsKnownKey(text)) return true;
  for (const [, name = "", value = ""] of text.matchAll(NAMED_VALUE)) {
    if (isSecretName(name) && !value.includes("${")) return true;
    if (isRandom(value)) return true;
  }
  return false;
}

async function writeEdits(app: App, path: string, all: readonly EditRecord[]): Promise<void> {
  await writePrivate(recordPath(app, path), all);
}

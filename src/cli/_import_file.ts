/**
 * The file that `pml import` writes: edited, kept as it was before, and put back.
 *
 * @module
 */

import { basename, dirname, join } from "node:path";
import type { App } from "../app/app.ts";
import { FILE_NAME } from "../config/workspace.ts";
import { sha256 } from "../core/hash.ts";
import { isObject } from "../core/json.ts";
import { readPlain, writePrivate } from "../io/private_files.ts";
import { withValue } from "./_client_file.ts";
import { usage } from "./_failure.ts";
import { backUp, type Found, place, readInside, refused } from "./_files.ts";
import { type Setting, yamlWith } from "./_yaml_text.ts";

/** The file, as it is if it is. */
export interface Target {
  readonly path: string;
  readonly found: Found | undefined;
}

/** What an import did to the file, as it is kept in the PML home. */
interface Done {
  /** The copy of the file before and its hash; nothing where there was no file. */
  readonly backup: string | null;
  readonly before: string | null;
  readonly after: string;
  /** Whether the file was trusted before. */
  readonly trusted: boolean;
}

type Servers = Readonly<Record<string, unknown>>;

const SECTIONS = ["private_mcps", "mcpServers"];
const NEW_WORKSPACE = '{\n  "version": 1\n}\n';

/** Finds the person's `config.yaml`, or the workspace file. */
export async function findTarget(app: App, workspace: boolean): Promise<Target> {
  const path = workspace ? app.policy.rulesFile : app.loaded().person.path;
  await Deno.mkdir(app.config().home, { recursive: true, mode: 0o700 });
  const folder = await Deno.realPath(dirname(path));
  const found = await readInside(folder, basename(path));
  const own = join(folder, basename(path));
  if (found !== undefined && found.path !== own) throw refused(path, "it is a link");
  return { path: own, found };
}

/** Gives what stands under the sections of servers. */
export async function presentServers({ path, found }: Target): Promise<Servers> {
  const value = found === undefined ? {} : await valueOf(found.text, path);
  const sections = SECTIONS.map((name) => isObject(value) ? value[name] : undefined);
  return Object.assign({}, ...sections.filter(isObject));
}

/** Adds servers, with the trust that the file had; a file that is made is trusted. */
export async function addServers(app: App, target: Target, servers: Servers): Promise<string> {
  const { path, found } = target;
  const settings = Object.entries(servers)
    .map(([name, entry]) => ({ at: ["mcpServers", name] as const, entry }));
  const text = await textWith(target, settings);
  const { store } = app.policy;
  return await store.whileEditing(path, async () => {
    const [before, after] = [found && sha256(found.text), sha256(text)];
    const trusted = before !== undefined && await store.isTrusted(path, before);
    const backup = found && await backUp(found);
    const done = { backup: backup ?? null, before: before ?? null, after, trusted };
    const earlier = readDone(app, path);
    await keepDone(app, path, [...earlier, done]);
    try {
      if (found !== undefined) await replace(app, { path, found, text, trusted });
      else await make(app, { path, text });
    } catch (error) {
      // Nothing was done, so there is nothing to undo.
      await keepDone(app, path, earlier);
      if (backup !== undefined) await Deno.remove(backup);
      throw error;
    }
    if (found === undefined) return "created";
    const but = trusted || !isTrustable(path) || app.config().trusted ? "" : "; it is not trusted";
    return `changed; the file before is ${backup}${but}`;
  });
}

/** Says what would be put back, and puts it back. */
export async function findUndo(
  app: App,
  target: Target,
): Promise<{ readonly said: string; readonly run: () => Promise<string> }> {
  const { path, found } = target;
  const all = readDone(app, path);
  const last = all.at(-1);
  if (last === undefined) {
    throw usage(`Cannot undo: no import wrote ${path}`, "`--workspace` undoes one into .pml.json");
  }
  const now = found === undefined ? null : sha256(found.text);
  if (now !== last.after && now !== last.before) {
    const kept = last.backup === null ? "there was none" : `it is ${last.backup}`;
    throw refused(path, `it was changed since the import; of the file before, ${kept}`);
  }
  const copy = last.backup === null
    ? undefined
    : await readInside(dirname(last.backup), basename(last.backup));
  if (last.before !== null && (copy === undefined || sha256(copy.text) !== last.before)) {
    throw refused(last.backup ?? path, "it is not what the file was before the import");
  }
  const said = copy === undefined
    ? `${path} was made by the import: it is removed`
    : `${path} becomes what it was before the import`;
  const run = () =>
    app.policy.store.whileEditing(path, async () => {
      if (now === last.after) await putBack(app, { path, found, copy, last });
      await keepDone(app, path, all.slice(0, -1));
      if (copy !== undefined) await Deno.remove(copy.path);
      return `${path}: ${copy === undefined ? "removed" : "as it was before the import"}`;
    });
  return { said, run };
}

async function putBack(app: App, { path, found, copy, last }: {
  readonly path: string;
  readonly found: Found | undefined;
  readonly copy: Found | undefined;
  readonly last: Done;
}): Promise<void> {
  if (found === undefined) return;
  const { text, trusted } = { text: copy?.text, trusted: last.trusted };
  if (text !== undefined) return await replace(app, { path, found, text, trusted });
  const again = await readInside(dirname(path), basename(path));
  if (again?.text !== found.text) throw refused(path, "it was changed meanwhile");
  await app.policy.store.move(path, { from: last.after, to: [] });
  await Deno.remove(path);
}

/** Makes a file that is not there; a workspace file of PML's own making is trusted. */
export async function make(
  app: App,
  { path, text }: { readonly path: string; readonly text: string },
): Promise<void> {
  // Trusted first, as every file that PML makes.
  if (isTrustable(path)) await app.policy.store.trust({ path, hash: sha256(text), servers: {} });
  await place(path, { text, mode: isTrustable(path) ? 0o644 : 0o600 });
}

/** Puts another text into a file, with the trust that it had. */
export async function replace(app: App, { path, found, text, trusted }: {
  readonly path: string;
  readonly found: Found;
  readonly text: string;
  readonly trusted: boolean;
}): Promise<void> {
  const { store } = app.policy;
  const [from, to] = [sha256(found.text), sha256(text)];
  // Both while it is written, so that a crash in between loses no trust.
  if (trusted) await store.move(path, { from, to: [from, to] });
  await place(path, { text, mode: found.mode, over: found.text });
  if (trusted) await store.move(path, { from: to, to: [to] });
}

function isTrustable(path: string): boolean {
  return basename(path) === FILE_NAME;
}

/** Gives the text of a file, or of one that is not there yet, with these settings. */
export async function textWith(
  { path, found }: Target,
  settings: readonly Setting[],
): Promise<string> {
  if (!isTrustable(path)) return await yamlWith(found?.text ?? "", { path, settings });
  let text = found?.text ?? NEW_WORKSPACE;
  for (const setting of settings) text = await withValue(text, { path, ...setting });
  return text;
}

async function valueOf(text: string, path: string): Promise<unknown> {
  if (!isTrustable(path)) return (await import("yaml")).parse(text);
  return (await import("jsonc-parser")).parse(text.replace(/^\uFEFF/, ""));
}

function donePath(app: App, path: string): string {
  return join(app.config().home, "imports", `${sha256(path)}.json`);
}

function readDone(app: App, path: string): readonly Done[] {
  const plain = readPlain(donePath(app, path));
  return plain === undefined ? [] : JSON.parse(new TextDecoder().decode(plain.bytes));
}

async function keepDone(app: App, path: string, all: readonly Done[]): Promise<void> {
  await writePrivate(donePath(app, path), all);
}

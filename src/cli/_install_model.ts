/**
 * `pml search install-model`: shows how large a model for search by meaning is, downloads it, and
 * tests it before it is used.
 *
 * @module
 */

import { join } from "node:path";
import type { App } from "../app/app.ts";
import { PmlError } from "../core/errors.ts";
import { fileSize } from "../core/amounts.ts";
import { setForPerson } from "./_config_file.ts";
import { type CommandContext, type Shown, type Typed, unchanged } from "./_command_context.ts";
import { agrees, isTyped, needPerson } from "./_terminal.ts";
import { tell } from "./out.ts";
import { typedPath } from "./command_process.ts";

type Finder = Awaited<ReturnType<App["finder"]>>;
type Meaning = Awaited<ReturnType<Finder["model"]>>;

/** The parts of an installation, with the bytes to download and the bytes on disk. */
interface InstallPlan {
  readonly model: {
    readonly name: string;
    readonly folder: string;
    readonly downloadBytes: number;
    readonly bytes: number;
  };
  readonly library: {
    readonly name: string;
    readonly downloadBytes: number;
    readonly bytes: number;
  };
  /** Downloads the model if it is missing. */
  readonly get: () => Promise<void>;
}

/** The time between two lines of progress. */
const TELL_MS = 1_000;

/** Installs a model: the default one, or the one in a folder. */
export async function installModel(at: CommandContext, typed: Typed): Promise<Shown> {
  const { words: [modelName], yes = false, json = false } = typed;
  const finder = await at.app.finder();
  const folder = modelName === undefined ? undefined : typedPath(modelName);
  const plan = folder === undefined
    ? await planOfHub(finder, { at, from: typed.from })
    : await planOfFolder(finder, folder);
  const { get, ...value } = plan;
  if (json && !yes) return { value };
  tell(textOf(plan));
  if (!yes) {
    needPerson("Cannot install a model", "; `--yes` asks nothing");
    if (!await agrees("\nContinue?", at)) return unchanged(value);
  }
  await get();
  await using meaning = await finder.model(plan.model.folder);
  const model = await meaning.see();
  if (model.isOther && !await isMeant(plan.model.folder, at)) {
    return { value, text: "Nothing was pinned: search does not use this model", code: 1 };
  }
  const tried = await meaning.install(tell, model);
  tell(`It works: a sentence became ${tried.dimensions} numbers in ${tried.ms} ms`);
  const path = await setForPerson(at.app, {
    keys: ["search", "model"],
    value: plan.model.folder,
  });
  const indexed = await index(meaning, { at, finder });
  const done = `${path}: search.model is ${plan.model.folder}`;
  return {
    value: { ...value, ...tried, indexed, path },
    text: `${done}\nSearch is hybrid now, and indexes new tools by itself`,
  };
}

/**
 * Asks the user to type "pin". No option replaces this, because a model that differs from the
 * pinned one may be malicious.
 */
async function isMeant(folder: string, { signal }: CommandContext): Promise<boolean> {
  needPerson("Cannot use a model that differs from the pinned one", "");
  tell(`The files in ${folder} are not those that were pinned at the first use`);
  return await isTyped("pin", "use them as they are now", signal);
}

async function planOfHub(
  finder: Finder,
  { at, from }: { readonly at: CommandContext; readonly from: string | undefined },
): Promise<InstallPlan> {
  const hub = await finder.hub({ from, signal: at.signal });
  const { name, revision } = hub.model;
  const folder = join(at.app.config().home, "models", hub.model.folder);
  const files = await hub.look();
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const isThere = await hub.has(files, folder);
  await using meaning = await finder.model(folder);
  const progress = progressOf((done, total) => `Model: ${fileSize(done)} of ${fileSize(total)}`);
  return {
    model: {
      name: `${name} (${revision.slice(0, 8)}) from ${hub.host}`,
      folder,
      downloadBytes: isThere ? 0 : bytes,
      bytes,
    },
    library: libraryOf(meaning),
    get: async () => {
      if (!isThere) await hub.install(files, { folder, onBytes: progress });
    },
  };
}

async function planOfFolder(finder: Finder, folder: string): Promise<InstallPlan> {
  await using meaning = await finder.model(folder);
  const { bytes } = meaning.look();
  return {
    model: { name: folder, folder, downloadBytes: 0, bytes },
    library: libraryOf(meaning),
    get: () => Promise.resolve(),
  };
}

function libraryOf(meaning: Meaning): InstallPlan["library"] {
  const { isThere, name, bytes, downloadBytes } = meaning.library();
  return { name, bytes, downloadBytes: isThere ? 0 : downloadBytes };
}

/**
 * Indexes the tools that are known, so that the next search can use them. Returns how many were
 * indexed. A failure only leaves the rest for later searches.
 */
async function index(
  meaning: Meaning,
  { at: { app, signal }, finder }: { readonly at: CommandContext; readonly finder: Finder },
): Promise<number> {
  const entries = async () => {
    await app.servers.lists.prepare();
    return finder.entries();
  };
  let last = 0;
  const report = progressOf((done, total) => `Indexed ${done} of ${total} tools`);
  const all = await entries();
  try {
    await meaning.index(all, {
      signal,
      tell: (done, total) => {
        last = done;
        report(done, total);
      },
    });
    return all.length;
  } catch (error) {
    if (!(error instanceof PmlError)) throw error;
    tell(`Not all is indexed yet: ${error.message}`);
    return last;
  }
}

function textOf({ model, library }: InstallPlan): string {
  const total = model.downloadBytes + library.downloadBytes;
  const line = (what: string, { name, downloadBytes, bytes }: InstallPlan["library"]) => {
    const net = downloadBytes === 0 ? "nothing" : fileSize(downloadBytes);
    return `${what}: ${name}\n  ${net} to download, ${fileSize(bytes)} on disk`;
  };
  return [
    line("Model", model),
    `  in ${model.folder}`,
    line("Library", library),
    `Total download: ${fileSize(total)}`,
  ].join("\n");
}

/** Shows the first and the last step, and others at most once a second. */
function progressOf(text: (done: number, total: number) => string) {
  let next = 0;
  return (done: number, total: number) => {
    if (Date.now() < next && done < total) return;
    next = Date.now() + TELL_MS;
    tell(text(done, total));
  };
}

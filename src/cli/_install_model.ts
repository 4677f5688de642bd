/**
 * `pml search install-model`: shows the size of a model for search by meaning, downloads the model, and
 * tests it before search uses it.
 *
 * @module
 */

import { join } from "node:path";
import type { App } from "../app/app.ts";
import { PmlError } from "../core/errors.ts";
import { fileSize } from "../core/amounts.ts";
import { setForPerson } from "./_config_file.ts";
import {
  type CommandContext,
  type CommandInput,
  type CommandOutput,
  unchanged,
} from "./_command_context.ts";
import { agrees, assertTerminal, confirmWord } from "./_terminal.ts";
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
  readonly download: () => Promise<void>;
}

/** The minimum time between two lines of progress, in milliseconds. */
const PROGRESS_MS = 1_000;

/** Installs a model: the default one, or the one in a folder. */
export async function installModel(
  context: CommandContext,
  input: CommandInput,
): Promise<CommandOutput> {
  const { words: [modelName], yes = false, json = false } = input;
  const finder = await context.app.finder();
  const folder = modelName === undefined ? undefined : typedPath(modelName);
  const plan = folder === undefined
    ? await planDownload(finder, { context, from: input.from })
    : await planFolder(finder, folder);
  const { download, ...value } = plan;
  if (json && !yes) return { value };
  tell(planText(plan));
  if (!yes) {
    assertTerminal("Cannot install a model", "; `--yes` asks nothing");
    if (!await agrees("\nContinue?", context)) return unchanged(value);
  }
  await download();
  await using meaning = await finder.model(plan.model.folder);
  const model = await meaning.checkModel();
  if (model.hasChanged && !await confirmOtherModel(plan.model.folder, context)) {
    return { value, text: "Nothing was pinned: search does not use this model", code: 1 };
  }
  const trial = await meaning.install(tell, model);
  tell(`It works: a sentence became ${trial.dimensions} numbers in ${trial.ms} ms`);
  const path = await setForPerson(context.app, {
    keys: ["search", "model"],
    value: plan.model.folder,
  });
  const indexed = await indexTools(meaning, { context, finder });
  const done = `${path}: search.model is ${plan.model.folder}`;
  return {
    value: { ...value, ...trial, indexed, path },
    text: `${done}\nSearch is hybrid now, and indexes new tools by itself`,
  };
}

/**
 * Asks the user to type "pin". No option replaces this question, because a model that differs from the
 * pinned one may be malicious.
 */
async function confirmOtherModel(folder: string, { signal }: CommandContext): Promise<boolean> {
  assertTerminal("Cannot use a model that differs from the pinned one", "");
  tell(`The files in ${folder} are not those that were pinned at the first use`);
  return await confirmWord("pin", "use them as they are now", signal);
}

async function planDownload(
  finder: Finder,
  { context, from }: {
    readonly context: CommandContext;
    readonly from: string | undefined;
  },
): Promise<InstallPlan> {
  const hub = await finder.hub({ from, signal: context.signal });
  const { name, revision } = hub.model;
  const folder = join(context.app.config().home, "models", hub.model.folder);
  const files = await hub.listFiles();
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const isInstalled = await hub.has(files, folder);
  await using meaning = await finder.model(folder);
  const progress = progressReporter((done, total) =>
    `Model: ${fileSize(done)} of ${fileSize(total)}`
  );
  return {
    model: {
      name: `${name} (${revision.slice(0, 8)}) from ${hub.host}`,
      folder,
      downloadBytes: isInstalled ? 0 : bytes,
      bytes,
    },
    library: libraryOf(meaning),
    download: async () => {
      if (!isInstalled) await hub.install(files, { folder, onBytes: progress });
    },
  };
}

async function planFolder(finder: Finder, folder: string): Promise<InstallPlan> {
  await using meaning = await finder.model(folder);
  const { bytes } = meaning.readModel();
  return {
    model: { name: folder, folder, downloadBytes: 0, bytes },
    library: libraryOf(meaning),
    download: () => Promise.resolve(),
  };
}

function libraryOf(meaning: Meaning): InstallPlan["library"] {
  const { isInstalled, name, bytes, downloadBytes } = meaning.library();
  return { name, bytes, downloadBytes: isInstalled ? 0 : downloadBytes };
}

/**
 * Indexes the known tools, so that the next search can use the model. Returns the number of indexed
 * tools. After a failure, later searches index the remaining tools.
 */
async function indexTools(
  meaning: Meaning,
  { context: { app, signal }, finder }: {
    readonly context: CommandContext;
    readonly finder: Finder;
  },
): Promise<number> {
  const entries = async () => {
    await app.servers.lists.prepare();
    return finder.entries();
  };
  let indexedCount = 0;
  const report = progressReporter((done, total) => `Indexed ${done} of ${total} tools`);
  const all = await entries();
  try {
    await meaning.index(all, {
      signal,
      report: (done, total) => {
        indexedCount = done;
        report(done, total);
      },
    });
    return all.length;
  } catch (error) {
    if (!(error instanceof PmlError)) throw error;
    tell(`Not all is indexed yet: ${error.message}`);
    return indexedCount;
  }
}

function planText({ model, library }: InstallPlan): string {
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

/** Returns a function that shows the first and the last step, and others at most once a second. */
function progressReporter(text: (done: number, total: number) => string) {
  let next = 0;
  return (done: number, total: number) => {
    if (Date.now() < next && done < total) return;
    next = Date.now() + PROGRESS_MS;
    tell(text(done, total));
  };
}

/**
 * The library that understands meanings: installed once, on the person's word, from tarballs whose
 * hashes PML ships, and only the files of it that are used. No script of it runs.
 *
 * @module
 */

import { dirname, join } from "node:path";
import lock from "../../config/embedder.lock.json" with { type: "json" };
import { asPmlError, PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { megabytes } from "../core/megabytes.ts";
import { Installing, type Tell } from "../io/installing.ts";
import { keepFile } from "../io/kept.ts";
import { unlessGone } from "../io/private_files.ts";
import { readRegularText } from "../io/regular_file.ts";
import { RECORD, treeHash, treeStamp } from "../io/tree.ts";
import { DENO_QUIET } from "../sandbox/alone.ts";
import { runProgram } from "../sandbox/process.ts";
import type { Reaper } from "../sandbox/reaper.ts";

/** What installing the package needs from outside. */
export interface EmbedderPackageOptions {
  readonly home: string;
  /** What installers find in their environment. */
  readonly environment: () => Readonly<Record<string, string>>;
  /** Gives up what is being installed. */
  readonly closing: AbortSignal;
  readonly groups: () => Promise<Pick<Reaper, "mark" | "add" | "remove">>;
  readonly onLog: (text: string) => void;
}

/** What the package is, and what it costs: bytes over the network, and bytes on the disk. */
export const EMBEDDER:
  & Readonly<Record<"name", string>>
  & Readonly<
    Record<"downloadBytes" | "bytes", number>
  > = lock;

const INSTALL_MS = 600_000;
const NAMES = Object.values(lock.packages).flatMap(({ files }) => files);
/** Where a person keeps settings of npm under another name than the usual one. */
const USER_SETTINGS = "NPM_CONFIG_USERCONFIG";

/** The package in the PML home. */
export class EmbedderPackage {
  /** Where it is, if it is. */
  readonly folder: string;
  readonly #options: EmbedderPackageOptions;
  readonly #told = new Set<Tell>();
  #ready: Promise<string> | undefined;

  /** Takes where and how; nothing is installed before it is asked for. */
  constructor(options: EmbedderPackageOptions) {
    this.#options = options;
    this.folder = join(options.home, "embedder", lock.folder);
  }

  /** Tells whether it is installed; nothing is looked at more closely. */
  isThere(): boolean {
    try {
      return NAMES.every((name) => Deno.lstatSync(join(this.folder, name)).isFile);
    } catch {
      return false; // the first file that is missing
    }
  }

  /** Gives the folder with exactly the files that PML knows, installing them where they are not there. */
  async ready(tell: Tell = () => {}): Promise<string> {
    this.#told.add(tell);
    // What failed is tried again by the next one who asks; what is there is looked at each time.
    this.#ready ??= this.#look().finally(() => this.#ready = undefined);
    try {
      return await this.#ready;
    } finally {
      this.#told.delete(tell);
    }
  }

  /** Takes away what is there, so that it is installed anew. */
  async remove(): Promise<void> {
    await Deno.remove(this.folder, { recursive: true }).catch(unlessGone);
  }

  async #look(): Promise<string> {
    const { folder } = this;
    if (!this.isThere()) await this.#install();
    const stamp = await treeStamp(folder);
    if (stamp === stampOf(folder)) return folder;
    if (await treeHash(folder) !== lock.tree) {
      const message = `Cannot load ${lock.name}: its files are not those that PML knows`;
      throw new PmlError("INTEGRITY_MISMATCH", message, {
        hint: `Search stays lexical. \`pml search install-model\` installs it anew in ${
          quoted(folder, 400)
        }`,
      });
    }
    keepFile(join(folder, RECORD), stamp, { by: folder });
    return folder;
  }

  async #install(): Promise<void> {
    const { onLog } = this.#options;
    const fresh = `${this.folder}.${crypto.randomUUID()}`;
    const work = join(fresh, "work");
    onLog(`Installing ${lock.name} (${megabytes(lock.downloadBytes)} to download)`);
    const since = performance.now();
    try {
      Deno.mkdirSync(work, { recursive: true, mode: 0o700 });
      sweep(this.folder);
      await this.#run(work);
      for (const [name, { files }] of Object.entries(lock.packages)) {
        for (const file of files) {
          await Deno.rename(join(work, "node_modules", name, "dist", file), join(fresh, file));
        }
      }
      await Deno.remove(work, { recursive: true });
      // What is there and is not whole is in the way.
      if (!this.isThere()) await this.remove();
      await Deno.rename(fresh, this.folder);
    } catch (error) {
      await Deno.remove(fresh, { recursive: true }).catch(() => {}); // it was never made
      // Another PML was faster: what it installed is looked at as this would be.
      if (this.isThere()) return;
      throw error instanceof PmlError ? error : failed(asPmlError(error).message, { cause: error });
    }
    const seconds = ((performance.now() - since) / 1_000).toFixed(1);
    onLog(`Installed ${lock.name} in ${seconds} s (${megabytes(lock.bytes)} on disk)`);
  }

  async #run(work: string): Promise<void> {
    const { closing } = this.#options;
    const groups = await this.#options.groups();
    const environment = this.#options.environment();
    for (const [name, text] of Object.entries(filesFor(environment))) {
      Deno.writeTextFileSync(join(work, name), text, { mode: 0o600 });
    }
    using installing = new Installing(`Installing ${lock.name}`);
    installing.join((message) => this.#told.forEach((tell) => tell(message)));
    const late = AbortSignal.timeout(INSTALL_MS);
    const env = {
      ...environment,
      PML_RUN: `${groups.mark}.`,
      DENO_DIR: join(work, "deno"),
      ...DENO_QUIET,
    };
    const args = ["install", "--frozen", "--no-prompt", "--node-modules-dir=manual"];
    const installer = { file: Deno.execPath(), args, cwd: work, env, kept: true };
    const { code } = await runProgram(installer, {
      signal: AbortSignal.any([late, closing]),
      maxBytes: 0,
      groups,
      onStderr: (text) => installing.hear(text),
    }).catch((cause) => {
      throw late.aborted ? failed(`it took over ${INSTALL_MS / 1_000} s`, { cause }) : cause;
    });
    if (code === 0) return;
    const { tail } = installing;
    const [, said = `deno install ended with ${code}`] = /error: ([^\\]{1,300})/.exec(tail) ?? [];
    throw failed(said, { detail: { said: tail } });
  }
}

/** Takes away what was being installed when PML was killed: it is large. */
function sweep(folder: string): void {
  const all = dirname(folder);
  for (const { name } of Deno.readDirSync(all)) {
    const path = join(all, name);
    if (!name.startsWith(`${lock.folder}.`)) continue;
    const { mtime } = Deno.lstatSync(path);
    if (Date.now() - (mtime?.getTime() ?? 0) > INSTALL_MS) {
      Deno.removeSync(path, { recursive: true });
    }
  }
}

/** What lies where it is installed: nothing but these two packages, and by these hashes. */
function filesFor(environment: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const all = Object.entries(lock.packages);
  const specifiers = all.map(([name, { version }]) => `npm:${name}@${version}`);
  const settings = environment[USER_SETTINGS];
  return {
    "package.json": JSON.stringify({
      private: true,
      dependencies: Object.fromEntries(all.map(([name, { version }]) => [name, version])),
    }),
    "deno.lock": JSON.stringify({
      version: "5",
      specifiers: Object.fromEntries(
        all.map(([name, { version }]) => [`npm:${name}@${version}`, version]),
      ),
      npm: Object.fromEntries(
        all.map(([name, { version, integrity }]) => [`${name}@${version}`, { integrity }]),
      ),
      workspace: { packageJson: { dependencies: specifiers } },
    }),
    // Its own, so that no file of a folder above counts.
    "deno.json": "{}",
    // Deno reads settings of npm beside the package and in the home folder only.
    ...(settings === undefined ? {} : { ".npmrc": readRegularText(settings, { links: true }) }),
  };
}

function failed(
  why: string,
  { cause, detail }: {
    readonly cause?: unknown;
    readonly detail?: Readonly<Record<string, unknown>>;
  },
): PmlError {
  return new PmlError("UPSTREAM_DOWN", `Cannot install ${lock.name}: ${why}`, {
    hint: "Search stays lexical. Look whether the registry of npm can be reached " +
      "(NPM_CONFIG_REGISTRY or .npmrc name another) and whether there is room on the disk",
    cause,
    ...(detail && { detail }),
  });
}

/** What tells soon that no file has changed; in the home, so it is PML's own word. */
function stampOf(folder: string): string | undefined {
  try {
    return readRegularText(join(folder, RECORD));
  } catch {
    return undefined; // then the files are read
  }
}

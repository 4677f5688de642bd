/**
 * Installs the library that runs the model: once, by `pml search install-model` or when a
 * long-running process first searches with a configured model. PML ships the hashes of the
 * tarballs. Only the used files are kept, and install scripts do not run.
 *
 * @module
 */

import { dirname, join } from "node:path";
import lock from "../../../config/embedder.lock.json" with { type: "json" };
import type { Log } from "../../audit/log.ts";
import { asPmlError, PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import { fileSize } from "../../core/amounts.ts";
import { sweepAbandoned } from "../../io/folder_lock.ts";
import { InstallProgress, type ReportStep } from "../../io/install_progress.ts";
import { writeFileWhole } from "../../io/cache_files.ts";
import { infoAt } from "../../io/path_info.ts";
import { unlessGone } from "../../io/private_files.ts";
import { readRegularText, textIfAny } from "../../io/regular_file.ts";
import { RECORD, treeHash, treeStamp } from "../../io/tree.ts";
import { retryWhileBusy } from "../../io/waiting.ts";
import { DENO_QUIET } from "../../sandbox/deno_flags.ts";
import { runProgram } from "../../sandbox/process.ts";
import type { GroupsOpener } from "../../sandbox/reaper.ts";

/** The owner of the package. `Meaning` implements it. */
export interface PackageOwner extends GroupsOpener {
  /** The PML home. */
  readonly home: string;
  readonly log: Pick<Log, "info">;
  /** Aborts the installation. */
  readonly closing: AbortSignal;
  /** Returns the environment of installers. */
  installVariables(): Readonly<Record<string, string>>;
}

/** The package's name, the bytes to download and the bytes on disk. */
export const EMBEDDER: Readonly<
  Record<"name", string> & Record<"downloadBytes" | "bytes", number>
> = lock;

const INSTALL_MS = 600_000;
const FILE_NAMES = Object.values(lock.packages).flatMap(({ files }) => files);
/** The variable with the path of the user's npm settings if it is not the default path. */
const USER_SETTINGS = "NPM_CONFIG_USERCONFIG";

/** The package in the PML home. */
export class EmbedderPackage {
  /** The folder of the package, which may not exist yet. */
  readonly folder: string;
  readonly #owner: PackageOwner;
  readonly #listeners = new Set<ReportStep>();
  #ready: Promise<string> | undefined;

  /** Creates an instance. Installs nothing yet. */
  constructor(owner: PackageOwner) {
    this.#owner = owner;
    this.folder = join(owner.home, "embedder", lock.folder);
  }

  /** Returns whether the package is installed. Does not check the content of its files. */
  isInstalled(): boolean {
    return FILE_NAMES.every((name) => infoAt(join(this.folder, name))?.isFile);
  }

  /**
   * Returns the folder with exactly the files that PML knows. Installs them if they are missing.
   * Throws `INTEGRITY_MISMATCH` if they were changed.
   */
  async ensureInstalled(report: ReportStep = () => {}): Promise<string> {
    this.#listeners.add(report);
    // The promise is dropped when it settles, so that the next request retries a failure and checks
    // the files again.
    this.#ready ??= this.#check().finally(() => this.#ready = undefined);
    try {
      return await this.#ready;
    } finally {
      this.#listeners.delete(report);
    }
  }

  /** Removes the package, so that it is installed again. */
  async remove(): Promise<void> {
    await Deno.remove(this.folder, { recursive: true }).catch(unlessGone);
  }

  async #check(): Promise<string> {
    const { folder } = this;
    if (!this.isInstalled()) await this.#install();
    const stamp = await treeStamp(folder);
    // The stamp shows quickly that no file has changed. Only PML writes to the PML home.
    if (stamp === textIfAny(join(folder, RECORD))) return folder;
    if (await treeHash(folder) !== lock.tree) {
      const message = `Cannot load ${lock.name}: its files were changed`;
      throw new PmlError("INTEGRITY_MISMATCH", message, {
        hint: `Search uses the built-in model. \`pml search install-model\` installs it anew in ${
          quoted(folder, 400)
        }`,
      });
    }
    writeFileWhole(join(folder, RECORD), stamp, { by: folder });
    return folder;
  }

  async #install(): Promise<void> {
    const { log } = this.#owner;
    const newFolder = `${this.folder}.${crypto.randomUUID()}`;
    const workFolder = join(newFolder, "work");
    log.info(`Installing ${lock.name} (${fileSize(lock.downloadBytes)} to download)`);
    const since = performance.now();
    try {
      Deno.mkdirSync(workFolder, { recursive: true, mode: 0o700 });
      await sweepAbandoned(dirname(this.folder), (name) => name.startsWith(`${lock.folder}.`));
      await this.#runInstaller(workFolder);
      for (const [name, { files }] of Object.entries(lock.packages)) {
        for (const file of files) {
          const source = join(workFolder, "node_modules", name, "dist", file);
          await Deno.rename(source, join(newFolder, file));
        }
      }
      await Deno.remove(workFolder, { recursive: true });
      // An incomplete installation is removed first.
      if (!this.isInstalled()) await this.remove();
      await retryWhileBusy(() => Deno.rename(newFolder, this.folder));
    } catch (error) {
      await Deno.remove(newFolder, { recursive: true }).catch(() => {}); // it was never created
      // Another PML process was faster. The caller checks its files.
      if (this.isInstalled()) return;
      throw error instanceof PmlError
        ? error
        : installError(asPmlError(error).message, { cause: error });
    }
    const seconds = ((performance.now() - since) / 1_000).toFixed(1);
    log.info(`Installed ${lock.name} in ${seconds} s (${fileSize(lock.bytes)} on disk)`);
  }

  async #runInstaller(folder: string): Promise<void> {
    const { closing } = this.#owner;
    const groups = await this.#owner.groups();
    const environment = this.#owner.installVariables();
    for (const [name, text] of Object.entries(settingsFiles(environment))) {
      Deno.writeTextFileSync(join(folder, name), text, { mode: 0o600 });
    }
    using installing = new InstallProgress(`Installing ${lock.name}`);
    installing.addListener((message) => this.#listeners.forEach((report) => report(message)));
    const env = {
      ...environment,
      PML_RUN: `${groups.mark}.`,
      DENO_DIR: join(folder, "deno"),
      ...DENO_QUIET,
    };
    const args = ["install", "--frozen", "--no-prompt", "--node-modules-dir=manual"];
    const installer = { file: Deno.execPath(), args, cwd: folder, env, hasKeeper: true };
    const { code } = await runProgram(installer, {
      signal: closing,
      ms: INSTALL_MS,
      late: (cause) => installError(`it took over ${INSTALL_MS / 1_000} s`, { cause }),
      maxBytes: 0,
      groups,
      onStderr: (text) => installing.addOutput(text),
    });
    if (code === 0) return;
    const { tail } = installing;
    const [, reason = `deno install ended with ${code}`] = /error: ([^\\]{1,300})/.exec(tail) ?? [];
    throw installError(reason, { detail: { said: tail } });
  }
}

/**
 * Returns the files that tell Deno to install exactly the two packages with the shipped hashes.
 */
function settingsFiles(
  environment: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
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
    // Without this file, Deno would use the `deno.json` of a parent folder.
    "deno.json": "{}",
    // Deno reads npm settings only in this folder and in the home folder, so they are copied.
    ...settings !== undefined && { ".npmrc": readRegularText(settings, { links: true }) },
  };
}

function installError(
  why: string,
  { cause, detail }: {
    readonly cause?: unknown;
    readonly detail?: Readonly<Record<string, unknown>>;
  },
): PmlError {
  return new PmlError("UPSTREAM_DOWN", `Cannot install ${lock.name}: ${why}`, {
    hint:
      "Search uses the built-in model. Check the connection to npm's registry and the free disk space",
    cause,
    ...(detail && { detail }),
  });
}

/**
 * Installs the library that runs the model: once, if the user agrees, from tarballs whose hashes
 * PML ships. Only the files that are used are kept. Its install scripts do not run.
 *
 * @module
 */

import { dirname, join } from "node:path";
import lock from "../../../config/embedder.lock.json" with { type: "json" };
import type { Log } from "../../audit/log.ts";
import { asPmlError, PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import { fileSize } from "../../core/amounts.ts";
import { sweep } from "../../io/folder_lock.ts";
import { Installing, type ReportStep } from "../../io/installing.ts";
import { keepFile } from "../../io/kept.ts";
import { infoAt } from "../../io/place.ts";
import { unlessGone } from "../../io/private_files.ts";
import { readRegularText, textIfAny } from "../../io/regular_file.ts";
import { RECORD, treeHash, treeStamp } from "../../io/tree.ts";
import { repeated } from "../../io/waiting.ts";
import { DENO_QUIET } from "../../sandbox/alone.ts";
import { runProgram } from "../../sandbox/process.ts";
import type { GroupsOpener } from "../../sandbox/reaper.ts";

/** The owner of the package. `Meaning` implements it. */
export interface PackageOwner extends GroupsOpener {
  /** The PML home. */
  readonly home: string;
  readonly log: Pick<Log, "info">;
  /** Stops the installation. */
  readonly closing: AbortSignal;
  /** Returns the environment of installers. */
  installVariables(): Readonly<Record<string, string>>;
}

/** The package's name, the bytes to download and the bytes on disk. */
export const EMBEDDER:
  & Readonly<Record<"name", string>>
  & Readonly<
    Record<"downloadBytes" | "bytes", number>
  > = lock;

const INSTALL_MS = 600_000;
const NAMES = Object.values(lock.packages).flatMap(({ files }) => files);
/** The variable that names the user's npm settings if they are not at the default path. */
const USER_SETTINGS = "NPM_CONFIG_USERCONFIG";

/** The package in the PML home. */
export class EmbedderPackage {
  /** The folder of the package, which may not exist yet. */
  readonly folder: string;
  readonly #owner: PackageOwner;
  readonly #listeners = new Set<ReportStep>();
  #ready: Promise<string> | undefined;

  /** Installs nothing yet. */
  constructor(owner: PackageOwner) {
    this.#owner = owner;
    this.folder = join(owner.home, "embedder", lock.folder);
  }

  /** Returns whether it is installed. The files' content is not checked. */
  isThere(): boolean {
    return NAMES.every((name) => infoAt(join(this.folder, name))?.isFile);
  }

  /**
   * Returns the folder with exactly the files that PML knows. Installs them if they are missing.
   * Throws `INTEGRITY_MISMATCH` if they were changed.
   */
  async ready(tell: ReportStep = () => {}): Promise<string> {
    this.#listeners.add(tell);
    // Not kept, so a failure is tried again by the next request, and the files are checked each
    // time.
    this.#ready ??= this.#look().finally(() => this.#ready = undefined);
    try {
      return await this.#ready;
    } finally {
      this.#listeners.delete(tell);
    }
  }

  /** Removes the package, so that it is installed again. */
  async remove(): Promise<void> {
    await Deno.remove(this.folder, { recursive: true }).catch(unlessGone);
  }

  async #look(): Promise<string> {
    const { folder } = this;
    if (!this.isThere()) await this.#install();
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
    keepFile(join(folder, RECORD), stamp, { by: folder });
    return folder;
  }

  async #install(): Promise<void> {
    const { log } = this.#owner;
    const fresh = `${this.folder}.${crypto.randomUUID()}`;
    const work = join(fresh, "work");
    log.info(`Installing ${lock.name} (${fileSize(lock.downloadBytes)} to download)`);
    const since = performance.now();
    try {
      Deno.mkdirSync(work, { recursive: true, mode: 0o700 });
      await sweep(dirname(this.folder), (name) => name.startsWith(`${lock.folder}.`));
      await this.#run(work);
      for (const [name, { files }] of Object.entries(lock.packages)) {
        for (const file of files) {
          await Deno.rename(join(work, "node_modules", name, "dist", file), join(fresh, file));
        }
      }
      await Deno.remove(work, { recursive: true });
      // An incomplete installation is removed first.
      if (!this.isThere()) await this.remove();
      await repeated(() => Deno.rename(fresh, this.folder));
    } catch (error) {
      await Deno.remove(fresh, { recursive: true }).catch(() => {}); // it was never created
      // Another PML was faster. Its files are checked like these.
      if (this.isThere()) return;
      throw error instanceof PmlError ? error : failed(asPmlError(error).message, { cause: error });
    }
    const seconds = ((performance.now() - since) / 1_000).toFixed(1);
    log.info(`Installed ${lock.name} in ${seconds} s (${fileSize(lock.bytes)} on disk)`);
  }

  async #run(work: string): Promise<void> {
    const { closing } = this.#owner;
    const groups = await this.#owner.groups();
    const environment = this.#owner.installVariables();
    for (const [name, text] of Object.entries(filesFor(environment))) {
      Deno.writeTextFileSync(join(work, name), text, { mode: 0o600 });
    }
    using installing = new Installing(`Installing ${lock.name}`);
    installing.join((message) => this.#listeners.forEach((tell) => tell(message)));
    const env = {
      ...environment,
      PML_RUN: `${groups.mark}.`,
      DENO_DIR: join(work, "deno"),
      ...DENO_QUIET,
    };
    const args = ["install", "--frozen", "--no-prompt", "--node-modules-dir=manual"];
    const installer = { file: Deno.execPath(), args, cwd: work, env, kept: true };
    const { code } = await runProgram(installer, {
      signal: closing,
      ms: INSTALL_MS,
      late: (cause) => failed(`it took over ${INSTALL_MS / 1_000} s`, { cause }),
      maxBytes: 0,
      groups,
      onStderr: (text) => installing.hear(text),
    });
    if (code === 0) return;
    const { tail } = installing;
    const [, reason = `deno install ended with ${code}`] = /error: ([^\\]{1,300})/.exec(tail) ?? [];
    throw failed(reason, { detail: { said: tail } });
  }
}

/**
 * Returns the files of the folder that is installed in: only these two packages, with these hashes.
 */
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
    // Without this file, Deno would use one of a parent folder.
    "deno.json": "{}",
    // Deno reads npm settings only next to the package and in the home folder.
    ...settings !== undefined && { ".npmrc": readRegularText(settings, { links: true }) },
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
    hint:
      "Search uses the built-in model. Check the connection to npm's registry and the free disk space",
    cause,
    ...(detail && { detail }),
  });
}

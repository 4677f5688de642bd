/**
 * Installs the packages of servers outside the workspace. PML keeps the version that was installed
 * first, runs no script without an approval, and refuses packages whose files have changed.
 *
 * @module
 */

import { dirname, join } from "node:path";
import { durationText } from "../../../core/amounts.ts";
import { asPmlError, PmlError } from "../../../core/errors.ts";
import { sha256 } from "../../../core/hash.ts";
import { quoted } from "../../../core/json.ts";
import { lockFolder, sweepAbandoned } from "../../../io/folder_lock.ts";
import { InstallProgress, type ReportStep } from "../../../io/install_progress.ts";
import { infoAt } from "../../../io/path_info.ts";
import { copyTree, treeHash, treeStamp } from "../../../io/tree.ts";
import { retryWhileBusy, retryWhileBusySync } from "../../../io/waiting.ts";
import { type ProgramOptions, runProgram } from "../../../sandbox/process.ts";
import { packageFolder, pinnedCommand } from "./installed.ts";
import { findWaitingScripts } from "./waiting_scripts.ts";
import { causeIn } from "../../../core/program_output.ts";
import { npm } from "./_npm.ts";
import type { PackageCommand } from "../_package_command.ts";
import {
  assertUnchanged,
  type InstalledPackage,
  type InstallRecord,
  packageOf,
  readRecord,
  saveRecord,
} from "./_record.ts";
import type { ScriptConfinement } from "./_script_reach.ts";
import {
  announcement,
  findAnnouncedPackages,
  type ScriptedPackage,
  ScriptRun,
} from "./_scripts.ts";
import { uv } from "./_uv.ts";

export type { InstalledPackage };

/** The services of PML that installations use. */
export interface InstallHost {
  /** The PML home. */
  readonly home: string;
  readonly groups: ProgramOptions["groups"];
  /** Returns the environment of installers. */
  installerEnvironment(): Readonly<Record<string, string>>;
  /** Logs a message about an installation. */
  logInstall(level: "debug" | "info", text: string): void;
}

/** Finds the programs of a command. */
export interface ProgramFinder {
  /** Returns the file of a program by its name, or throws. */
  find(program: string): string;
}

/** The finder, the listener and the version for one installation. */
export interface InstallRequest {
  readonly finder: ProgramFinder;
  /** Receives messages about the installation. */
  readonly report: ReportStep;
  /** The pinned version. It counts only if the command names no version. */
  readonly version?: string | undefined;
}

/** A package that is installed in a folder. */
export class PackageInstallation {
  readonly folder: string;
  /** The file of the package's program. */
  readonly file: string;
  /** Version and hash of the package. */
  readonly installed: InstalledPackage;
  /** The record that was in the folder when this object was created. */
  readonly record: InstallRecord;
  readonly #isScriptless: boolean;

  /** `record` is the current record in the folder. */
  constructor(folder: string, record: InstallRecord, { isScriptless }: PackageCommand) {
    this.folder = folder;
    this.file = join(folder, record.file);
    this.installed = packageOf(record);
    this.record = record;
    this.#isScriptless = isScriptless;
  }

  /** Returns the packages with install scripts that did not run. */
  findWaitingScripts(): readonly ScriptedPackage[] {
    return this.#isScriptless ? [] : findWaitingScripts(this.folder, this.record);
  }
}

/** An installation that runs now, and the listeners of all callers that wait for it. */
interface RunningInstall {
  readonly installation: Promise<PackageInstallation>;
  readonly listeners: Set<ReportStep>;
}

const INSTALLERS = { npm, uv };
/**
 * Matches the error of a node that is too old for the option that keeps npm from starting programs.
 */
const OLD_NODE = /--import\S* is not allowed in NODE_OPTIONS/;
/** How long one command of an installer may run, in milliseconds. */
const INSTALL_MS = 300_000;
/** Matches npm's message for a package, or a version, that its registry does not have. */
const NOT_IN_REGISTRY = /: "(?:404 |No matching version found|notarget )/i;
/** How long a package that its registry does not have is not requested again, in milliseconds. */
const MISSING_MS = 30_000;
/** The maximum length of an installer's output, in bytes. */
const OUTPUT_MAX = 1_000_000;

/** The packages in the PML home. */
export class Installs {
  readonly #host: InstallHost;
  readonly #closing: AbortSignal;
  readonly #running = new Map<string, RunningInstall>();
  /** The errors for packages that their registry does not have, by their folders. */
  readonly #missing = new Map<string, { readonly error: unknown; readonly at: number }>();

  /** Installs nothing yet. Aborting `closing` stops installations. */
  constructor(host: InstallHost, closing: AbortSignal) {
    this.#host = host;
    this.#closing = closing;
  }

  /**
   * Returns an installed package. Installs the package if it is missing. Throws
   * `INTEGRITY_MISMATCH` if its files have changed.
   */
  async ensureInstalled(
    command: PackageCommand,
    { finder, report, version }: InstallRequest,
  ): Promise<PackageInstallation> {
    const { home } = this.#host;
    const exactCommand = pinnedCommand(command, home, version);
    const folder = packageFolder(home, exactCommand);
    const running = this.#running.get(folder);
    if (running !== undefined) {
      running.listeners.add(report);
      return await running.installation;
    }
    const failed = this.#missing.get(folder);
    if (failed !== undefined && performance.now() - failed.at < MISSING_MS) throw failed.error;
    const listeners = new Set([report]);
    const reportToAll: ReportStep = (message) => listeners.forEach((listener) => listener(message));
    const request = { folder, finder, report: reportToAll };
    const installation = this.#readOrInstall(exactCommand, request);
    this.#running.set(folder, { installation, listeners });
    try {
      return await installation;
    } catch (error) {
      // If the registry does not have the package, it is not requested again for a while.
      if (NOT_IN_REGISTRY.test(asPmlError(error).message)) {
        this.#missing.set(folder, { error, at: performance.now() });
      }
      throw error;
    } finally {
      this.#running.delete(folder);
    }
  }

  async #readOrInstall(
    command: PackageCommand,
    request: InstallRequest & { readonly folder: string },
  ): Promise<PackageInstallation> {
    const { folder } = request;
    const record = readRecord(folder) ?? await this.#install(command, request);
    // guard: tree
    if (await treeStamp(folder) !== record.stamp) await assertUnchanged(record, folder);
    const { spec } = command;
    this.#host.logInstall("debug", `${spec} is version ${record.version} in ${folder}`);
    return new PackageInstallation(folder, record, command);
  }

  /**
   * Copies an installed package, and runs the scripts that the user approved in the copy. The copy
   * then replaces the package. Throws `APPROVAL_STALE` if the package changed after the user saw
   * it.
   */
  async runScripts(
    { folder, record }: PackageInstallation,
    { scripted, finder, report, confinement }: Pick<InstallRequest, "finder" | "report"> & {
      readonly scripted: readonly ScriptedPackage[];
      readonly confinement: ScriptConfinement;
    },
  ): Promise<void> {
    using _ = lockFolder(folder);
    const current = readRecord(folder);
    // guard: scripts-shown
    if (current?.tree !== record.tree || current.ran?.length !== record.ran?.length) {
      const message = `Cannot run scripts in ${quoted(folder, 400)}: it was changed meanwhile`;
      throw new PmlError("APPROVAL_STALE", message, {
        hint: "Try again, and review the present content",
      });
    }
    await assertUnchanged(current, folder);
    const fresh = `${folder}.${crypto.randomUUID()}`;
    const old = `${folder}.${crypto.randomUUID()}`;
    try {
      copyTree(folder, fresh);
      using installing = new InstallProgress(`Running scripts of ${current.spec}`);
      installing.addListener(report);
      const npm = {
        file: finder.find("npm"),
        args: [],
        cwd: fresh,
        env: this.#host.installerEnvironment(),
      };
      const bounds = { signal: this.#closing, groups: this.#host.groups };
      await new ScriptRun(npm, confinement, bounds).run(scripted, installing);
      const { origin = current.tree, ran = [] } = current;
      const [tree, stamp] = [await treeHash(fresh), await treeStamp(fresh)];
      const now = { tree, stamp, origin, ran: [...ran, ...scripted.map(({ id }) => id)] };
      saveRecord({ ...current, ...now }, fresh);
      // Synchronously, so that other calls of this process always find one of the two folders.
      retryWhileBusySync(() => Deno.renameSync(folder, old));
      retryWhileBusySync(() => Deno.renameSync(fresh, folder));
      retryWhileBusySync(() => Deno.removeSync(old, { recursive: true }));
    } catch (error) {
      if (infoAt(fresh)?.isDirectory) Deno.removeSync(fresh, { recursive: true });
      throw error;
    }
  }

  async #install(
    command: PackageCommand,
    { folder, finder, report }: InstallRequest & { readonly folder: string },
  ): Promise<InstallRecord> {
    const { tool, spec } = command;
    const host = this.#host;
    if (command.isOffline) throw notInstalledError(command);
    const installer = INSTALLERS[tool];
    const fresh = `${folder}.${crypto.randomUUID()}`;
    Deno.mkdirSync(fresh, { recursive: true, mode: 0o700 });
    try {
      await sweepAbandoned(dirname(folder), (name) => name.includes("."));
      for (const [name, text] of Object.entries(installer.files(command))) {
        Deno.writeTextFileSync(join(fresh, name), text);
      }
      const file = finder.find(tool);
      host.logInstall("info", `Installing ${spec}`);
      using installing = new InstallProgress(`Installing ${spec} with ${tool}`);
      installing.addListener(report);
      const outputs: string[] = [];
      let scripted: readonly string[] = [];
      for (const [index, args] of installer.commands(command).entries()) {
        outputs.push(
          await this.#run({ file, args, cwd: fresh }, { command, installing, scripted }),
        );
        if (index > 0 || command.isScriptless) continue;
        scripted = findAnnouncedPackages(fresh);
        if (scripted.length === 0) continue;
        host.logInstall("info", announcement(scripted));
        report(announcement(scripted));
      }
      const foreign = installer.findForeign(fresh, outputs);
      if (foreign !== undefined) {
        const message = `Cannot install ${quoted(spec)}: ${foreign}`;
        throw new PmlError("UPSTREAM_DOWN", message, { hint: npm.hint });
      }
      const program = await installer.programOf(fresh, command);
      const tree = await treeHash(fresh);
      const content = installer.contentOf?.(fresh);
      const record: InstallRecord = {
        spec,
        ...program,
        tree,
        stamp: await treeStamp(fresh),
        ...(content !== undefined && { origin: sha256(content) }),
      };
      saveRecord(record, fresh);
      await retryWhileBusy(() => Deno.rename(fresh, folder));
      host.logInstall("info", `Installed ${spec}: version ${program.version}`);
      report(`Installed ${spec}: version ${program.version}`);
      return record;
    } catch (error) {
      Deno.removeSync(fresh, { recursive: true });
      // If another PML process was faster, its installation is used.
      const otherRecord = readRecord(folder);
      if (otherRecord === undefined) throw error;
      return otherRecord;
    }
  }

  async #run(
    program: { readonly file: string; readonly args: readonly string[]; readonly cwd: string },
    { command: { spec, tool, tokens }, installing, scripted }: {
      readonly command: PackageCommand;
      readonly installing: InstallProgress;
      /** The specs of packages with install scripts. */
      readonly scripted: readonly string[];
    },
  ): Promise<string> {
    const installer = INSTALLERS[tool];
    // With GIT_ALLOW_PROTOCOL, git fetches nothing, no matter which program starts it.
    const env = {
      ...this.#host.installerEnvironment(),
      ...tokens,
      GIT_ALLOW_PROTOCOL: "none",
      ...installer.environment,
    };
    const step = `${tool} ${program.args.slice(0, tool === "uv" ? 2 : 1).join(" ")}`
      .replace(/ --.*/, "");
    const failed = (why: string, code: "UPSTREAM_DOWN" | "TIMED_OUT") => {
      const { tail } = installing;
      const hint = installer.refusals.test(tail)
        ? installer.hint
        : OLD_NODE.test(tail)
        ? "npm needs node 18.19 or newer: PML cannot keep an older one from starting programs"
        : "Check its name and version, and that its registry can be reached";
      const hasScripts = scripted.length > 0;
      const detail = { step, stderr: tail, ...hasScripts && { install_scripts: scripted } };
      const whole = hasScripts ? `${hint}. ${announcement(scripted)}` : hint;
      const message = `Cannot install ${quoted(spec)}: ${why}${causeIn(tail)}`;
      return new PmlError(code, message, { hint: whole, detail });
    };
    const { code, stdout } = await runProgram({ ...program, env, hasKeeper: true }, {
      signal: this.#closing,
      ms: INSTALL_MS,
      late: () => failed(`\`${step}\` took longer than ${durationText(INSTALL_MS)}`, "TIMED_OUT"),
      maxBytes: OUTPUT_MAX,
      groups: this.#host.groups,
      onStderr: (text) => installing.addOutput(text),
    });
    if (code !== 0) throw failed(`\`${step}\` ended with ${code}`, "UPSTREAM_DOWN");
    return stdout;
  }
}

function notInstalledError({ spec }: PackageCommand): PmlError {
  const why = "it is not installed, and `--no-install` (or `--yes=false`) forbids that";
  return new PmlError("UPSTREAM_DOWN", `Cannot start ${quoted(spec)}: ${why}`, {
    hint: "Install it with `pml install SERVER`",
  });
}

/**
 * Installs the packages of servers outside the workspace. The version that was installed first is
 * kept, no script runs by itself, and the files must stay as they were.
 *
 * @module
 */

import { dirname, join } from "node:path";
import { durationText } from "../../../core/amounts.ts";
import { asPmlError, PmlError } from "../../../core/errors.ts";
import { sha256 } from "../../../core/hash.ts";
import { quoted } from "../../../core/json.ts";
import { lockFolder, sweep } from "../../../io/folder_lock.ts";
import { Installing, type ReportStep } from "../../../io/installing.ts";
import { infoAt } from "../../../io/place.ts";
import { copyTree, treeHash, treeStamp } from "../../../io/tree.ts";
import { repeated, repeatedSync } from "../../../io/waiting.ts";
import { type ProgramOptions, runProgram } from "../../../sandbox/process.ts";
import { packageFolder, pinnedCommand } from "./installed.ts";
import { waitingIn } from "./waiting_scripts.ts";
import { causeIn } from "../../../core/program_output.ts";
import { npm } from "./_npm.ts";
import type { PackageCommand } from "../_package_command.ts";
import {
  assertSame,
  type InstalledPackage,
  type InstallRecord,
  packageOf,
  readRecord,
  saveRecord,
} from "./_record.ts";
import type { ScriptConfinement } from "./_script_reach.ts";
import { announcedIn, announcement, runScripts, type ScriptedPackage } from "./_scripts.ts";
import { uv } from "./_uv.ts";

export type { InstalledPackage };

/** The machine that installs packages. */
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

/** One request for a package. */
export interface InstallRequest {
  readonly finder: ProgramFinder;
  /** Called with messages about the installation. */
  readonly tell: ReportStep;
  /** The pinned version, for a command that names none. */
  readonly version?: string | undefined;
}

/** An installed package. */
export class PresentPackage {
  readonly folder: string;
  readonly file: string;
  readonly installed: InstalledPackage;
  /** The record as it was when the package was looked at. */
  readonly record: InstallRecord;
  readonly #isScriptless: boolean;

  /** Takes the folder and the record in it. */
  constructor(folder: string, record: InstallRecord, { isScriptless }: PackageCommand) {
    this.folder = folder;
    this.file = join(folder, record.file);
    this.installed = packageOf(record);
    this.record = record;
    this.#isScriptless = isScriptless;
  }

  /** Returns the packages with install scripts that did not run. */
  waiting(): readonly ScriptedPackage[] {
    return this.#isScriptless ? [] : waitingIn(this.folder, this.record);
  }
}

/** An installation that runs, and the callers that follow its progress. */
interface RunningInstall {
  readonly present: Promise<PresentPackage>;
  readonly listeners: Set<ReportStep>;
}

const INSTALLERS = { npm, uv };
const OLD_NODE = /--import\S* is not allowed in NODE_OPTIONS/;
const INSTALL_MS = 300_000;
/** Matches npm's message for a package, or a version, that its registry does not have. */
const IMPOSSIBLE = /: (?:404 |No matching version found|notarget )/i;
const IMPOSSIBLE_MS = 30_000;
const WRITTEN_MAX = 1_000_000;

/** The packages in the PML home. */
export class Installs {
  readonly #host: InstallHost;
  readonly #closing: AbortSignal;
  readonly #under = new Map<string, RunningInstall>();
  /** The errors of packages that do not exist, by their folders. */
  readonly #impossible = new Map<string, { readonly error: unknown; readonly at: number }>();

  /** Installs nothing yet. `closing` stops installations. */
  constructor(host: InstallHost, closing: AbortSignal) {
    this.#host = host;
    this.#closing = closing;
  }

  /**
   * Returns a package's folder and the file of its program. Installs the package if it is missing.
   */
  async fileOf(
    command: PackageCommand,
    { finder, tell, version }: InstallRequest,
  ): Promise<PresentPackage> {
    const { home } = this.#host;
    const exactCommand = pinnedCommand(command, home, version);
    const folder = packageFolder(home, exactCommand);
    const installation = this.#under.get(folder);
    if (installation !== undefined) {
      installation.listeners.add(tell);
      return await installation.present;
    }
    const failed = this.#impossible.get(folder);
    if (failed !== undefined && performance.now() - failed.at < IMPOSSIBLE_MS) throw failed.error;
    const listeners = new Set([tell]);
    const all: ReportStep = (message) => listeners.forEach((one) => one(message));
    const present = this.#present(exactCommand, { folder, finder, tell: all });
    this.#under.set(folder, { present, listeners });
    try {
      return await present;
    } catch (error) {
      // A package that its registry does not have is not asked for again at once.
      if (IMPOSSIBLE.test(asPmlError(error).message)) {
        this.#impossible.set(folder, { error, at: performance.now() });
      }
      throw error;
    } finally {
      this.#under.delete(folder);
    }
  }

  async #present(
    command: PackageCommand,
    { folder, ...wanting }: InstallRequest & { readonly folder: string },
  ): Promise<PresentPackage> {
    const record = readRecord(folder) ?? await this.#installed(command, { folder, ...wanting });
    // guard: tree
    if (await treeStamp(folder) !== record.stamp) await assertSame(record, folder);
    const { spec } = command;
    this.#host.logInstall("debug", `${spec} is version ${record.version} in ${folder}`);
    return new PresentPackage(folder, record, command);
  }

  /**
   * Runs scripts that the user approved in a copy of a package. The copy then replaces the package.
   */
  async runScripts(
    { folder, record }: PresentPackage,
    { scripted, finder, tell, confining }: Pick<InstallRequest, "finder" | "tell"> & {
      readonly scripted: readonly ScriptedPackage[];
      readonly confining: ScriptConfinement;
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
    await assertSame(current, folder);
    const fresh = `${folder}.${crypto.randomUUID()}`;
    const old = `${folder}.${crypto.randomUUID()}`;
    try {
      copyTree(folder, fresh);
      using installing = new Installing(`Running scripts of ${current.spec}`);
      installing.join(tell);
      await runScripts(scripted, {
        npm: finder.find("npm"),
        cwd: fresh,
        env: this.#host.installerEnvironment(),
        signal: this.#closing,
        groups: this.#host.groups,
        installing,
        confining,
      });
      const { origin = current.tree, ran = [] } = current;
      const [tree, stamp] = [await treeHash(fresh), await treeStamp(fresh)];
      const now = { tree, stamp, origin, ran: [...ran, ...scripted.map(({ id }) => id)] };
      saveRecord({ ...current, ...now }, fresh);
      // In one turn, so that other calls of this process find either folder.
      repeatedSync(() => Deno.renameSync(folder, old));
      repeatedSync(() => Deno.renameSync(fresh, folder));
      repeatedSync(() => Deno.removeSync(old, { recursive: true }));
    } catch (error) {
      if (infoAt(fresh)?.isDirectory) Deno.removeSync(fresh, { recursive: true });
      throw error;
    }
  }

  async #installed(
    command: PackageCommand,
    { folder, finder, tell }: InstallRequest & { readonly folder: string },
  ): Promise<InstallRecord> {
    const { tool, spec } = command;
    const host = this.#host;
    if (command.isOffline) throw notThere(command);
    const installer = INSTALLERS[tool];
    const fresh = `${folder}.${crypto.randomUUID()}`;
    Deno.mkdirSync(fresh, { recursive: true, mode: 0o700 });
    try {
      await sweep(dirname(folder), (name) => name.includes("."));
      for (const [name, text] of Object.entries(installer.files(command))) {
        Deno.writeTextFileSync(join(fresh, name), text);
      }
      const file = finder.find(tool);
      host.logInstall("info", `Installing ${spec}`);
      using installing = new Installing(`Installing ${spec} with ${tool}`);
      installing.join(tell);
      const wrote: string[] = [];
      let named: readonly string[] = [];
      for (const [at, args] of installer.commands(command).entries()) {
        wrote.push(
          await this.#run({ file, args, cwd: fresh }, { command, installing, named }),
        );
        if (at > 0 || command.isScriptless) continue;
        named = announcedIn(fresh);
        if (named.length === 0) continue;
        host.logInstall("info", announcement(named));
        tell(announcement(named));
      }
      const foreign = installer.foreign(fresh, wrote);
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
      await repeated(() => Deno.rename(fresh, folder));
      host.logInstall("info", `Installed ${spec}: version ${program.version}`);
      tell(`Installed ${spec}: version ${program.version}`);
      return record;
    } catch (error) {
      Deno.removeSync(fresh, { recursive: true });
      const others = readRecord(folder);
      // Another PML was faster. Its installation is used.
      if (others === undefined) throw error;
      return others;
    }
  }

  async #run(
    program: { readonly file: string; readonly args: readonly string[]; readonly cwd: string },
    { command: { spec, tool, tokens }, installing, named }: {
      readonly command: PackageCommand;
      readonly installing: Installing;
      /** The packages with install scripts. */
      readonly named: readonly string[];
    },
  ): Promise<string> {
    const installer = INSTALLERS[tool];
    // git fetches nothing, whichever program starts it.
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
      const detail = { step, stderr: tail, ...named.length > 0 && { install_scripts: named } };
      const whole = named.length > 0 ? `${hint}. ${announcement(named)}` : hint;
      const message = `Cannot install ${quoted(spec)}: ${why}${causeIn(tail)}`;
      return new PmlError(code, message, { hint: whole, detail });
    };
    const { code, stdout } = await runProgram({ ...program, env, kept: true }, {
      signal: this.#closing,
      ms: INSTALL_MS,
      late: () => failed(`\`${step}\` took longer than ${durationText(INSTALL_MS)}`, "TIMED_OUT"),
      maxBytes: WRITTEN_MAX,
      groups: this.#host.groups,
      onStderr: (text) => installing.hear(text),
    });
    if (code !== 0) throw failed(`\`${step}\` ended with ${code}`, "UPSTREAM_DOWN");
    return stdout;
  }
}

function notThere({ spec }: PackageCommand): PmlError {
  const why = "it is not installed, and `--no-install` (or `--yes=false`) forbids that";
  return new PmlError("UPSTREAM_DOWN", `Cannot start ${quoted(spec)}: ${why}`, {
    hint: "Install it with `pml install SERVER`",
  });
}

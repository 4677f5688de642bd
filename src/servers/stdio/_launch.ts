/**
 * Finds the program that a server is started with: its own command, or what PML installed for it.
 *
 * @module
 */

import { devNull } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { PmlError } from "../../core/errors.ts";
import { sha256 } from "../../core/hash.ts";
import { quoted } from "../../core/json.ts";
import { plainCommand, runsContainers } from "../../core/plain_command.ts";
import { variablesOf } from "../../core/steering.ts";
import type { Tell } from "../../io/installing.ts";
import { confinedProgram, type Layer, programLayer } from "../../sandbox/confined_program.ts";
import type { Program } from "../../sandbox/process.ts";
import { findProgram, searchPath, withEnding } from "../../sandbox/search_path.ts";
import { confinedAccess, confinedArgs, coversOf } from "./_confined.ts";
import { denialIn } from "./_denial.ts";
import { takesFromFolder } from "./_folder_code.ts";
import { grantedPrograms } from "./_granted_programs.ts";
import { type NewestVersion, newestVersion } from "./install/_newest.ts";
import {
  type PackageCommand,
  packageCommand,
  packageIfAny,
  type WrittenCommand,
} from "./_package_command.ts";
import type { ScriptConfinement } from "./install/_script_reach.ts";
import { type ScriptedPackage, scriptsHint } from "./install/_scripts.ts";
import { serverReach } from "./_server_reach.ts";
import { dataFolder, withDataFolder } from "./data_folder.ts";
import { type InstalledPackage, Installs, type PresentPackage } from "./install/installs.ts";
import type { StdioServersOptions, StdioValues } from "./stdio_servers.ts";
import { StdioWire, type StdioWireOptions } from "./stdio_wire.ts";

// What starts a program also talks to it.
export { StdioWire };

/** The program of a server, and functions that explain a failed start or a denied access. */
export type LaunchedProgram = Pick<StdioWireOptions, "program" | "hint" | "denied">;

/** The package of a server, and its install scripts. */
export interface ServerScripts {
  readonly installed: InstalledPackage;
  /** The packages whose scripts did not run yet. */
  readonly waiting: readonly ScriptedPackage[];
  /** The layer that would confine the scripts. */
  readonly layer: Layer;
  /** Runs the scripts of the packages that a person agreed to. */
  readonly run: (agreed: readonly ScriptedPackage[], tell: Tell) => Promise<void>;
}

/** The newest version of a server's package. */
export interface NewestPackage extends NewestVersion {
  /** The package as the command names it, and its bare name. */
  readonly spec: string;
  readonly name: string;
  /** Installs that version beside the one that is there. No script of it runs. */
  readonly install: (tell: Tell) => Promise<InstalledPackage>;
}

/** A command that may name a package. */
export type NamedPackage = Pick<StdioValues, "name" | "command" | "args" | "env" | "cwd">;

/** Finds and installs the programs of servers. */
export class Launch {
  readonly #options: StdioServersOptions;
  readonly #installs: Installs;
  readonly #closing: AbortSignal;

  /** Takes the options; `closing` stops installations. */
  constructor(options: StdioServersOptions, closing: AbortSignal) {
    this.#options = options;
    this.#closing = closing;
    const { home, groups } = options;
    this.#installs = new Installs({
      home,
      environment: () => this.#installerEnvironment(),
      groups,
      closing,
      onLog: (level, text) => options.onLog("install", level, text),
    });
  }

  /** Returns the program of a server. Installs the package first if it is missing. */
  async programOf(given: StdioValues): Promise<LaunchedProgram> {
    const { name, command, args, trial } = given;
    const data = this.#dataFolder(name);
    // What lies in the workspace is no part of a server that is defined elsewhere.
    const cwd = given.isGuest && takesFromFolder(given) ? data : given.cwd;
    const server = { ...given, cwd };
    // The variables of a trial may name the folder of the server's data.
    const tried = withDataFolder(trial?.env ?? {}, data);
    const env = { ...variablesOf(server.env), ...variablesOf(tried) };
    const { groups } = this.#options;
    const environment = this.#environmentOf(server);
    const confine = server.confine || trial !== undefined;
    // The server is confined to the folder, or its definition names it.
    const isUsed = [cwd, ...args, ...Object.values(server.env)].some((one) => one.includes(data));
    if (confine || isUsed) Deno.mkdirSync(data, { recursive: true, mode: 0o700 });
    const path = this.#path().join(delimiter);
    const wanted = packageCommand(server);
    const named = variablesOf(wanted?.env ?? {});
    const own = { ...environment, PATH: path, ...env, ...named, PML_RUN: `${groups.mark}.` };
    if (confine && wanted?.tool !== "npm") {
      const instead = "Start it with npx";
      throw unconfinable(name, command, { why: "is not an npm package", instead });
    }
    if (wanted === undefined) {
      return { program: { file: this.#found(command, server), args, cwd, env: own } };
    }
    // These options are for node, but Deno would run a confined server.
    if (confine && wanted.env.NODE_OPTIONS !== undefined) {
      throw unconfinable(name, "--node-options", { why: "works only with node" });
    }
    const steering = Object.keys(own).find((each) => STEERS_DENO.test(each));
    if (confine && steering !== undefined) {
      throw unconfinable(name, steering, { why: "changes its permissions" });
    }
    const present = await this.#installed(server, wanted);
    const hint = () => scriptsHint(name, present.waiting());
    return { ...await this.#program({ ...server, confine }, { wanted, present, env: own }), hint };
  }

  /** Returns the environment of a server without its own variables. */
  #environmentOf(
    server: Pick<StdioValues, "command" | "args">,
  ): Readonly<Record<string, string>> {
    const { environment, containerEnvironment } = this.#options;
    return runsContainers(plainCommand(server))
      ? { ...environment, ...containerEnvironment }
      : environment;
  }

  /** Returns the names of those servers whose command installs a package. */
  packaged(servers: readonly WrittenCommand[]): readonly string[] {
    return servers.filter((server) => packageIfAny(server) !== undefined).map(({ name }) => name);
  }

  /** Installs the package of a server, and returns its packages with scripts that did not run. */
  async scriptsOf(server: StdioValues): Promise<ServerScripts> {
    const wanted = packageCommand(server);
    if (wanted === undefined) {
      const message = `Cannot install ${quoted(server.name)}: its command names no package`;
      throw new PmlError("BAD_ARGUMENTS", message, { hint: "`npx` and `uvx` name one" });
    }
    // The person asks for this installation, so an offline option of the command does not count.
    const present = await this.#installed(server, { ...wanted, isOffline: false });
    const waiting = present.waiting();
    const confining = await this.#confining(waiting);
    return {
      installed: present.installed,
      waiting,
      layer: confining.layer,
      run: async (scripted, tell) => {
        const find = this.#finder(server, wanted);
        await this.#installs.runScripts(present, { scripted, tell, find, confining });
      },
    };
  }

  /** Looks up the newest version of a server's package; undefined if npm has no such package. */
  async newestOf(server: NamedPackage): Promise<NewestPackage | undefined> {
    const wanted = packageCommand(server);
    if (wanted?.tool !== "npm") return undefined;
    const { groups, home } = this.#options;
    const find = this.#finder(server, wanted);
    const env = this.#installerEnvironment();
    const where = { file: find("npm"), cwd: home, env, signal: this.#closing, groups };
    const found = await newestVersion(wanted, where);
    const install = async (tell: Tell) => {
      const asked = { ...wanted, isOffline: false };
      return (await this.#installs.fileOf(asked, { find, tell, version: found.newest })).installed;
    };
    return { ...found, spec: wanted.spec, name: wanted.name, install };
  }

  /** Finds the layer that confines scripts on this machine, if there are scripts. */
  async #confining(waiting: readonly ScriptedPackage[]): Promise<ScriptConfinement> {
    const { home, environment, certificates } = this.#options;
    const workspace = this.#options.workspace();
    const where = { home, workspace, userHome: environment.HOME ?? home, certificates };
    if (waiting.length === 0) return { ...where, layer: { kind: "none", why: "nothing runs" } };
    return { ...where, layer: await this.#layer() };
  }

  async #layer(): Promise<Layer> {
    const { osLayer, workspace } = this.#options;
    const path = this.#path().join(delimiter);
    return await programLayer({ wanted: osLayer(), path, workspace: workspace() });
  }

  async #installed(server: StdioValues, wanted: PackageCommand): Promise<PresentPackage> {
    const { starts, packages } = this.#options;
    const { name, definition } = server;
    const present = await this.#installs.fileOf(wanted, {
      find: this.#finder(server, wanted),
      tell: (message) => starts.tell(name, message),
      version: await packages?.versionOf(definition),
    });
    // guard: package-check
    await packages?.check(definition, present.installed);
    return present;
  }

  #installerEnvironment(): Readonly<Record<string, string>> {
    const { environment, installEnvironment, groups } = this.#options;
    const path = this.#path().join(delimiter);
    return { ...environment, ...installEnvironment(), PATH: path, PML_RUN: `${groups.mark}.` };
  }

  async #program(
    server: StdioValues,
    { wanted, present: { folder, file }, env }: {
      readonly wanted: PackageCommand;
      readonly present: PresentPackage;
      readonly env: Readonly<Record<string, string>>;
    },
  ): Promise<LaunchedProgram> {
    const { cwd } = server;
    const { args, runtime } = wanted;
    if (server.confine) return await this.#confined(server, { folder, file, args, env });
    if (runtime === undefined) {
      // Python would write compiled files, which are not among the installed ones.
      return { program: { file, args, cwd, env: { PYTHONDONTWRITEBYTECODE: "1", ...env } } };
    }
    // The command asked for this runtime by its name: packages of npm are written for node.
    const run = this.#finder(server, wanted)(runtime);
    return { program: { file: run, args: [...APART[runtime], file, ...args], cwd, env } };
  }

  async #confined(
    { name, cwd, trial }: StdioValues,
    { folder, file, args, env }: Omit<Program, "cwd"> & { readonly folder: string },
  ): Promise<LaunchedProgram> {
    const { workspace, grants, certificates, home, environment } = this.#options;
    const layer = await this.#layer();
    const where = {
      ...{ name, home, certificates, isHeld: layer.kind !== "none" },
      ...{ workspace: workspace(), protection: this.#options.protection() },
    };
    const granted = trial?.grants ?? grants(name) ?? {};
    const { run, write } = confinedAccess({ ...where, grants: granted });
    const programs = grantedPrograms(run, { ...where, cwd, path: env.PATH, write });
    const paths = [...where.protection.paths ?? [], ...programs.files];
    const protection = { ...where.protection, paths };
    const confinement = { ...where, folder, grants: granted, protection };
    const { HOME: userHome = home } = environment;
    // A granted program can write in it, and Deno runs code that is kept there.
    const denoDir = join(home, "servers", "deno", sha256(this.#dataFolder(name)).slice(0, 32));
    const program = {
      file: Deno.execPath(),
      args: [...confinedArgs(confinement), file, ...args],
      cwd,
      env: {
        ...env,
        PATH: programs.path,
        DENO_DIR: denoDir,
        DENO_NO_UPDATE_CHECK: "1",
        ...trial && { DENO_AUDIT_PERMISSIONS: trial.file },
      },
      kept: true,
    };
    // A layer can only open what exists.
    Deno.mkdirSync(denoDir, { recursive: true, mode: 0o700 });
    const own = [denoDir, ...trial === undefined ? [] : [trial.file]];
    const reach = serverReach(confinement, { userHome, path: programs.path, own });
    return {
      program: confinedProgram(program, { layer, reach, covers: coversOf(confinement) }),
      denied: (text) =>
        denialIn(text, { ...where, cwd, userHome, grants: granted, env: {}, given: [] }),
    };
  }

  #dataFolder(name: string): string {
    const { home, workspace } = this.#options;
    return dataFolder({ home, workspace: workspace(), name });
  }

  /**
   * Returns what finds a program in the folder of the command, if the command is a path, otherwise
   * on PATH.
   */
  #finder({ name, cwd }: NamedPackage, { command }: PackageCommand): (program: string) => string {
    return (program) => {
      const beside = resolve(cwd, join(dirname(command), program));
      const where = { path: [dirname(beside)], workspace: this.#options.workspace() };
      const file = /[\\/]/.test(command) ? findProgram(program, where) : undefined;
      return file ?? this.#found(program, { name, cwd });
    };
  }

  #found(command: string, { name, cwd }: Pick<StdioValues, "name" | "cwd">): string {
    // The person wrote this path and was shown it.
    if (/[\\/]/.test(command)) return withEnding(resolve(cwd, command));
    const where = { path: this.#path(), workspace: this.#options.workspace() };
    const file = findProgram(command, where);
    if (file !== undefined) return file;
    const why = `command ${quoted(command, 300)} is not on PATH`;
    throw new PmlError("UPSTREAM_DOWN", `Cannot start ${quoted(name)}: ${why}`, {
      hint: "Install it, or give its absolute path",
    });
  }

  #path(): readonly string[] {
    const { environment, workspace } = this.#options;
    return searchPath(environment.PATH, workspace());
  }
}

/** Bun would run what `bunfig.toml` of its folder says, with the variables in `.env` there. */
const APART = { node: [], bun: [`--config=${devNull}`, `--env-file=${devNull}`] };

/**
 * Variables that could remove the permissions of a server: those of Deno, but not those for
 * certificates, and those of the loader, which loads other code into Deno.
 */
const STEERS_DENO = /^(?:DENO_(?!CERT$|TLS_CA_STORE$)|(?:DY)?LD_)/i;

function unconfinable(
  name: string,
  what: string,
  { why, instead = "Remove it from the definition" }: {
    readonly why: string;
    readonly instead?: string;
  },
): PmlError {
  const message = `Cannot confine ${quoted(name)}: ${quoted(what, 300)} ${why}`;
  return new PmlError("UPSTREAM_DOWN", message, {
    hint: `${instead}, or remove \`confine\`: then it runs with your rights`,
  });
}

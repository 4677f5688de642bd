/**
 * Installs the packages of servers, finds their programs, and confines the programs.
 *
 * @module
 */

import { devNull } from "node:os";
import { join } from "node:path";
import { PmlError } from "../../core/errors.ts";
import { sha256 } from "../../core/hash.ts";
import { quoted } from "../../core/json.ts";
import type { ReportStep } from "../../io/install_progress.ts";
import { confinedProgram, type Layer, programLayer } from "../../sandbox/confined_program.ts";
import type { Program } from "../../sandbox/program.ts";
import { confinedAccess, confinedArgs, coversOf } from "./_confined_access.ts";
import { CommandFinder } from "./_command_finder.ts";
import { grantedPrograms } from "./_granted_programs.ts";
import { lookUpNewest, type NewestVersion } from "./install/_newest.ts";
import { type PackageCommand, packageCommand } from "./_package_command.ts";
import type { ScriptConfinement } from "./install/_script_reach.ts";
import type { ScriptedPackage } from "./install/_scripts.ts";
import { PackageProgram } from "./_package_program.ts";
import { serverReach } from "./_server_reach.ts";
import { dataFolder } from "./data_folder.ts";
import {
  type InstalledPackage,
  type InstallHost,
  Installs,
  type PackageInstallation,
} from "./install/installs.ts";
import type { ProgramHost, StdioValues } from "./program_host.ts";
import { programPath, type ServerProgram, type StartSettings } from "./own_program.ts";

/**
 * The installer of a package, and the finder of the programs with which it is installed and run.
 */
interface PackageTools {
  readonly installs: Installs;
  readonly finder: CommandFinder;
}

/** The install scripts that a server's package and its dependencies contain. */
export class ServerScripts {
  /** The packages with scripts that did not run yet. */
  readonly packagesWithScripts: readonly ScriptedPackage[];
  readonly #tools: PackageTools;
  readonly #installation: PackageInstallation;
  readonly #confinement: ScriptConfinement;

  /** `confinement` is the layer for the scripts, and the paths that they can use. */
  constructor(
    tools: PackageTools,
    installation: PackageInstallation,
    confinement: ScriptConfinement,
  ) {
    this.packagesWithScripts = installation.findWaitingScripts();
    this.#tools = tools;
    this.#installation = installation;
    this.#confinement = confinement;
  }

  /** Version and hash of the server's package. */
  get installed(): InstalledPackage {
    return this.#installation.installed;
  }

  /** The layer that would confine the scripts. */
  get layer(): Layer {
    return this.#confinement.layer;
  }

  /** Runs the scripts of the packages that the user approved. */
  async run(scripted: readonly ScriptedPackage[], report: ReportStep): Promise<void> {
    const { installs, finder } = this.#tools;
    const confinement = this.#confinement;
    await installs.runScripts(this.#installation, { scripted, report, finder, confinement });
  }
}

/** The newest version of a server's package. */
export class NewestPackage implements NewestVersion {
  /** The package as the command names it, such as `name@1.2.3`. */
  readonly spec: string;
  readonly name: string;
  /** The exact version that the command names, if it names one. */
  readonly namedVersion: string | undefined;
  readonly newestVersion: string;
  /** The changes that the newest version describes, if it describes any. */
  readonly changes: string | undefined;
  readonly #tools: PackageTools;
  readonly #command: PackageCommand;

  /** `command` names the package that is used now. */
  constructor(tools: PackageTools, command: PackageCommand, newest: NewestVersion) {
    this.spec = command.spec;
    this.name = command.name;
    this.namedVersion = newest.namedVersion;
    this.newestVersion = newest.newestVersion;
    this.changes = newest.changes;
    this.#tools = tools;
    this.#command = command;
  }

  /** Installs the newest version next to the version in use. Runs no install script. */
  async install(report: ReportStep): Promise<InstalledPackage> {
    const { installs, finder } = this.#tools;
    const command = { ...this.#command, isOffline: false };
    const request = { finder, report, version: this.newestVersion };
    return (await installs.ensureInstalled(command, request)).installed;
  }
}

/** The command of a server, and the values that it needs to find a package. */
export type CommandValues = Pick<StdioValues, "name" | "command" | "args" | "env" | "cwd">;

/** Finds and installs the programs of servers. The caller starts them. */
export class ServerPrograms implements InstallHost {
  readonly #host: ProgramHost;
  readonly #installs: Installs;
  readonly #closing: AbortSignal;

  /** `host` is the machine. Aborting `closing` stops installations. */
  constructor(host: ProgramHost, closing: AbortSignal) {
    this.#host = host;
    this.#closing = closing;
    this.#installs = new Installs(this, closing);
  }

  /** The PML home. */
  get home(): string {
    return this.#host.home;
  }

  /** Records process groups. */
  get groups(): ProgramHost["groups"] {
    return this.#host.groups;
  }

  /** Logs a message about an installation. */
  logInstall(level: "debug" | "info", text: string): void {
    this.#host.logServer("install", level, text);
  }

  /** Returns the environment of installers. */
  installerEnvironment(): Readonly<Record<string, string>> {
    const { serverEnvironment, groups } = this.#host;
    const more = this.#host.installEnvironment();
    // The reaper (`sandbox/reaper.ts`) kills processes by this mark. The dot ends the mark: text
    // that `sandbox/process.ts` appends follows.
    return { ...serverEnvironment, ...more, PATH: this.#path, PML_RUN: `${groups.mark}.` };
  }

  /**
   * Returns the program of a server whose command installs a package. Installs the package first if
   * it is missing. Confines the program if the settings require it; throws if it cannot be
   * confined.
   */
  async programOf(settings: StartSettings): Promise<ServerProgram> {
    const { server, env, isConfined, package: command } = settings;
    const { name } = server;
    if (isConfined && command?.tool !== "npm") {
      const instead = "Start it with npx";
      throw unconfinableError(name, server.command, { why: "is not an npm package", instead });
    }
    if (command === undefined) throw new Error(`the command of ${name} installs no package`);
    // `npx --node-options` sets this variable. Deno runs confined servers and ignores it.
    if (isConfined && command.env.NODE_OPTIONS !== undefined) {
      throw unconfinableError(name, "--node-options", { why: "works only with node" });
    }
    const unsafeVariable = Object.keys(env).find((each) => UNSAFE_VARIABLE.test(each));
    if (isConfined && unsafeVariable !== undefined) {
      throw unconfinableError(name, unsafeVariable, { why: "changes its permissions" });
    }
    const installation = await this.#install(server, command);
    const program = await this.#program({ ...server, confine: isConfined }, {
      command,
      installation,
      env,
    });
    program.setPackage(name, installation);
    return program;
  }

  /**
   * Installs the package of a server. Returns the install scripts of the package and its
   * dependencies that did not run. Throws `BAD_ARGUMENTS` if the command installs no package.
   */
  async scriptsOf(server: StdioValues): Promise<ServerScripts> {
    const command = packageCommand(server);
    if (command === undefined) {
      const message = `Cannot install ${quoted(server.name)}: its command names no package`;
      throw new PmlError("BAD_ARGUMENTS", message, { hint: "`npx` and `uvx` name one" });
    }
    // The user requests this installation, so an offline option of the command is ignored.
    const installation = await this.#install(server, { ...command, isOffline: false });
    const confinement = await this.#scriptConfinement(installation.findWaitingScripts());
    return new ServerScripts(this.#toolsOf(server, command), installation, confinement);
  }

  /**
   * Looks up the newest version of a server's package. Returns undefined if the command of the
   * server installs no npm package.
   */
  async newestOf(server: CommandValues): Promise<NewestPackage | undefined> {
    const command = packageCommand(server);
    if (command?.tool !== "npm") return undefined;
    const tools = this.#toolsOf(server, command);
    const env = this.installerEnvironment();
    const npm = { file: tools.finder.find("npm"), cwd: this.home, env };
    const running = { signal: this.#closing, groups: this.groups };
    return new NewestPackage(tools, command, await lookUpNewest(command, { ...npm, ...running }));
  }

  /**
   * Returns the layer for scripts and the paths that it needs. Without scripts, looks for no layer.
   */
  async #scriptConfinement(waiting: readonly ScriptedPackage[]): Promise<ScriptConfinement> {
    const { home, serverEnvironment, certificates, workspace } = this.#host;
    const where = { home, workspace, userHome: serverEnvironment.HOME ?? home, certificates };
    if (waiting.length === 0) return { ...where, layer: { kind: "none", why: "nothing runs" } };
    return { ...where, layer: await this.#layer() };
  }

  async #layer(): Promise<Layer> {
    const { osLayer: choice, workspace } = this.#host;
    return await programLayer(choice, this.#path, workspace);
  }

  async #install(server: StdioValues, command: PackageCommand): Promise<PackageInstallation> {
    const { starts, packages } = this.#host;
    const { name, definition } = server;
    const installation = await this.#installs.ensureInstalled(command, {
      finder: this.#toolsOf(server, command).finder,
      report: (message) => starts.report(name, message),
      version: await packages?.versionOf(definition),
    });
    // guard: package-check
    await packages?.check(definition, installation.installed);
    return installation;
  }

  #toolsOf(server: CommandValues, { command }: PackageCommand): PackageTools {
    return { installs: this.#installs, finder: new CommandFinder(this.#host, server, command) };
  }

  async #program(
    server: StdioValues,
    { command, installation: { folder, file }, env }: {
      readonly command: PackageCommand;
      readonly installation: PackageInstallation;
      readonly env: Readonly<Record<string, string>>;
    },
  ): Promise<PackageProgram> {
    const { cwd } = server;
    const { args, runtime } = command;
    if (server.confine) return await this.#confined(server, { folder, file, args, env });
    if (runtime === undefined) {
      // Python would write compiled files, which would change the hash of the installation.
      const pythonEnv = { PYTHONDONTWRITEBYTECODE: "1", ...env };
      return new PackageProgram({ file, args, cwd, env: pythonEnv });
    }
    return new PackageProgram({
      file: this.#toolsOf(server, command).finder.find(runtime),
      args: [...ISOLATION_ARGS[runtime], file, ...args],
      cwd,
      env,
    });
  }

  async #confined(
    { name, cwd, trial }: StdioValues,
    { folder, file, args, env }: Omit<Program, "cwd"> & { readonly folder: string },
  ): Promise<PackageProgram> {
    const layer = await this.#layer();
    const { workspace, protection: usualProtection, certificates, home, serverEnvironment } =
      this.#host;
    const where = {
      name,
      home,
      certificates,
      hasSystemLayer: layer.kind !== "none",
      workspace,
      protection: usualProtection,
    };
    const granted = trial?.grants ?? this.#host.grants(name) ?? {};
    const { run, write } = confinedAccess({ ...where, grants: granted });
    const programs = grantedPrograms(run, { ...where, cwd, path: env.PATH, write });
    const paths = [...where.protection.paths ?? [], ...programs.files];
    const protection = { ...where.protection, paths };
    const confinement = { ...where, folder, grants: granted, protection };
    const { HOME: userHome = home } = serverEnvironment;
    // Each server has a separate cache folder. A granted program can write in it, and Deno runs
    // code from its cache: in a shared folder, one server could insert code into another.
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
      hasKeeper: true,
    };
    // A layer can only allow paths that exist.
    Deno.mkdirSync(denoDir, { recursive: true, mode: 0o700 });
    const pmlPaths = [denoDir, ...trial === undefined ? [] : [trial.file]];
    const reach = serverReach(confinement, { userHome, path: programs.path, pmlPaths });
    // Error messages propose a missing grant from these options, as a trial of `pml learn` does.
    const denialOptions = { ...where, cwd, userHome, grants: granted, env: {}, variableNames: [] };
    return new PackageProgram(
      confinedProgram(program, { layer, reach, covers: coversOf(confinement) }),
      denialOptions,
    );
  }

  #dataFolder(name: string): string {
    const { home, workspace } = this.#host;
    return dataFolder({ home, workspace, name });
  }

  get #path(): string {
    return programPath(this.#host);
  }
}

/**
 * Arguments that isolate a runtime from the folder in which it starts. Without them, bun runs code
 * that `bunfig.toml` in that folder names, with the variables in `.env`.
 */
const ISOLATION_ARGS = { node: [], bun: [`--config=${devNull}`, `--env-file=${devNull}`] };

/**
 * Matches variables that could remove the permissions of a server: those of Deno (except those for
 * certificates), and those of the dynamic loader, which can load other code into Deno.
 */
const UNSAFE_VARIABLE = /^(?:DENO_(?!CERT$|TLS_CA_STORE$)|(?:DY)?LD_)/i;

function unconfinableError(
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

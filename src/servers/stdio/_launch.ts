/**
 * Finds the program that a server is started with: its own command, or the package that PML
 * installed.
 *
 * @module
 */

import { devNull } from "node:os";
import { delimiter, join } from "node:path";
import { PmlError } from "../../core/errors.ts";
import { sha256 } from "../../core/hash.ts";
import { quoted } from "../../core/json.ts";
import { plainCommand, runsContainers } from "../../core/plain_command.ts";
import { comparedVariables } from "../../core/steering.ts";
import type { ReportStep } from "../../io/installing.ts";
import { confinedProgram, type Layer, programLayer } from "../../sandbox/confined_program.ts";
import type { Program } from "../../sandbox/program.ts";
import { confinedAccess, confinedArgs, coversOf } from "./_confined.ts";
import { CommandFinder, searchFolders } from "./_command_finder.ts";
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
import type { ScriptedPackage } from "./install/_scripts.ts";
import { LaunchedProgram } from "./_launched_program.ts";
import { serverReach } from "./_server_reach.ts";
import { dataFolder, withDataFolder } from "./data_folder.ts";
import {
  type InstalledPackage,
  type InstallHost,
  Installs,
  type PresentPackage,
} from "./install/installs.ts";
import type { ProgramHost, StdioValues } from "./program_host.ts";
import { StdioWire } from "./stdio_wire.ts";

// A caller that starts a program also needs its wire.
export { StdioWire };

/** The installer of a package, and the finder of its programs. */
interface Installation {
  readonly installs: Installs;
  readonly finder: CommandFinder;
}

/** The package of a server, and its install scripts. */
export class ServerScripts {
  /** The packages whose scripts did not run yet. */
  readonly waiting: readonly ScriptedPackage[];
  readonly #from: Installation;
  readonly #present: PresentPackage;
  readonly #confining: ScriptConfinement;

  /** Takes the package, and how its scripts would be confined. */
  constructor(from: Installation, present: PresentPackage, confining: ScriptConfinement) {
    this.waiting = present.waiting();
    this.#from = from;
    this.#present = present;
    this.#confining = confining;
  }

  /** The package. */
  get installed(): InstalledPackage {
    return this.#present.installed;
  }

  /** The layer that would confine the scripts. */
  get layer(): Layer {
    return this.#confining.layer;
  }

  /** Runs the scripts of the packages that the user approved. */
  async run(scripted: readonly ScriptedPackage[], tell: ReportStep): Promise<void> {
    const { installs, finder } = this.#from;
    const confining = this.#confining;
    await installs.runScripts(this.#present, { scripted, tell, finder, confining });
  }
}

/** The newest version of a server's package. */
export class NewestPackage implements NewestVersion {
  /** The package as the command names it, and its bare name. */
  readonly spec: string;
  readonly name: string;
  readonly named: string | undefined;
  readonly newest: string;
  readonly changes: string | undefined;
  readonly #from: Installation;
  readonly #command: PackageCommand;

  /** Takes the package as it is wanted, and its newest version. */
  constructor(from: Installation, command: PackageCommand, newest: NewestVersion) {
    this.spec = command.spec;
    this.name = command.name;
    this.named = newest.named;
    this.newest = newest.newest;
    this.changes = newest.changes;
    this.#from = from;
    this.#command = command;
  }

  /** Installs that version next to the present one. No script of it runs. */
  async install(tell: ReportStep): Promise<InstalledPackage> {
    const { installs, finder } = this.#from;
    const command = { ...this.#command, isOffline: false };
    return (await installs.fileOf(command, { finder, tell, version: this.newest })).installed;
  }
}

/** A command that may name a package. */
export type NamedPackage = Pick<StdioValues, "name" | "command" | "args" | "env" | "cwd">;

/** Finds and installs the programs of servers. */
export class Launch implements InstallHost {
  readonly #host: ProgramHost;
  readonly #installs: Installs;
  readonly #closing: AbortSignal;

  /** Takes the machine; `closing` stops installations. */
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
    return { ...serverEnvironment, ...more, PATH: this.#path, PML_RUN: `${groups.mark}.` };
  }

  /** Returns the program of a server. Installs the package first if it is missing. */
  async programOf(values: StdioValues): Promise<LaunchedProgram> {
    const { name, command, args, trial } = values;
    const data = this.#dataFolder(name);
    // Files of the workspace must not become code of a server that is defined elsewhere.
    const cwd = values.isGuest && takesFromFolder(values) ? data : values.cwd;
    const server = { ...values, cwd };
    // The variables of a trial may name the folder of the server's data.
    const tried = withDataFolder(trial?.env ?? {}, data);
    const env = { ...comparedVariables(server.env), ...comparedVariables(tried) };
    const { groups } = this.#host;
    const environment = this.#environmentOf(server);
    const confine = server.confine || trial !== undefined;
    // The server is confined to the folder, or its definition names it.
    const isUsed = [cwd, ...args, ...Object.values(server.env)].some((one) => one.includes(data));
    if (confine || isUsed) Deno.mkdirSync(data, { recursive: true, mode: 0o700 });
    const packageOfServer = packageCommand(server);
    const named = comparedVariables(packageOfServer?.env ?? {});
    const own = { ...environment, PATH: this.#path, ...env, ...named, PML_RUN: `${groups.mark}.` };
    if (confine && packageOfServer?.tool !== "npm") {
      const instead = "Start it with npx";
      throw unconfinable(name, command, { why: "is not an npm package", instead });
    }
    if (packageOfServer === undefined) {
      const file = new CommandFinder(this.#host, server, command).own();
      return new LaunchedProgram({ file, args, cwd, env: own });
    }
    // These options are for node, but Deno would run a confined server.
    if (confine && packageOfServer.env.NODE_OPTIONS !== undefined) {
      throw unconfinable(name, "--node-options", { why: "works only with node" });
    }
    const steering = Object.keys(own).find((each) => STEERS_DENO.test(each));
    if (confine && steering !== undefined) {
      throw unconfinable(name, steering, { why: "changes its permissions" });
    }
    const present = await this.#installed(server, packageOfServer);
    const program = await this.#program({ ...server, confine }, {
      command: packageOfServer,
      present,
      env: own,
    });
    program.setPackage(name, present);
    return program;
  }

  /** Returns the environment of a server without its own variables. */
  #environmentOf(
    server: Pick<StdioValues, "command" | "args">,
  ): Readonly<Record<string, string>> {
    const { serverEnvironment, containerEnvironment } = this.#host;
    return runsContainers(plainCommand(server))
      ? { ...serverEnvironment, ...containerEnvironment }
      : serverEnvironment;
  }

  /** Returns the names of those servers whose command installs a package. */
  packaged(servers: readonly WrittenCommand[]): readonly string[] {
    return servers.filter((server) => packageIfAny(server) !== undefined).map(({ name }) => name);
  }

  /** Installs the package of a server, and returns its packages with scripts that did not run. */
  async scriptsOf(server: StdioValues): Promise<ServerScripts> {
    const command = packageCommand(server);
    if (command === undefined) {
      const message = `Cannot install ${quoted(server.name)}: its command names no package`;
      throw new PmlError("BAD_ARGUMENTS", message, { hint: "`npx` and `uvx` name one" });
    }
    // The user requests this installation, so an offline option of the command does not count.
    const present = await this.#installed(server, { ...command, isOffline: false });
    const confining = await this.#confining(present.waiting());
    return new ServerScripts(this.#from(server, command), present, confining);
  }

  /** Looks up the newest version of a server's package; undefined if npm has no such package. */
  async newestOf(server: NamedPackage): Promise<NewestPackage | undefined> {
    const command = packageCommand(server);
    if (command?.tool !== "npm") return undefined;
    const from = this.#from(server, command);
    const env = this.installerEnvironment();
    const where = { file: from.finder.find("npm"), cwd: this.home, env };
    const running = { signal: this.#closing, groups: this.groups };
    return new NewestPackage(from, command, await newestVersion(command, { ...where, ...running }));
  }

  /** Finds the layer that confines scripts on this machine, if there are scripts. */
  async #confining(waiting: readonly ScriptedPackage[]): Promise<ScriptConfinement> {
    const { home, serverEnvironment, certificates, workspace } = this.#host;
    const where = { home, workspace, userHome: serverEnvironment.HOME ?? home, certificates };
    if (waiting.length === 0) return { ...where, layer: { kind: "none", why: "nothing runs" } };
    return { ...where, layer: await this.#layer() };
  }

  async #layer(): Promise<Layer> {
    const { osLayer: choice, workspace } = this.#host;
    return await programLayer(choice, this.#path, workspace);
  }

  async #installed(server: StdioValues, command: PackageCommand): Promise<PresentPackage> {
    const { starts, packages } = this.#host;
    const { name, definition } = server;
    const present = await this.#installs.fileOf(command, {
      finder: this.#from(server, command).finder,
      tell: (message) => starts.tell(name, message),
      version: await packages?.versionOf(definition),
    });
    // guard: package-check
    await packages?.check(definition, present.installed);
    return present;
  }

  #from(server: NamedPackage, { command }: PackageCommand): Installation {
    return { installs: this.#installs, finder: new CommandFinder(this.#host, server, command) };
  }

  async #program(
    server: StdioValues,
    { command, present: { folder, file }, env }: {
      readonly command: PackageCommand;
      readonly present: PresentPackage;
      readonly env: Readonly<Record<string, string>>;
    },
  ): Promise<LaunchedProgram> {
    const { cwd } = server;
    const { args, runtime } = command;
    if (server.confine) return await this.#confined(server, { folder, file, args, env });
    if (runtime === undefined) {
      // Python would write compiled files, which are not among the installed ones.
      const own = { PYTHONDONTWRITEBYTECODE: "1", ...env };
      return new LaunchedProgram({ file, args, cwd, env: own });
    }
    // The command asked for this runtime by its name: packages of npm are written for node.
    const run = this.#from(server, command).finder.find(runtime);
    return new LaunchedProgram({ file: run, args: [...APART[runtime], file, ...args], cwd, env });
  }

  async #confined(
    { name, cwd, trial }: StdioValues,
    { folder, file, args, env }: Omit<Program, "cwd"> & { readonly folder: string },
  ): Promise<LaunchedProgram> {
    const layer = await this.#layer();
    const { workspace, protection: usual, certificates, home, serverEnvironment } = this.#host;
    const where = {
      name,
      home,
      certificates,
      isHeld: layer.kind !== "none",
      workspace,
      protection: usual,
    };
    const granted = trial?.grants ?? this.#host.grants(name) ?? {};
    const { run, write } = confinedAccess({ ...where, grants: granted });
    const programs = grantedPrograms(run, { ...where, cwd, path: env.PATH, write });
    const paths = [...where.protection.paths ?? [], ...programs.files];
    const protection = { ...where.protection, paths };
    const confinement = { ...where, folder, grants: granted, protection };
    const { HOME: userHome = home } = serverEnvironment;
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
    // A layer can only open a path that exists.
    Deno.mkdirSync(denoDir, { recursive: true, mode: 0o700 });
    const own = [denoDir, ...trial === undefined ? [] : [trial.file]];
    const reach = serverReach(confinement, { userHome, path: programs.path, own });
    return new LaunchedProgram(
      confinedProgram(program, { layer, reach, covers: coversOf(confinement) }),
      { ...where, cwd, userHome, grants: granted, env: {}, variableNames: [] },
    );
  }

  #dataFolder(name: string): string {
    const { home, workspace } = this.#host;
    return dataFolder({ home, workspace, name });
  }

  get #path(): string {
    return searchFolders(this.#host).join(delimiter);
  }
}

/**
 * Without these, bun runs code that `bunfig.toml` of its folder names, with the variables in
 * `.env`.
 */
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

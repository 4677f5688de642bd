/**
 * Says with what program a server is started: its own command, or what PML installed for it.
 *
 * @module
 */

import { delimiter, dirname, join, resolve } from "node:path";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import type { Program } from "../sandbox/process.ts";
import { findProgram, searchPath } from "../sandbox/search_path.ts";
import { confinedArgs } from "./_confined.ts";
import { dataFolder } from "./data_folder.ts";
import { denialIn } from "./_denial.ts";
import { packageCommand } from "./_package_command.ts";
import { Installs } from "./installs.ts";
import type { StdioServer, StdioServersOptions } from "./stdio_servers.ts";
import type { StdioWireOptions } from "./stdio_wire.ts";

/** A program, and for a confined server what tells what it lacks. */
interface Launched extends Program, Pick<StdioWireOptions, "denied"> {}

/** Finds and installs the programs of servers. */
export class Launch {
  readonly #options: StdioServersOptions;
  readonly #installs: Installs;

  /** Takes the definitions; `closing` gives up what is being installed. */
  constructor(options: StdioServersOptions, closing: AbortSignal) {
    this.#options = options;
    const { home, environment, installEnvironment, groups } = options;
    this.#installs = new Installs({
      home,
      environment: () => {
        const path = this.#path().join(delimiter);
        return { ...environment, ...installEnvironment, PATH: path, PML_RUN: `${groups.mark}.` };
      },
      groups,
      closing,
      onLog: (level, text) => options.onLog("install", level, text),
    });
  }

  /** Gives the program of a server, after installing it where it is not there yet. */
  async programOf(server: StdioServer): Promise<Launched> {
    const { name, command, args, env, cwd, trial } = server;
    const { environment, groups, starts, packages } = this.#options;
    const confine = server.confine || trial !== undefined;
    this.#makeData(server, confine);
    const path = this.#path().join(delimiter);
    const own = { ...environment, PATH: path, PML_RUN: `${groups.mark}.`, ...env };
    const wanted = packageCommand(server);
    if (confine && wanted?.tool !== "npm") throw unconfinable(name, command);
    if (wanted === undefined) return { file: this.#found(command, server), args, cwd, env: own };
    const { folder, file, installed } = await this.#installs.fileOf(wanted, {
      find: (program) => this.#beside(program, server),
      tell: (message) => starts.tell(name, message),
      version: await packages?.versionOf(name),
    });
    await packages?.check(name, installed);
    if (confine) return this.#confined(server, { folder, file, args: wanted.args, env: own });
    if (wanted.runtime === undefined) {
      // What it would compile for later starts would be files that were not installed.
      return { file, args: wanted.args, cwd, env: { PYTHONDONTWRITEBYTECODE: "1", ...own } };
    }
    // What runs it was asked for by its name, too: npm's packages are written for node.
    const runtime = this.#beside(wanted.runtime, server);
    return { file: runtime, args: [file, ...wanted.args], cwd, env: own };
  }

  #confined(
    { name, cwd, trial }: StdioServer,
    { folder, file, args, env }: Omit<Program, "cwd"> & { readonly folder: string },
  ): Launched {
    const { workspace, grants, protection, certificates, home, environment } = this.#options;
    const where = { name, home, workspace: workspace(), protection, certificates };
    const granted = trial?.grants ?? grants(name) ?? {};
    const given = confinedArgs({ ...where, folder, grants: granted });
    const { HOME: userHome = home } = environment;
    const own = { DENO_DIR: join(home, "servers", "deno"), DENO_NO_UPDATE_CHECK: "1" };
    const audit = trial && { DENO_AUDIT_PERMISSIONS: trial.file };
    return {
      file: Deno.execPath(),
      args: [...given, file, ...args],
      cwd,
      env: { ...env, ...own, ...audit },
      denied: (text) => denialIn(text, { ...where, cwd, userHome, grants: granted, given: [] }),
    };
  }

  /** Makes the folder of a server's data, where it is confined to that or its definition names it. */
  #makeData({ name, args, env }: StdioServer, confine: boolean): void {
    const { home, workspace } = this.#options;
    const folder = dataFolder({ home, workspace: workspace(), name });
    const isNamed = [...args, ...Object.values(env)].some((value) => value.includes(folder));
    if (confine || isNamed) Deno.mkdirSync(folder, { recursive: true, mode: 0o700 });
  }

  /** Finds a program beside the one that a command names by its path, else on PATH. */
  #beside(program: string, { command, name, cwd }: StdioServer): string {
    const beside = resolve(cwd, join(dirname(command), program));
    const path = [dirname(beside)];
    const isThere = /[\\/]/.test(command) &&
      findProgram(program, { path, workspace: this.#options.workspace() }) !== undefined;
    return isThere ? beside : this.#found(program, { name, cwd });
  }

  #found(command: string, { name, cwd }: Pick<StdioServer, "name" | "cwd">): string {
    // A path is the person's own word, which was shown.
    if (/[\\/]/.test(command)) return resolve(cwd, command);
    const where = { path: this.#path(), workspace: this.#options.workspace() };
    const file = findProgram(command, where);
    if (file !== undefined) return file;
    const why = `command ${quoted(command, 300)} is not on PATH`;
    throw new PmlError("UPSTREAM_DOWN", `Cannot start ${quoted(name)}: ${why}`, {
      hint: "Install it, or give its absolute path in .pml.json",
    });
  }

  #path(): readonly string[] {
    const { environment, workspace } = this.#options;
    return searchPath(environment.PATH, workspace());
  }
}

function unconfinable(name: string, command: string): PmlError {
  const message = `Cannot confine ${quoted(name)}: ${quoted(command, 300)} is no npm package`;
  const hint = "Start it with npx, or take `confine` out: then it runs with your rights";
  return new PmlError("UPSTREAM_DOWN", message, { hint });
}

/**
 * Computes the settings to start the program of a server, and finds the program if the command of
 * the server is the program itself. This module imports little, so that PML can start the first
 * program before the code of connections is loaded.
 *
 * @module
 */

import { delimiter } from "node:path";
import { plainCommand, runsContainers } from "../../core/plain_command.ts";
import { comparedVariables } from "../../core/steering.ts";
import type { Program } from "../../sandbox/program.ts";
import type { Denial } from "../client/wire.ts";
import { CommandFinder, searchFolders } from "./_command_finder.ts";
import { loadsCodeFromFolder } from "./_folder_code.ts";
import { type PackageCommand, packageCommand } from "./_package_command.ts";
import { dataFolder, isInData, withDataFolder } from "./data_folder.ts";
import type { ProgramHost, StdioValues } from "./program_host.ts";

/** A program that can be started. It explains failed starts and denied accesses. */
export interface ServerProgram {
  readonly program: Program;
  /** Returns a further possible reason for a failed start, as a hint for the user. */
  hint(): string | undefined;
  /** Returns the permission that a confined server lacks, found in its output or its answer. */
  denial(text: string): Denial | undefined;
  /**
   * Returns a message of the server. If the message reports a denied access, adds the missing
   * grant.
   */
  withExplanation(message: unknown): unknown;
}

/** The services of PML that are needed to find programs. */
export type StartHost =
  & Pick<
    ProgramHost,
    "home" | "workspace" | "serverEnvironment" | "containerEnvironment"
  >
  & { readonly groups: Pick<ProgramHost["groups"], "mark"> };

/** The settings with which a server is started. */
export interface StartSettings {
  /** The values of the server. `cwd` is the folder in which it really starts. */
  readonly server: StdioValues;
  /** The whole environment of the server's program. */
  readonly env: Readonly<Record<string, string>>;
  /** Whether the server is confined, by its definition or by a trial. */
  readonly isConfined: boolean;
  /** The package that the command installs; undefined if the command is the program. */
  readonly package: PackageCommand | undefined;
}

/** Returns the settings to start a server. Creates the data folder of the server if it uses one. */
export function prepareStart(values: StdioValues, host: StartHost): StartSettings {
  const { name, args, trial } = values;
  const { home, workspace, groups } = host;
  const data = () => dataFolder({ home, workspace, name });
  // A server that is defined outside the workspace must not load code from the workspace.
  const cwd = values.isGuest && loadsCodeFromFolder(values) ? data() : values.cwd;
  const server = { ...values, cwd };
  // The variables of a trial may name the folder of the server's data.
  const tried = withDataFolder(trial?.env ?? {}, data);
  const env = { ...comparedVariables(server.env), ...comparedVariables(tried) };
  const isConfined = server.confine || trial !== undefined;
  // A confined server always uses its data folder; another one if its definition names the folder.
  const texts = [cwd, ...args, ...Object.values(server.env)];
  const isUsed = texts.some((text) => isInData(text, home) && text.includes(data()));
  if (isConfined || isUsed) Deno.mkdirSync(data(), { recursive: true, mode: 0o700 });
  const command = packageCommand(server);
  const commandVariables = comparedVariables(command?.env ?? {});
  const base = { ...environmentOf(server, host), PATH: programPath(host) };
  return {
    server,
    env: { ...base, ...env, ...commandVariables, PML_RUN: `${groups.mark}.` },
    isConfined,
    package: command,
  };
}

/** Returns the folders in which PML searches for programs, as the value of PATH. */
export function programPath(host: StartHost): string {
  return searchFolders(host).join(delimiter);
}

/** Returns the environment of a server without the variables of its definition. */
function environmentOf(
  server: Pick<StdioValues, "command" | "args">,
  { serverEnvironment, containerEnvironment }: StartHost,
): Readonly<Record<string, string>> {
  return runsContainers(plainCommand(server))
    ? { ...serverEnvironment, ...containerEnvironment }
    : serverEnvironment;
}

/** The program of a server whose command is the program itself. */
export class OwnProgram implements ServerProgram {
  readonly program: Program;

  /** Starts nothing. */
  constructor(program: Program) {
    this.program = program;
  }

  /**
   * Returns the program of a server; undefined if its command installs a package, or if it is
   * confined. Throws if the program of the command does not exist.
   */
  static of(
    { server, env, isConfined, package: command }: StartSettings,
    host: StartHost,
  ): OwnProgram | undefined {
    if (command !== undefined || isConfined) return undefined;
    const { args, cwd } = server;
    const file = new CommandFinder(host, server, server.command).findCommand();
    return new OwnProgram({ file, args, cwd, env });
  }

  hint(): undefined {}

  denial(_text: string): undefined {}

  withExplanation(message: unknown): unknown {
    return message;
  }
}

/**
 * The variables of the servers that may expand the paths they get.
 *
 * @module
 */

import { resolve } from "node:path";
import { containerEnvironment, serverEnvironment } from "../config/child_environment.ts";
import type { Config } from "../config/current_config.ts";
import type { Environment } from "../config/env.ts";
import { type Folders, foldersOf, withFolders } from "../core/folder_variables.ts";
import type { ProgramDefinition } from "../servers/kind.ts";
import { kindOf, programOf } from "../servers/kinds.ts";
import { memoized } from "../core/memo.ts";
import { plainCommand, runsContainers } from "../core/plain_command.ts";
import { isSteering } from "../core/steering.ts";
import type { JudgeOptions, PathVariables } from "./rules.ts";

const REFERENCE = /\$\{([^}]*)\}/g;
/** The variables of a server that is not a local program: PML knows none of them. */
const UNKNOWN: PathVariables = () => undefined;

/** The configuration that the variables are computed from. */
export interface VariableSources {
  readonly config: Pick<Config, "servers" | "workspace">;
  readonly environment: Environment;
  /** The names of the servers that are part of PML. */
  readonly builtins: ReadonlySet<string>;
}

/**
 * Returns a function that returns the variables of a server; undefined for modules, whose paths are
 * literal. Servers of registries count as programs with unknown variables.
 */
export function pathVariables(
  { config: { servers, workspace }, environment, builtins }: VariableSources,
): NonNullable<JudgeOptions["variablesOf"]> {
  const folders = foldersOf({ workspace, userHome: environment.userHome });
  const ofProgram = memoized((own: ProgramDefinition): PathVariables => {
    const containers = runsContainers(plainCommand(own)) ? containerEnvironment(environment) : {};
    const known = new Map<string, readonly string[]>(
      Object.entries({ ...serverEnvironment(environment), ...containers })
        // The `envFile` may set each variable that does not change how programs run, and PML reads
        // it only when the server starts. So the values of these variables are unknown.
        .filter(([name]) => own.envFile === undefined || isSteering(name))
        .map(([name, value]) => [name, [value]]),
    );
    // A shell sets PWD to its working directory, which may be the workspace.
    const cwd = resolve(workspace, withFolders(own.cwd ?? "", folders));
    known.set("PWD", [...new Set([cwd, workspace])]);
    for (const [name, text] of Object.entries(own.env)) {
      known.set(name, valuesOf(text, { name, own, environment, folders }));
    }
    return (name) => known.get(name);
  });
  return (server) => {
    const own = servers.find(({ name }) => name === server);
    if (own === undefined) return builtins.has(server) ? undefined : UNKNOWN;
    const program = programOf(own);
    if (program !== undefined) return ofProgram(program);
    return kindOf(own).isSandboxed ? undefined : UNKNOWN;
  };
}

/**
 * Returns the value of a variable; an empty list if it depends on a stored key or on another
 * variable of the definition.
 */
function valuesOf(
  text: string,
  { name, own: { env }, environment: { get }, folders }: {
    readonly name: string;
    readonly own: Pick<ProgramDefinition, "env">;
    readonly environment: Environment;
    readonly folders: Folders;
  },
): readonly string[] {
  let isKnown = true;
  const value = withFolders(text, folders).replace(REFERENCE, (_, reference: string) => {
    const [from = ""] = reference.split(":-", 1);
    const found = from === name || !Object.hasOwn(env, from) ? get(from) : undefined;
    isKnown &&= found !== undefined;
    return found ?? "";
  });
  return isKnown ? [value] : [];
}

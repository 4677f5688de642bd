/**
 * The variables of the servers that may expand the paths they get.
 *
 * @module
 */

import { serverEnvironment } from "../config/child_environment.ts";
import type { Config } from "../config/config.ts";
import type { Environment } from "../config/env.ts";
import type { StdioDefinition } from "../config/servers.ts";
import { memoized } from "../core/memo.ts";
import type { JudgeOptions, PathVariables } from "../permissions/rules.ts";

const REFERENCE = /\$\{([^}]*)\}/g;
/** The variables of a server that is not a program of this machine: none is known. */
const UNKNOWN: PathVariables = () => undefined;

/** The servers of which the variables are returned. */
export interface VariableSources {
  readonly config: Pick<Config, "servers" | "workspace">;
  readonly environment: Environment;
  /** The names of the servers that are part of PML. */
  readonly builtins: ReadonlySet<string>;
}

/**
 * Returns a function that returns the variables of a server; undefined for modules, whose paths are
 * literal. Servers of registries count as programs of which nothing is known.
 */
export function variablesOf(
  { config: { servers, workspace }, environment, builtins }: VariableSources,
): NonNullable<JudgeOptions["variablesOf"]> {
  const ofProgram = memoized((own: StdioDefinition): PathVariables => {
    const known = new Map<string, readonly string[]>(
      Object.entries(serverEnvironment(environment)).map(([name, value]) => [name, [value]]),
    );
    // A shell sets it to the folder in which it starts, which may be the workspace.
    known.set("PWD", [...new Set([own.cwd ?? workspace, workspace])]);
    for (const [name, text] of Object.entries(own.env)) {
      known.set(name, valuesOf(text, environment));
    }
    return (name) => known.get(name);
  });
  return (server) => {
    const own = servers.find(({ name }) => name === server);
    if (own === undefined) return builtins.has(server) ? undefined : UNKNOWN;
    if (own.kind === "deno") return undefined;
    return own.kind === "stdio" ? ofProgram(own) : UNKNOWN;
  };
}

/** Returns the value of a variable, or none if it depends on a key that is kept elsewhere. */
function valuesOf(text: string, { get }: Environment): readonly string[] {
  let isKnown = true;
  const value = text.replace(REFERENCE, (_, reference: string) => {
    const found = get(reference.split(":-", 1)[0] ?? "");
    isKnown &&= found !== undefined;
    return found ?? "";
  });
  return isKnown ? [value] : [];
}

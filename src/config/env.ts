/**
 * The environment, read once. Only this file uses `Deno.env`.
 *
 * @module
 */

import { homedir, userInfo } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { comparedVariables, variableName } from "../core/steering.ts";
import type { OsLayer } from "./os_layer.ts";

/** The least serious messages that the log contains. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** The environment, read once. A value that still contains `${` counts as unset. */
export interface Environment {
  /** The PML home: `PML_HOME` or `~/.pml`, an absolute path. */
  readonly home: string;
  /** The path of the PML home before links in it were followed, if `home` is its real path. */
  readonly homePath?: string;
  /** The user's home folder, an absolute path. */
  readonly userHome: string;
  /**
   * The home folder of the account according to the system, not to variables; an absolute
   * path.
   */
  readonly account: string | undefined;
  /** The home folder that the variables name, if PML does not use it; an absolute path. */
  readonly namedHome?: string;
  /** The reason why PML cannot use a home folder, if there is one. Then no call runs. */
  readonly homeProblem?: string;
  /**
   * A text about the client's file that sets `PML_WORKSPACE` to a folder outside of the file's
   * folder, if there is one: `"FILE" sets PML_WORKSPACE`.
   */
  readonly workspaceSetting?: string;
  /** `PML_WORKSPACE` as it was written. */
  readonly workspace: string | undefined;
  /** The places of a company's policy on this system, absolute paths. */
  readonly policies: readonly string[];
  /** `PML_POLICY`: one more policy, an absolute path. */
  readonly policy: string | undefined;
  /** The paths of `PML_TRUST`, absolute. */
  readonly trust: readonly string[];
  readonly apiKey: string | undefined;
  /** The URLs of `PML_REGISTRIES`, which replace the registries of all files; empty for "none". */
  readonly registries: readonly string[] | undefined;
  /** `PML_LOG_LEVEL`; by default `info`. */
  readonly logLevel: LogLevel;
  /**
   * Returns whether Landlock or bubblewrap can confine programs on this machine, given the user's
   * setting and the workspace. If the function is missing, PML assumes that they can.
   */
  readonly confines?: (layer: OsLayer, workspace: string) => Promise<boolean>;
  /** Returns any other variable as it was at the start. */
  get(name: string): string | undefined;
  readonly warnings: readonly string[];
}

/** The folders for the configuration of all users of a system. */
const SYSTEM: Readonly<Record<string, string>> = {
  darwin: "/Library/Application Support",
  windows: "C:\\ProgramData",
};

/** The variables that name the user's home folder. PML uses both or ignores both. */
export const HOMES: readonly string[] = ["HOME", "USERPROFILE"];
const LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];

/** Returns the variables of this process. */
export function processVariables(): Readonly<Record<string, string>> {
  return Deno.env.toObject();
}

/** Reads variables, by default those of this process, for the account that the process runs as. */
export function readEnvironment(
  variables: Readonly<Record<string, string>> = processVariables(),
  cwd?: string,
): Environment {
  return environmentOf(variables, accountHome(), { cwd });
}

/** Reads the given variables, for an account with the given home folder. */
export function environmentOf(
  variables: Readonly<Record<string, string>>,
  account?: string,
  { os = Deno.build.os, cwd = "" }: {
    readonly os?: typeof Deno.build.os;
    /** The folder of relative paths, if it is not the working folder of this process. */
    readonly cwd?: string | undefined;
  } = {},
): Environment {
  const all = new Map(Object.entries(comparedVariables(variables, os)));
  const warnings: string[] = [];
  const read = (name: string) => {
    const value = all.get(name);
    if (value === undefined || value.trim() === "") return undefined;
    if (!value.includes("${")) return value;
    warnings.push(
      `Ignored ${name}: its value still contains "\${", so its variable was not replaced`,
    );
    return undefined;
  };
  // Git Bash sets HOME on Windows, which other programs there ignore.
  const homes = os === "windows" ? HOMES.toReversed() : HOMES;
  const namedHome = homes.map((name) => all.get(name)).find(Boolean);
  const userHome = resolve(cwd, namedHome || account || homedir());
  const policy = all.get("PML_POLICY");
  // PROGRAMDATA only adds a folder: a variable must not remove the policy of the machine.
  const programData = os === "windows" && all.get("PROGRAMDATA");
  const folders = [SYSTEM[os] ?? "/etc", ...(programData ? [programData] : [])];
  return Object.freeze({
    policies: folders.map((folder) => join(folder, "pml", "policy.yaml")),
    policy: policy ? resolve(cwd, policy) : undefined,
    home: resolve(cwd, read("PML_HOME") ?? join(userHome, ".pml")),
    userHome,
    account,
    workspace: read("PML_WORKSPACE"),
    trust: pathsOf(read("PML_TRUST"), cwd),
    apiKey: read("PML_API_KEY"),
    registries: addressesOf(read("PML_REGISTRIES")),
    logLevel: levelOf(read("PML_LOG_LEVEL"), warnings),
    get: (name: string) => all.get(variableName(name, os)),
    warnings,
  });
}

/** Returns the environment without some variables. Adds a warning with the reason for each. */
export function withoutVariables(
  environment: Environment,
  ignored: ReadonlyMap<string, string>,
): Environment {
  const { account, userHome: ownHome, home, get } = environment;
  const userHome = ignored.has("HOME") ? account ?? ownHome : ownHome;
  const isDefaultHome = ignored.has("PML_HOME") || home === join(ownHome, ".pml");
  return Object.freeze({
    ...environment,
    ...ignored.has("HOME") && { namedHome: ownHome },
    userHome,
    home: isDefaultHome ? join(userHome, ".pml") : home,
    trust: ignored.has("PML_TRUST") ? [] : environment.trust,
    registries: ignored.has("PML_REGISTRIES") ? undefined : environment.registries,
    get: (variable: string) => {
      const name = variableName(variable);
      if (ignored.has("HOME") && HOMES.includes(name)) return userHome;
      return ignored.has(name) ? undefined : get(name);
    },
    warnings: [
      ...environment.warnings,
      ...[...ignored].map(([name, why]) => `Ignored ${name}: ${why}`),
    ],
  });
}

/** Returns the home folder according to the system. No variable changes it. */
function accountHome(): string | undefined {
  try {
    return userInfo().homedir ?? undefined;
  } catch {
    return undefined; // the system has no entry for this account
  }
}

function pathsOf(list: string | undefined, cwd: string): readonly string[] {
  return (list ?? "").split(delimiter).filter(Boolean).map((path) => resolve(cwd, path));
}

function addressesOf(list: string | undefined): readonly string[] | undefined {
  return list === "none" ? [] : list?.split(/[\s,]+/).filter(Boolean);
}

function levelOf(text: string | undefined, warnings: string[]): LogLevel {
  const level = LEVELS.find((each) => each === (text ?? "info").toLowerCase());
  if (level === undefined) {
    warnings.push(`Ignored PML_LOG_LEVEL: it is not one of ${LEVELS.join(", ")}`);
  }
  return level ?? "info";
}

/**
 * The environment, read once: the only file that touches `Deno.env`.
 *
 * @module
 */

import { homedir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { quoted } from "../core/json.ts";

/** How much the log tells. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** What the environment says, read once. A value that still holds `${` counts as unset. */
export interface Environment {
  /** The PML home: `PML_HOME` or `~/.pml`, absolute. */
  readonly home: string;
  /** The person's home folder, absolute. */
  readonly userHome: string;
  /** `PML_WORKSPACE` as written. */
  readonly workspace: string | undefined;
  /** The paths of `PML_TRUST`, absolute. */
  readonly trust: readonly string[];
  readonly apiKey: string | undefined;
  /** The addresses of `PML_REGISTRIES`, in place of what any file says; none for the word "none". */
  readonly registries: readonly string[] | undefined;
  /** `PML_LOG_LEVEL`, else `info`. */
  readonly logLevel: LogLevel;
  /** Gives any other variable as it was at start. */
  get(name: string): string | undefined;
  readonly warnings: readonly string[];
}

const LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];

/** Reads the environment of this process. */
export function readEnvironment(): Environment {
  return environmentOf(Deno.env.toObject());
}

/** Reads an environment that is handed in. */
export function environmentOf(variables: Readonly<Record<string, string>>): Environment {
  const all = new Map(Object.entries(variables));
  const warnings: string[] = [];
  const own = (name: string) => {
    const value = all.get(name);
    if (value === undefined || value.trim() === "") return undefined;
    if (!value.includes("${")) return value;
    warnings.push(`Ignored ${name}: its value still holds "\${", so nobody filled it in`);
    return undefined;
  };
  const userHome = resolve(all.get("HOME") || all.get("USERPROFILE") || homedir());
  return Object.freeze({
    home: resolve(own("PML_HOME") ?? join(userHome, ".pml")),
    userHome,
    workspace: own("PML_WORKSPACE"),
    trust: pathsOf(own("PML_TRUST")),
    apiKey: own("PML_API_KEY"),
    registries: addressesOf(own("PML_REGISTRIES")),
    logLevel: levelOf(own("PML_LOG_LEVEL"), warnings),
    get: (name: string) => all.get(name),
    warnings,
  });
}

/** Gives the environment without the variables that a file of the workspace sets, by name. */
export function ignoring(
  environment: Environment,
  setBy: ReadonlyMap<string, string>,
): Environment {
  const why = [...setBy].map(([name, file]) =>
    `Ignored ${name}: ${quoted(file, 200)} sets it, and a workspace cannot speak for the person`
  );
  return Object.freeze({
    ...environment,
    home: setBy.has("PML_HOME") ? join(environment.userHome, ".pml") : environment.home,
    trust: setBy.has("PML_TRUST") ? [] : environment.trust,
    registries: setBy.has("PML_REGISTRIES") ? undefined : environment.registries,
    get: (name: string) => setBy.has(name) ? undefined : environment.get(name),
    warnings: [...environment.warnings, ...why],
  });
}

function pathsOf(list: string | undefined): readonly string[] {
  return (list ?? "").split(delimiter).filter((path) => path !== "").map((path) => resolve(path));
}

function addressesOf(list: string | undefined): readonly string[] | undefined {
  return list === "none" ? [] : list?.split(/[\s,]+/).filter((address) => address !== "");
}

function levelOf(said: string | undefined, warnings: string[]): LogLevel {
  const level = LEVELS.find((each) => each === (said ?? "info").toLowerCase());
  if (level === undefined) {
    warnings.push(`Ignored PML_LOG_LEVEL: it is none of ${LEVELS.join(", ")}`);
  }
  return level ?? "info";
}

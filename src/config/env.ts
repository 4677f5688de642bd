/**
 * The environment, read once: the only file that touches `Deno.env`.
 *
 * @module
 */

import { homedir, userInfo } from "node:os";
import { delimiter, join, resolve } from "node:path";

/** How much the log tells. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** What the environment says, read once. A value that still holds `${` counts as unset. */
export interface Environment {
  /** The PML home: `PML_HOME` or `~/.pml`, absolute. */
  readonly home: string;
  /** The person's home folder, absolute. */
  readonly userHome: string;
  /** The home folder of the account, as the system knows it whatever is set; absolute. */
  readonly account: string | undefined;
  /** The home folder that the variables name, where it does not count; absolute. */
  readonly namedHome?: string;
  /** Why no home counts, if so: then nothing runs. */
  readonly homeless?: string;
  /** The client's file that sets `PML_WORKSPACE` to what lies elsewhere, if one does. */
  readonly sentBy?: string;
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
  return environmentOf(Deno.env.toObject(), accountHome());
}

/** Reads an environment that is handed in, for an account with such a home folder. */
export function environmentOf(
  variables: Readonly<Record<string, string>>,
  account?: string,
): Environment {
  const all = new Map(Object.entries(variables));
  const warnings: string[] = [];
  const own = (name: string) => {
    const value = all.get(name);
    if (value === undefined || value.trim() === "") return undefined;
    if (!value.includes("${")) return value;
    warnings.push(`Ignored ${name}: its value still holds "\${", so nobody filled it in`);
    return undefined;
  };
  const userHome = resolve(all.get("HOME") || all.get("USERPROFILE") || account || homedir());
  return Object.freeze({
    home: resolve(own("PML_HOME") ?? join(userHome, ".pml")),
    userHome,
    account,
    workspace: own("PML_WORKSPACE"),
    trust: pathsOf(own("PML_TRUST")),
    apiKey: own("PML_API_KEY"),
    registries: addressesOf(own("PML_REGISTRIES")),
    logLevel: levelOf(own("PML_LOG_LEVEL"), warnings),
    get: (name: string) => all.get(name),
    warnings,
  });
}

/** Gives the environment without some variables, by name, with why each of them does not count. */
export function ignoring(
  environment: Environment,
  ignored: ReadonlyMap<string, string>,
): Environment {
  const { account, userHome: said, home, get } = environment;
  const userHome = ignored.has("HOME") ? account ?? said : said;
  const isUsual = ignored.has("PML_HOME") || home === join(said, ".pml");
  return Object.freeze({
    ...environment,
    ...ignored.has("HOME") && { namedHome: said },
    userHome,
    home: isUsual ? join(userHome, ".pml") : home,
    trust: ignored.has("PML_TRUST") ? [] : environment.trust,
    registries: ignored.has("PML_REGISTRIES") ? undefined : environment.registries,
    get: (name: string) => !ignored.has(name) ? get(name) : name === "HOME" ? userHome : undefined,
    warnings: [
      ...environment.warnings,
      ...[...ignored].map(([name, why]) => `Ignored ${name}: ${why}`),
    ],
  });
}

/** Gives what the system says, which no variable changes. */
function accountHome(): string | undefined {
  try {
    return userInfo().homedir ?? undefined;
  } catch {
    return undefined; // an account that the system has no entry for
  }
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

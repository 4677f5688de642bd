/**
 * The environment of the processes that PML starts: few variables, chosen by name.
 *
 * @module
 */

import { delimiter, isAbsolute } from "node:path";
import { variableName } from "../core/steering.ts";
import { realPathIfAny } from "../io/path_info.ts";
import type { Environment } from "./env.ts";
import { CONTAINER_NAMES, NETWORK_NAMES } from "./network_names.ts";

type EnvironmentVariables = Readonly<Record<string, string>>;
type Os = typeof Deno.build.os;

/** The variables by which programs of Windows find libraries and folders. */
const WINDOWS = [
  ...["SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "OS", "TEMP", "TMP"],
  ...["APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)"],
  ...["PROGRAMW6432", "HOMEDRIVE", "HOMEPATH", "USERNAME", "USERDOMAIN", "PUBLIC"],
  ...["PROCESSOR_ARCHITECTURE", "NUMBER_OF_PROCESSORS"],
];

/** Returns the variables of every process that PML starts. */
function baseVariables({ get, userHome }: Environment, os: Os): EnvironmentVariables {
  if (os !== "windows") return { HOME: userHome };
  // Without the second variable, `cmd.exe` and others look for programs in the current folder
  // first.
  const own = { USERPROFILE: userHome, NODEFAULTCURRENTDIRECTORYINEXEPATH: "1" };
  return { ...pickVariables(WINDOWS, get), HOME: userHome, ...own };
}

/** Returns the environment of the programs that modules run. */
export function programEnvironment(
  environment: Environment,
  os: Os = Deno.build.os,
): EnvironmentVariables {
  return {
    ...pickVariables(["LANG", "TZ", "TERM", "PATH"], environment.get),
    ...baseVariables(environment, os),
  };
}

/** Returns the environment of a process of PML itself, with the variables of Deno. */
export function ownEnvironment(
  environment: Environment,
  os: Os = Deno.build.os,
): EnvironmentVariables {
  const names = ["DENO_DIR", "XDG_CACHE_HOME", "JSR_URL"];
  return {
    ...pickVariables([...names, ...NETWORK_NAMES], environment.get),
    ...baseVariables(environment, os),
  };
}

/** The variables that tell installers how to reach their registry. */
const INSTALLER_NAMES = [
  ...["NPM_CONFIG_REGISTRY", "NPM_CONFIG_USERCONFIG", "NPM_CONFIG_CACHE"],
  // A user's `.npmrc` may use these credentials as `${NPM_TOKEN}`.
  ...["NPM_TOKEN", "NODE_AUTH_TOKEN"],
  ...["UV_DEFAULT_INDEX", "UV_INDEX", "UV_CACHE_DIR", "UV_PYTHON_INSTALL_DIR"],
];

/** Returns the variables that installers get in addition to the variables of servers. */
export function installEnvironment({ get }: Environment): EnvironmentVariables {
  return pickVariables(INSTALLER_NAMES, get);
}

/** Returns the environment of every server of the user. */
export function serverEnvironment(
  environment: Environment,
  os: Os = Deno.build.os,
): EnvironmentVariables {
  const names = ["LANG", "LC_ALL", "TZ", "TERM", "PATH", "USER", "LOGNAME", "SHELL", "TMPDIR"];
  return {
    ...pickVariables([...names, ...NETWORK_NAMES], environment.get),
    ...baseVariables(environment, os),
  };
}

/** Returns the variables that servers in containers get in addition to the variables of servers. */
export function containerEnvironment({ get }: Environment): EnvironmentVariables {
  return pickVariables(CONTAINER_NAMES, get);
}

/** The variables for the user's home, the network, containers and installers. */
export const REACHING_NAMES: readonly string[] = [
  ...["HOME", ...NETWORK_NAMES, ...CONTAINER_NAMES, ...INSTALLER_NAMES],
];

/** The variables that choose the browser and its display. */
const BROWSER_NAMES =
  "DISPLAY WAYLAND_DISPLAY XAUTHORITY XDG_RUNTIME_DIR XDG_CURRENT_DESKTOP DBUS_SESSION_BUS_ADDRESS \
BROWSER WSL_INTEROP SYSTEMROOT".split(" ");

/** Returns the environment of the program that opens a browser. */
export function browserEnvironment(environment: Environment): EnvironmentVariables {
  return { ...serverEnvironment(environment), ...pickVariables(BROWSER_NAMES, environment.get) };
}

/** Returns the certificate and proxy variables that every server gets. */
export function networkEnvironment({ get }: Pick<Environment, "get">): EnvironmentVariables {
  return pickVariables(NETWORK_NAMES, get);
}

/** Returns the certificate files and folders that the environment names, and their real paths. */
export function certificatePaths(environment: Pick<Environment, "get">): readonly string[] {
  return Object.entries(networkEnvironment(environment))
    .filter(([name]) => /_(?:CERTS?|CERT_FILE|CERT_DIR|CA_BUNDLE|CAINFO)$/.test(name))
    .flatMap(([name, value]) => name === "SSL_CERT_DIR" ? value.split(delimiter) : [value])
    // Deno cannot grant a path that contains a comma.
    .filter((path) => isAbsolute(path) && !path.includes(","))
    .flatMap((path) => [path, realPathIfAny(path) ?? path]);
}

function pickVariables(
  names: readonly string[],
  get: Environment["get"],
): EnvironmentVariables {
  const variables = names.map((name) => [variableName(name), get(name)] as const);
  return Object.fromEntries(
    variables.filter((entry): entry is [string, string] => {
      const [, value] = entry;
      return value !== undefined;
    }),
  );
}

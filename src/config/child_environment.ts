/**
 * The environment of the processes that PML starts: few variables, chosen by name.
 *
 * @module
 */

import { delimiter, isAbsolute } from "node:path";
import { variableName } from "../core/steering.ts";
import { realPathIfAny } from "../io/place.ts";
import type { Environment } from "./env.ts";
import { CONTAINER_NAMES, NETWORK_NAMES } from "./network_names.ts";

type EnvironmentVariables = Readonly<Record<string, string>>;
type Os = typeof Deno.build.os;

/** The variables that every program of Windows may need: to find libraries, and where files go. */
const WINDOWS = [
  ...["SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "OS", "TEMP", "TMP"],
  ...["APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)"],
  ...["PROGRAMW6432", "HOMEDRIVE", "HOMEPATH", "USERNAME", "USERDOMAIN", "PUBLIC"],
  ...["PROCESSOR_ARCHITECTURE", "NUMBER_OF_PROCESSORS"],
];

/** Returns the variables of every process that PML starts. */
function base({ get, userHome }: Environment, os: Os): EnvironmentVariables {
  if (os !== "windows") return { HOME: userHome };
  // Without the last one, `cmd.exe` and others look for programs in their own folder first.
  const own = { USERPROFILE: userHome, NODEFAULTCURRENTDIRECTORYINEXEPATH: "1" };
  return { ...taken(WINDOWS, get), HOME: userHome, ...own };
}

/** Returns the environment of the programs that modules run. */
export function programEnvironment(
  environment: Environment,
  os: Os = Deno.build.os,
): EnvironmentVariables {
  return { ...taken(["LANG", "TZ", "TERM", "PATH"], environment.get), ...base(environment, os) };
}

/** Returns the environment of a process of PML itself: where Deno keeps the code. */
export function ownEnvironment(
  environment: Environment,
  os: Os = Deno.build.os,
): EnvironmentVariables {
  const names = ["DENO_DIR", "XDG_CACHE_HOME", "JSR_URL"];
  return { ...taken([...names, ...NETWORK_NAMES], environment.get), ...base(environment, os) };
}

/** The variables that tell installers how to reach their registry. */
const INSTALLING = [
  ...["NPM_CONFIG_REGISTRY", "NPM_CONFIG_USERCONFIG", "NPM_CONFIG_CACHE"],
  // A user's `.npmrc` may use these as `${NPM_TOKEN}`. They prove who the user is.
  ...["NPM_TOKEN", "NODE_AUTH_TOKEN"],
  ...["UV_DEFAULT_INDEX", "UV_INDEX", "UV_CACHE_DIR", "UV_PYTHON_INSTALL_DIR"],
];

/** Returns the variables that installers get in addition to those of servers. */
export function installEnvironment({ get }: Environment): EnvironmentVariables {
  return taken(INSTALLING, get);
}

/** Returns the environment of every server of the user. */
export function serverEnvironment(
  environment: Environment,
  os: Os = Deno.build.os,
): EnvironmentVariables {
  const names = ["LANG", "LC_ALL", "TZ", "TERM", "PATH", "USER", "LOGNAME", "SHELL", "TMPDIR"];
  return { ...taken([...names, ...NETWORK_NAMES], environment.get), ...base(environment, os) };
}

/** Returns the variables that servers in containers get in addition to those of servers. */
export function containerEnvironment({ get }: Environment): EnvironmentVariables {
  return taken(CONTAINER_NAMES, get);
}

/** The variables that say whose PML it is, and how it reaches the network and containers. */
export const REACHING: readonly string[] = [
  ...["HOME", ...NETWORK_NAMES, ...CONTAINER_NAMES, ...INSTALLING],
];

/** The variables that say where a browser shows a page, and which one. */
const SHOWING =
  "DISPLAY WAYLAND_DISPLAY XAUTHORITY XDG_RUNTIME_DIR XDG_CURRENT_DESKTOP DBUS_SESSION_BUS_ADDRESS \
BROWSER WSL_INTEROP SYSTEMROOT".split(" ");

/** Returns the environment of the program that opens a browser. */
export function browserEnvironment(environment: Environment): EnvironmentVariables {
  return { ...serverEnvironment(environment), ...taken(SHOWING, environment.get) };
}

/** Returns the certificate and proxy variables that every server gets. */
export function networkEnvironment({ get }: Pick<Environment, "get">): EnvironmentVariables {
  return taken(NETWORK_NAMES, get);
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

function taken(
  names: readonly string[],
  get: Environment["get"],
): EnvironmentVariables {
  const variables = names.map((name) => [variableName(name), get(name)] as const);
  return Object.fromEntries(
    variables.filter((one): one is [string, string] => one[1] !== undefined),
  );
}

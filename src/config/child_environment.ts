/**
 * What the processes that PML starts find in their environment: little, and by name.
 *
 * @module
 */

import { delimiter, isAbsolute } from "node:path";
import { realPathIfAny } from "../io/place.ts";
import type { Environment } from "./env.ts";
import { NETWORK_NAMES } from "./network_names.ts";

type Variables = Readonly<Record<string, string>>;

/** What the programs of modules find in their environment. */
export function programEnvironment({ get, userHome }: Environment): Variables {
  return { ...taken(["LANG", "TZ", "TERM", "PATH"], get), HOME: userHome };
}

/** How installers are told to reach their registry. */
const INSTALLING = [
  ...["NPM_CONFIG_REGISTRY", "NPM_CONFIG_USERCONFIG", "NPM_CONFIG_CACHE"],
  // What a person's `.npmrc` names as `${NPM_TOKEN}`, and so proves who they are.
  ...["NPM_TOKEN", "NODE_AUTH_TOKEN"],
  ...["UV_DEFAULT_INDEX", "UV_INDEX", "UV_CACHE_DIR", "UV_PYTHON_INSTALL_DIR"],
];

/** What installers find there beside what servers do. */
export function installEnvironment({ get }: Environment): Variables {
  return taken(INSTALLING, get);
}

/** What every server of the person's finds in its environment. */
export function serverEnvironment({ get, userHome }: Environment): Variables {
  const names = ["LANG", "LC_ALL", "TZ", "TERM", "PATH", "USER", "LOGNAME", "SHELL", "TMPDIR"];
  return { ...taken([...names, ...NETWORK_NAMES], get), HOME: userHome };
}

/** Gives the certificates and proxies that every server finds. */
export function networkEnvironment({ get }: Pick<Environment, "get">): Variables {
  return taken(NETWORK_NAMES, get);
}

/** Gives the files and folders of certificates that the person's environment names, links resolved too. */
export function certificatePaths(environment: Pick<Environment, "get">): readonly string[] {
  return Object.entries(networkEnvironment(environment))
    .filter(([name]) => /_(?:CERTS?|CERT_FILE|CERT_DIR|CA_BUNDLE|CAINFO)$/.test(name))
    .flatMap(([name, value]) => name === "SSL_CERT_DIR" ? value.split(delimiter) : [value])
    // Deno cannot grant a path with a comma.
    .filter((path) => isAbsolute(path) && !path.includes(","))
    .flatMap((path) => [path, realPathIfAny(path) ?? path]);
}

function taken(
  names: readonly string[],
  get: Environment["get"],
): Variables {
  const found = names.map((name) => [name, get(name)] as const);
  return Object.fromEntries(found.filter((one): one is [string, string] => one[1] !== undefined));
}

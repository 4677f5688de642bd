/**
 * What the processes that PML starts find in their environment: names that are harmless, and nothing
 * of the rest.
 *
 * @module
 */

import type { Environment } from "./env.ts";

/** How npm is told to reach its registry. */
const INSTALLING = [
  ...["NPM_CONFIG_REGISTRY", "NPM_CONFIG_USERCONFIG", "NPM_CONFIG_CACHE"],
  ...["HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"],
];

/** What the programs of modules find in their environment. */
export function programEnvironment(
  { get, userHome }: Environment,
): Readonly<Record<string, string>> {
  return { ...taken(["LANG", "TZ", "TERM", "PATH"], get), HOME: userHome };
}

/** What every server of the person's finds in its environment. */
export function serverEnvironment(
  { get, userHome }: Environment,
): Readonly<Record<string, string>> {
  const names = ["LANG", "LC_ALL", "TZ", "TERM", "PATH", "USER", "LOGNAME", "SHELL", "TMPDIR"];
  return { ...taken(names, get), HOME: userHome };
}

/** What installers find there beside that. */
export function installEnvironment({ get }: Environment): Readonly<Record<string, string>> {
  return taken(INSTALLING, get);
}

function taken(
  names: readonly string[],
  get: Environment["get"],
): Readonly<Record<string, string>> {
  const found = names.map((name) => [name, get(name)] as const);
  return Object.fromEntries(found.filter((one): one is [string, string] => one[1] !== undefined));
}

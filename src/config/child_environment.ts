/**
 * What the processes that PML starts find in their environment: little, and by name.
 *
 * @module
 */

import type { Environment } from "./env.ts";

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
  ...["HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"],
  ...["SSL_CERT_DIR", "DENO_CERT", "DENO_TLS_CA_STORE"],
];

/** What installers find there beside what servers do. */
export function installEnvironment({ get }: Environment): Variables {
  return taken(INSTALLING, get);
}

/** What every server of the person's finds in its environment. */
export function serverEnvironment({ get, userHome }: Environment): Variables {
  const names = ["LANG", "LC_ALL", "TZ", "TERM", "PATH", "USER", "LOGNAME", "SHELL", "TMPDIR"];
  return { ...taken(names, get), HOME: userHome };
}

function taken(
  names: readonly string[],
  get: Environment["get"],
): Variables {
  const found = names.map((name) => [name, get(name)] as const);
  return Object.fromEntries(found.filter((one): one is [string, string] => one[1] !== undefined));
}

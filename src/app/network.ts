/**
 * The way to the network, with the proxy and the certificates of the person.
 *
 * @module
 */

import { dirname, resolve } from "node:path";
import type { Redactor } from "../audit/redact.ts";
import type { Keys } from "../config/keys.ts";
import { partsOf, shownProxy } from "../config/network.ts";
import type { HttpDefinition } from "../config/servers.ts";
import { type Check, check } from "../core/check.ts";
import { PmlError } from "../core/errors.ts";
import type { Certificates } from "../core/fetch.ts";
import type { Policy } from "../policy/policy.ts";
import type { Proxy } from "../remote/proxy.ts";

/** PML uses no proxy for these. */
const HERE = ["localhost", "127.0.0.1", "::1"];

/** What the way to the network needs. */
export interface NetworkOptions {
  readonly policy: Policy;
  readonly keys: Pick<Keys, "get">;
  readonly redactor: Redactor;
}

/** Returns the proxy that the person configured. Throws if a variable in it is not set. */
export function proxyOf({ policy, keys, redactor }: NetworkOptions): Proxy | undefined {
  const { network } = policy.now.config;
  if (network === undefined) return undefined;
  const { url, ...written } = partsOf(network);
  const filled = (text: string) =>
    text.replace(/\$\{(\w+)\}/g, (_, name: string) => keys.get(name) ?? missing(name));
  const [user, password] = [filled(written.user), filled(written.password)];
  redactor.register(password);
  // It is in the environment of installers so.
  redactor.register(encodeURIComponent(password));
  const login = user === "" ? "" : `${user}:${password}`;
  return { url, login, except: network.no_proxy ?? [] };
}

/** Returns the variables that make installers use the proxy. */
export function proxyVariables(options: NetworkOptions): Readonly<Record<string, string>> {
  const proxy = proxyOf(options);
  if (proxy === undefined) return {};
  const { url, login, except } = proxy;
  const [user = "", ...rest] = login.split(":");
  const own = new URL(url);
  own.username = encodeURIComponent(user);
  own.password = encodeURIComponent(rest.join(":"));
  const said = {
    HTTP_PROXY: own.href,
    HTTPS_PROXY: own.href,
    NO_PROXY: [...except, ...HERE].join(),
  };
  // Programs look for both, and the environment of PML may have either.
  return Object.fromEntries(
    Object.entries(said).flatMap(([name, value]) => [[name, value], [name.toLowerCase(), value]]),
  );
}

/** Returns where the certificates of a server are; undefined if it has none. */
export function certificatesOf(
  { url, ca, cert, key }: HttpDefinition,
  { now: { loaded: { person, environment } } }: Policy,
): Certificates | undefined {
  if ((ca ?? cert) === undefined) return undefined;
  const at = (path: string | undefined) =>
    path && resolve(dirname(person.path), path.replace(/^~(?=[\\/])/, () => environment.userHome));
  return { origin: new URL(url).origin, ca: at(ca), cert: at(cert), key: at(key) };
}

/** Checks the certificates of servers, and says which proxy there is. Nothing is sent. */
export async function networkChecks(options: NetworkOptions): Promise<readonly Check[]> {
  const { policy } = options;
  const { network, servers } = policy.now.config;
  const { readCertificates } = await import("../remote/certificates.ts");
  const ofServers = servers.flatMap((own) => {
    const files = own.kind === "http" ? certificatesOf(own, policy) : undefined;
    if (files === undefined) return [];
    const said = [files.ca, files.cert].filter((path) => path !== undefined).join(", ");
    const read = () => Promise.try(() => readCertificates(files)).then(() => {});
    return check(`certificates of ${own.name}`, said, read);
  });
  return [
    ...network
      ? [await check("proxy", shownProxy(network), () => Promise.try(() => void proxyOf(options)))]
      : [],
    ...await Promise.all(ofServers),
  ];
}

function missing(name: string): never {
  throw new PmlError("KEY_MISSING", `Cannot use the proxy: ${name} is not set`, {
    hint: "Set it in the environment of PML; network.proxy in your config.yaml names it",
    detail: { missing: [name], may_have_run: false },
  });
}

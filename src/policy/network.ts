/**
 * The network settings of the user: the proxy and the certificates.
 *
 * @module
 */

import { dirname, resolve } from "node:path";
import type { Redactor } from "../audit/redact.ts";
import type { Keys } from "../config/keys.ts";
import type { RemoteDefinition } from "../servers/kind.ts";
import { keyHint, PmlError } from "../core/errors.ts";
import type { Certificates } from "../core/fetch.ts";
import type { Policy } from "./policy.ts";
import type { NetworkPolicy } from "../transport/http/client/guarded_fetch.ts";
import type { Proxy } from "../transport/http/client/proxy.ts";

/** The parts of PML that determine the network settings. */
export interface NetworkParts {
  readonly policy: Policy;
  readonly keys: Pick<Keys, "get">;
  readonly redactor: Redactor;
}

/** Returns the proxy that the user configured. Throws if a variable in it is not set. */
export function proxyOf({ policy, keys, redactor }: NetworkParts): Proxy | undefined {
  const { network } = policy.now.config;
  if (network === undefined) return undefined;
  const address = network.proxy.replace(/\$\{(\w+)\}/g, (_, name: string) => {
    const value = keys.get(name);
    if (value !== undefined) return encodeURIComponent(value);
    throw new PmlError("KEY_MISSING", `Cannot use the proxy: ${name} is not set`, {
      hint: keyHint(name),
      detail: { missing: [name] },
    });
  });
  const url = new URL(address);
  // A password in the configuration file is a secret, too.
  // guard: proxy-password
  redactor.register(decodeURIComponent(url.password));
  return { url, except: network.no_proxy ?? [] };
}

/** The network with the user's proxy. */
export class UserNetwork implements NetworkPolicy {
  /** The collaborators. */
  protected readonly parts: NetworkParts;

  /** Takes the collaborators; looks up nothing yet. */
  constructor(parts: NetworkParts) {
    this.parts = parts;
  }

  /** Returns the proxy that the user configured. Throws if a variable in it is not set. */
  proxy(): Proxy | undefined {
    return proxyOf(this.parts);
  }
}

/** The network of the user without the hosts that a company forbids. */
export class CompanyNetwork extends UserNetwork {
  /** Returns why the company forbids a URL; undefined if it does not. */
  forbidden(url: string): PmlError | undefined {
    return this.parts.policy.now.config.restrictions?.company?.forbidsHost(url)?.error;
  }
}

/** Returns the variables that make installers use the proxy. */
export function proxyVariables(options: NetworkParts): Readonly<Record<string, string>> {
  const proxy = proxyOf(options);
  if (proxy === undefined) return {};
  const { url: { href }, except } = proxy;
  const noProxy = `${[...except, "localhost", "127.0.0.1", "::1"]}`;
  // Programs read both spellings, and the environment of PML may have either.
  return {
    HTTP_PROXY: href,
    HTTPS_PROXY: href,
    NO_PROXY: noProxy,
    http_proxy: href,
    https_proxy: href,
    no_proxy: noProxy,
  };
}

/**
 * Returns the absolute paths of a server's certificates, and the origin that they are for;
 * undefined if the server has none.
 */
export function certificatesOf(
  { url, ca, cert, key }: RemoteDefinition,
  { now: { loaded } }: Policy,
): Certificates | undefined {
  if ((ca ?? cert) === undefined) return undefined;
  const { userConfig, environment } = loaded;
  const toAbsolute = (path: string | undefined) =>
    path &&
    resolve(dirname(userConfig.path), path.replace(/^~(?=[\\/])/, () => environment.userHome));
  return {
    origin: new URL(url).origin,
    ca: toAbsolute(ca),
    cert: toAbsolute(cert),
    key: toAbsolute(key),
  };
}

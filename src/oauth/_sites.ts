/**
 * Checks that the endpoints of an authorization server are on the site of its issuer. Metadata that
 * combines the sign-in page (authorization endpoint) of one service with the token endpoint of
 * another would send the authorization code to the wrong service (mix-up, RFC 9700 section 4.4).
 *
 * @module
 */

import shippedHosts from "../../config/oauth-issuers.json" with { type: "json" };
import { quoted } from "../core/json.ts";
import type { Protocol } from "./_protocol.ts";

/**
 * Hosts that an issuer may use in addition to its own site, by the URL of the issuer. Hosts include
 * the port unless it is the default port. In both, `{name}` matches one label of a host name, or one
 * segment of a path, of letters, digits, `_` and `-`. If an issuer and a host contain the same name,
 * it must match the same text in both.
 */
export type IssuerHosts = Readonly<Record<string, readonly string[]>>;

/** The endpoints of an authorization server, as listed in its metadata. */
export interface Endpoints {
  readonly issuer: string;
  readonly authorization_endpoint?: string | undefined;
  readonly token_endpoint?: string | undefined;
  readonly registration_endpoint?: string | undefined;
  readonly revocation_endpoint?: string | undefined;
}

const KINDS = ["authorization", "token", "registration", "revocation"] as const;

/**
 * Returns the site of a URL: its registrable domain, or its origin if it has none (IP addresses,
 * `localhost`, names without a public suffix). A suffix such as `github.io` counts like `co.uk`:
 * each name below it is a separate site.
 */
export async function siteOf({ hostname, origin }: URL): Promise<string> {
  const { parse } = await import("tldts");
  const { domain, isIcann, isPrivate } = parse(hostname, { allowPrivateDomains: true });
  return domain !== null && (isIcann || isPrivate) ? domain : origin;
}

/**
 * Throws `PmlError` `PERMISSION_DENIED` if an endpoint is neither on the site of the issuer nor on
 * a host that the shipped list or the user's configuration allows for the issuer. The sign-in page
 * may also be on the site of the MCP server.
 */
export async function assertSites(
  protocol: Protocol,
  endpoints: Endpoints,
  userHosts: IssuerHosts = {},
): Promise<void> {
  const issuer = new URL(endpoints.issuer);
  for (const kind of KINDS) {
    const endpoint = endpoints[`${kind}_endpoint`];
    if (endpoint === undefined) continue;
    // Metadata is foreign JSON. `URL.parse()` would convert an array of one string to that string.
    const url = typeof endpoint === "string" ? URL.parse(endpoint) : null;
    const isAllowed = url !== null && (await isOnSite(url, issuer) ||
      kind === "authorization" && await isOnSite(url, new URL(protocol.server.url)) ||
      [shippedHosts, userHosts].some((hosts) => isListed(url, { issuer, hosts })));
    if (isAllowed) continue;
    throw protocol.error(
      "PERMISSION_DENIED",
      `the issuer ${quoted(issuer.host)} has its ${kind} endpoint on another site, ${
        quoted(url?.host || JSON.stringify(endpoint))
      }`,
      `If the operator of the issuer documents this host, add it to oauth.issuer_hosts of ${
        quoted(withoutSlash(issuer.href), 300)
      } in config.yaml`,
    );
  }
}

async function isOnSite(url: URL, other: URL): Promise<boolean> {
  return url.origin !== "null" &&
    (url.origin === other.origin || await siteOf(url) === await siteOf(other));
}

/** Returns whether a list allows the host of a URL for an issuer. */
function isListed(
  url: URL,
  { issuer, hosts }: { readonly issuer: URL; readonly hosts: IssuerHosts },
): boolean {
  return Object.entries(hosts).some(([pattern, allowedHosts]) => {
    const values = matchPattern(withoutSlash(issuer.href), withoutSlash(pattern), {});
    return values !== undefined &&
      allowedHosts.some((host) => matchPattern(url.host, host.toLowerCase(), values) !== undefined);
  });
}

/**
 * Returns the values of the `{name}` placeholders in a pattern; undefined if the text does not
 * match.
 */
function matchPattern(
  text: string,
  pattern: string,
  values: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> | undefined {
  const source = pattern.split(/(\{\w+\})/).map((part) => {
    const name = /^\{(\w+)\}$/.exec(part)?.[1];
    if (name === undefined) return RegExp.escape(part);
    return values[name] === undefined ? `(?<${name}>[\\w-]+)` : RegExp.escape(values[name]);
  }).join("");
  const match = new RegExp(`^${source}$`).exec(text);
  return match === null ? undefined : { ...match.groups };
}

function withoutSlash(url: string): string {
  return url.replace(/\/$/, "");
}

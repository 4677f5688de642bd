/**
 * Discovers the authorization server of an MCP server.
 *
 * @module
 */

import type { AuthorizationServer } from "oauth4webapi";
import { isObject, quoted, textOf, textsOf } from "../core/json.ts";
import { contentType, JSON_TYPE } from "../io/event_stream.ts";
import { type Protocol, withoutAbsent } from "./_protocol.ts";

/** The result of discovery. */
export interface Discovered {
  /** The metadata of the authorization server. */
  readonly as: AuthorizationServer;
  /** The resource identifier of the server. */
  readonly resource: string;
  /** The scopes that the server supports. */
  readonly scopes: readonly string[];
}

/** The protected resource metadata of a server. */
interface ResourceMetadata extends Omit<Discovered, "as"> {
  readonly issuer: string | undefined;
}

/** Options of `discover()`. */
export interface DiscoveryOptions {
  /** The `WWW-Authenticate` header of the server's refusal. */
  readonly challenge: string | undefined;
  readonly signal: AbortSignal;
}

const KNOWN = "/.well-known/";
/** The media types of metadata. Some servers send JSON as plain text. */
const METADATA_TYPES = [JSON_TYPE, "text/plain"];

/**
 * Returns the authorization server; undefined if no metadata exists. Throws if the metadata is
 * invalid.
 */
export async function discover(
  protocol: Protocol,
  options: DiscoveryOptions,
): Promise<Discovered | undefined> {
  const { url } = protocol.server;
  const resource = await readResourceMetadata(protocol, options);
  const issuer = resource?.issuer ?? new URL(url).origin;
  const as = await readAuthorizationServer(protocol, issuer, options.signal);
  if (as === undefined) {
    if (resource?.issuer === undefined) return undefined;
    throw protocol.error("UPSTREAM_PROTOCOL", `${quoted(issuer)} has no OAuth metadata`);
  }
  // guard: sign-in-pkce
  if (!as.code_challenge_methods_supported?.includes("S256")) {
    throw protocol.error("UPSTREAM_PROTOCOL", `${quoted(issuer)} does not support PKCE with S256`);
  }
  return { as, resource: resource?.resource ?? withoutHash(url), scopes: resource?.scopes ?? [] };
}

/** Returns the default endpoints of revision 2025-03-26, for a server without metadata. */
export function defaultEndpoints({ server: { url } }: Protocol): Discovered {
  const { origin } = new URL(url);
  const as = {
    issuer: origin,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    registration_endpoint: `${origin}/register`,
  };
  return { as, resource: withoutHash(url), scopes: [] };
}

/** Returns a parameter of a `WWW-Authenticate` header. */
export function challengeParameter(
  header: string | null | undefined,
  name: string,
): string | undefined {
  const match = new RegExp(`[\\s,]${name}\\s*=\\s*(?:"([^"]*)"|([^\\s,"]+))`, "i")
    .exec(header ?? "");
  return match?.[1] ?? match?.[2];
}

/** Reads the protected resource metadata of a server; undefined if there is none. */
async function readResourceMetadata(
  protocol: Protocol,
  { challenge, signal }: DiscoveryOptions,
): Promise<ResourceMetadata | undefined> {
  const { origin, pathname } = new URL(protocol.server.url);
  const url = challengeParameter(challenge, "resource_metadata");
  const metadataUrl = url === undefined ? undefined : URL.parse(url);
  // guard: sign-in-metadata-origin
  if (metadataUrl !== undefined && metadataUrl?.origin !== origin) {
    throw protocol.error("PERMISSION_DENIED", `its metadata are at ${quoted(url ?? "")}`);
  }
  const base = `${origin}${KNOWN}oauth-protected-resource`;
  const places = [metadataUrl?.href, base + pathname.replace(/\/$/, ""), base];
  const document = await readFirst(protocol, places, signal);
  if (document === undefined) return undefined;
  const { resource, authorization_servers: servers, scopes_supported: scopes } = document.json;
  const resourceUrl = URL.parse(textOf(resource));
  const folder = resourceUrl?.pathname.replace(/\/?$/, "/") ?? "";
  // guard: sign-in-resource
  if (resourceUrl?.origin !== origin || !`${pathname}/`.startsWith(folder)) {
    const why = `its metadata are those of ${quoted(textOf(resource))}`;
    throw protocol.error("UPSTREAM_PROTOCOL", why);
  }
  const [issuer] = textsOf(servers);
  return { resource: textOf(resource), issuer, scopes: textsOf(scopes) };
}

/** Reads the metadata of an authorization server; undefined if there are none. */
async function readAuthorizationServer(
  protocol: Protocol,
  issuer: string,
  signal: AbortSignal,
): Promise<AuthorizationServer | undefined> {
  const { library } = protocol;
  const url = URL.parse(issuer);
  if (url === null) throw protocol.error("UPSTREAM_PROTOCOL", `${quoted(issuer)} is not a URL`);
  const { origin } = url;
  const path = url.pathname.replace(/\/$/, "");
  const openId = `${KNOWN}openid-configuration`;
  const document = await readFirst(protocol, [
    `${origin}${KNOWN}oauth-authorization-server${path}`,
    `${origin}${openId}${path}`,
    `${origin}${path}${openId}`,
  ], signal);
  if (document === undefined) return undefined;
  const actual = textOf(document.json.issuer);
  if (URL.parse(actual)?.href !== url.href) {
    const why = `the metadata of the issuer ${quoted(issuer)} name another one, ${quoted(actual)}`;
    throw protocol.error("UPSTREAM_PROTOCOL", why);
  }
  return await library.processDiscoveryResponse(url, Response.json(document.json));
}

/** Reads the first of several addresses that has a JSON object; undefined if none has. */
async function readFirst(
  protocol: Protocol,
  places: readonly (string | undefined)[],
  signal: AbortSignal,
): Promise<{ readonly json: Readonly<Record<string, unknown>> } | undefined> {
  for (const place of new Set(places)) {
    if (place === undefined) continue;
    const response = await protocol.ask(place, { headers: { accept: JSON_TYPE }, signal });
    if (response.status !== 200 || !METADATA_TYPES.includes(contentType(response))) continue;
    const json: unknown = await response.json().catch((error) => {
      if (contentType(response) === JSON_TYPE) throw error;
    });
    if (isObject(json)) return { json: withoutAbsent(json) };
  }
  return undefined;
}

function withoutHash(url: string): string {
  const { href } = Object.assign(new URL(url), { hash: "" });
  return href;
}

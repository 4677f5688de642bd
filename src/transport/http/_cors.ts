/**
 * Allows web pages of configured origins to read answers (CORS protocol of the Fetch standard).
 *
 * @module
 */

import type { IncomingMessage } from "node:http";

/** The request headers that MCP clients send. `Mcp-Param-*` has one for each marked argument. */
const REQUEST_HEADERS = [
  ...["accept", "authorization", "content-type", "last-event-id"],
  ...["mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id"],
];
/** Matches the header of a marked argument. */
const PARAMETER = /^mcp-param-[a-z0-9!#$%&'*+.^_`|~-]{1,128}$/;
/** The maximum number of marked arguments in a preflight. */
const PARAMETERS_MAX = 64;
const EXPOSED_HEADERS = "mcp-protocol-version, mcp-session-id, www-authenticate";
/** How long a browser may reuse a preflight, in seconds. */
const MAX_AGE_S = 600;

type CorsHeaders = Readonly<Record<string, string>>;

/** Returns the CORS headers of an answer; none if no origins are configured. */
export function corsHeaders(
  { headers: { origin } }: Pick<IncomingMessage, "headers">,
  origins: ReadonlySet<string> = new Set(),
): CorsHeaders {
  if (origins.size === 0) return {};
  // A cache must not send the answer for one origin to another origin.
  if (origin === undefined || !origins.has(origin)) return { vary: "Origin" };
  return {
    vary: "Origin",
    "access-control-allow-origin": origin,
    "access-control-expose-headers": EXPOSED_HEADERS,
  };
}

/** Returns the answer to a preflight of a configured origin; undefined for any other request. */
export function preflight(
  { method, headers }: Pick<IncomingMessage, "method" | "headers">,
  { origins, methods }: {
    readonly origins: ReadonlySet<string> | undefined;
    readonly methods: string;
  },
): Response | undefined {
  const { origin = "", "access-control-request-method": requestedMethod } = headers;
  if (method !== "OPTIONS" || requestedMethod === undefined || !origins?.has(origin)) {
    return undefined;
  }
  const requestedHeaders = String(headers["access-control-request-headers"] ?? "").toLowerCase()
    .split(",")
    .map((name) => name.trim());
  const parameters = requestedHeaders.filter((name) => PARAMETER.test(name)).slice(
    0,
    PARAMETERS_MAX,
  );
  const isPrivate = headers["access-control-request-private-network"] === "true";
  return new Response(null, {
    status: 204,
    headers: {
      "access-control-allow-methods": methods,
      "access-control-allow-headers": [...REQUEST_HEADERS, ...parameters].join(", "),
      "access-control-max-age": String(MAX_AGE_S),
      ...(isPrivate && { "access-control-allow-private-network": "true" }),
    },
  });
}

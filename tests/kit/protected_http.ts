/**
 * The server with all features, over Streamable HTTP on loopback in either revision, for clients
 * with an access token.
 *
 * @module
 */

import type { AuthorizationServer } from "./authorization_server.ts";
import { FullHttp } from "./full_http.ts";

/** The protection of a server. Members without `readonly` may change while it runs. */
export interface ProtectedOptions {
  /** The authorization server that issues the tokens. */
  readonly server: AuthorizationServer;
  /**
   * The place of the metadata of the resource: named in the response 401 (`header`), at the
   * well-known path with the server's path (`path`) or without it (`root`), or nowhere. With `none`
   * and `isMounted` it is a server of 2025-03-26.
   */
  metadata?: "header" | "path" | "root" | "none";
  /** Changes the metadata before they are sent; an undefined key is removed. */
  amend?: (metadata: Record<string, unknown>) => Record<string, unknown>;
  /** The scopes that each request needs, with spaces between. The challenge names them. */
  scope?: string;
  /** The additional scopes of a tool; without them the response is 403. */
  toolScopes?: Readonly<Record<string, string>>;
  /** Changes the challenge of the responses 401 and 403. */
  challenge?: (usual: string, status: 401 | 403) => string;
  /** Answers a request before all other handling; returns undefined for the usual response. */
  script?: (request: Request) => Response | undefined | Promise<Response | undefined>;
  /** Its identifier in metadata and tokens; its address by default. */
  readonly resource?: string;
  /** Whether it is at the origin of the authorization server, at `/mcp`. */
  readonly isMounted?: boolean;
}

/** The server. Its options may be changed while it runs. */
export class ProtectedHttp implements AsyncDisposable {
  readonly options: ProtectedOptions;
  /** The received tokens, in order; undefined for a request without one. */
  readonly tokens: (string | undefined)[] = [];
  /** The number of refused requests, by status. */
  readonly refused = { 401: 0, 403: 0 };
  readonly full: FullHttp;

  /** Listens on a free port of 127.0.0.1, or at the origin of the authorization server. */
  constructor(kind: "legacy" | "modern", options: ProtectedOptions) {
    this.options = options;
    this.full = new FullHttp(kind, { guard: (request) => this.#guard(request) });
    options.server.resources.add(this.resource);
    if (options.isMounted) {
      options.server.mounted = (request) => {
        const { pathname } = new URL(request.url);
        const isOurs = pathname === "/mcp" || this.#isMetadata(pathname);
        return isOurs ? this.full.serve(request) : undefined;
      };
    }
  }

  /** The resource of its tokens. */
  get resource(): string {
    return this.options.resource ?? this.url;
  }

  /** The address. */
  get url(): string {
    return this.options.isMounted ? `${this.options.server.origin}/mcp` : this.full.url;
  }

  /** Its actions, a line each. */
  get ledger(): readonly string[] {
    return this.full.ledger;
  }

  /** Stops listening, and closes all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.options.isMounted) this.options.server.mounted = undefined;
    await this.full[Symbol.asyncDispose]();
  }

  async #guard(request: Request): Promise<Response | undefined> {
    const { server, script, scope = "" } = this.options;
    const { pathname, search } = new URL(request.url);
    const scripted = await script?.(request);
    if (scripted !== undefined) return scripted;
    if (this.#isMetadata(pathname)) return Response.json(this.#metadata());
    if (pathname !== "/mcp") return new Response("Not found", { status: 404 });
    const [, token] = /^Bearer (\S+)$/.exec(request.headers.get("authorization") ?? "") ?? [];
    this.tokens.push(token);
    if (/access_token|access-|refresh-/.test(search)) server.violations.push("MCP: token in URL");
    if (token === undefined) return this.#refuse(401, scope, "");
    const access = server.tokens.access(token);
    if (access === undefined) {
      server.violations.push("MCP: a token that this server's authorization server never gave");
    } else if (access.family.resource !== undefined && access.family.resource !== this.resource) {
      server.violations.push(`MCP: a token for ${access.family.resource}`);
    } else if (server.tokens.holds(access)) {
      const wanted = words(`${scope} ${await this.#scopeOf(request)}`);
      if (wanted.every((one) => access.scopes.includes(one))) return undefined;
      return this.#refuse(403, wanted.join(" "), "insufficient_scope");
    }
    return this.#refuse(401, scope, "invalid_token");
  }

  #isMetadata(pathname: string): boolean {
    const { metadata = "header" } = this.options;
    const known = "/.well-known/oauth-protected-resource";
    const path = { header: "/of/resource", path: `${known}/mcp`, root: known, none: "" }[metadata];
    return pathname === path;
  }

  #metadata(): Record<string, unknown> {
    const { server, amend, scope } = this.options;
    const usual: Record<string, unknown> = {
      resource: this.resource,
      authorization_servers: [server.issuer],
      bearer_methods_supported: ["header"],
      scopes_supported: scope === undefined ? undefined : words(scope),
    };
    return amend?.(usual) ?? usual;
  }

  /** Returns the scopes that the tool of a call needs. */
  async #scopeOf(request: Request): Promise<string> {
    const { toolScopes } = this.options;
    if (toolScopes === undefined || request.method !== "POST") return "";
    const { method, params } = await request.clone().json();
    return method === "tools/call" ? toolScopes[params.name] ?? "" : "";
  }

  #refuse(status: 401 | 403, scope: string, error: string): Response {
    this.refused[status]++;
    const { metadata = "header", challenge } = this.options;
    const parts = Object.entries({
      error,
      scope,
      resource_metadata: metadata === "header" ? `${new URL(this.url).origin}/of/resource` : "",
    }).filter(([, value]) => value !== "").map(([name, value]) => `${name}="${value}"`);
    const usual = ["Bearer", parts.join(", ")].join(" ").trim();
    const value = challenge?.(usual, status) ?? usual;
    return new Response(null, { status, headers: { "www-authenticate": value } });
  }
}

function words(text: string): readonly string[] {
  return [...new Set(text.split(" ").filter((one) => one !== ""))];
}

/**
 * The server that has everything, over Streamable HTTP on loopback in either era, for those who
 * bring an access token.
 *
 * @module
 */

import type { AuthorizationServer } from "./authorization_server.ts";
import { FullHttp } from "./full_http.ts";

/** How a server is protected. What has no `readonly` may change while it runs. */
export interface ProtectedOptions {
  /** Who gives the tokens. */
  readonly server: AuthorizationServer;
  /**
   * Where the metadata of the resource are: named in the answer 401 (`header`), at the well-known
   * path with the server's path (`path`) or without it (`root`), or nowhere. With `none` and
   * `isMounted` it is a server of 2025-03-26.
   */
  metadata?: "header" | "path" | "root" | "none";
  /** Changes the metadata before they are sent; a key that is undefined is left out. */
  amend?: (metadata: Record<string, unknown>) => Record<string, unknown>;
  /** The scopes that each request needs, with spaces between. The challenge names them. */
  scope?: string;
  /** The scopes that a tool needs, besides; without them the answer is 403. */
  toolScopes?: Readonly<Record<string, string>>;
  /** Changes the challenge of the answers 401 and 403. */
  challenge?: (usual: string, status: 401 | 403) => string;
  /** Answers a request itself, before anything else; undefined for the usual answer. */
  script?: (request: Request) => Response | undefined | Promise<Response | undefined>;
  /** What it is called in metadata and tokens; its address unless given. */
  readonly resource?: string;
  /** Whether it is at the origin of the authorization server, at `/mcp`. */
  readonly isMounted?: boolean;
}

/** The server. Its options may be changed while it runs. */
export class ProtectedHttp implements AsyncDisposable {
  readonly options: ProtectedOptions;
  /** The tokens that came, in order; undefined where there was none. */
  readonly tokens: (string | undefined)[] = [];
  /** How often a request was refused, by its status. */
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

  /** What tokens are for. */
  get resource(): string {
    return this.options.resource ?? this.url;
  }

  /** Its address. */
  get url(): string {
    return this.options.isMounted ? `${this.options.server.origin}/mcp` : this.full.url;
  }

  /** What it did, a line each. */
  get ledger(): readonly string[] {
    return this.full.ledger;
  }

  /** Stops listening, and drops who is connected. */
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

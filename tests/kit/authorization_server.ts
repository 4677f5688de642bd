/**
 * An authorization server on loopback that is strict about every parameter. It keeps each request
 * and each fault of a client, so that a test can assert that there was none.
 *
 *     await using server = new AuthorizationServer({ scopes: ["read", "write"] });
 *     await using mcp = new ProtectedHttp("modern", { server, scope: "read" }); // protected_http.ts
 *     // ... `pml login` prints an address; the user's browser opens it:
 *     await browse(address); // browser.ts; `browse(address, { answer: "deny" })` refuses
 *     server.assertClean();
 *
 * @module
 */

import assert from "node:assert/strict";
import { listenAgain } from "./free_port.ts";
import { IssuedTokens } from "./issued_tokens.ts";
import { OAuthClients, OAuthFault } from "./oauth_clients.ts";
import {
  type AuthorizationServerOptions,
  METHODS,
  OAuthEndpoints,
  type OAuthRequest,
} from "./oauth_endpoints.ts";

/**
 * Answers requests at the origin of the authorization server; returns undefined for requests that
 * it does not handle.
 */
export type Mount = (request: Request) => Promise<Response> | undefined;

/** The server. Its options may be changed while it runs. */
export class AuthorizationServer implements AsyncDisposable {
  readonly options: AuthorizationServerOptions;
  /** The requests, in order, without those to a mounted server. */
  readonly asked: OAuthRequest[] = [];
  /**
   * The faults of clients, a sentence each. Refusals that are part of a sign-in are not among them.
   */
  readonly violations: string[] = [];
  readonly clients: OAuthClients;
  readonly tokens: IssuedTokens;
  /** The resources that tokens are issued for; each protected server adds its own. */
  readonly resources = new Set<string>();
  /** Serves at the same origin, for example as the MCP server. */
  mounted: Mount | undefined;
  readonly #endpoints = new OAuthEndpoints(this);
  readonly #gone = new AbortController();
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  #ahead = 0;

  /** Listens on a free port of 127.0.0.1. */
  constructor(options: AuthorizationServerOptions = {}) {
    this.options = options;
    this.clients = new OAuthClients({
      clients: options.clients ?? [],
      methods: options.methods ?? METHODS,
      isAnyPort: options.isAnyPort ?? true,
      takesDocuments: options.takesDocuments ?? false,
    });
    this.tokens = new IssuedTokens({
      now: () => this.now,
      lifetimeMs: () => (this.options.expiresIn ?? 3_600) * 1_000,
      rotates: () => this.options.rotates ?? true,
    });
    const { signal } = this.#gone;
    const listen = { hostname: "127.0.0.1", port: options.port ?? 0, onListen: () => {}, signal };
    this.#server = listenAgain(() => Deno.serve(listen, (request) => this.#serve(request)));
  }

  /** The origin, without a slash at the end. */
  get origin(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  /** The issuer, as the metadata name it. */
  get issuer(): string {
    return this.origin + (this.options.path ?? "");
  }

  /** The clock of the server: milliseconds since 1970. */
  get now(): number {
    return Date.now() + this.#ahead;
  }

  /** Moves the clock of the server forward, for the expiry of codes and tokens. */
  pass(ms: number): void {
    this.#ahead += ms;
  }

  /** Returns the requests to one of its paths, e.g. `/token`. */
  to(path: string): readonly OAuthRequest[] {
    return this.asked.filter((one) => one.path === (this.options.path ?? "") + path);
  }

  /** Asserts that no client made an error. */
  assertClean(): void {
    assert.deepEqual(this.violations, []);
    assert.equal(this.tokens.reuses, 0, "a refresh token was used twice");
  }

  /** Stops listening, and closes all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#gone.abort();
    await this.#server.finished;
  }

  async #serve(request: Request): Promise<Response> {
    const mounted = this.mounted?.(request);
    if (mounted !== undefined) return await mounted;
    const { pathname: path, searchParams: query } = new URL(request.url);
    const { method, headers } = request;
    const body = await request.text();
    const isForm = /^application\/x-www-form-urlencoded(;|$)/.test(
      headers.get("content-type") ?? "",
    );
    const form = new URLSearchParams(isForm ? body : "");
    const asked: OAuthRequest = { method, path, query, headers, body, form };
    this.asked.push(asked);
    this.#watch(asked);
    const scripted = await this.options.script?.(asked);
    if (scripted !== undefined) return scripted;
    const answer = await this.#answer(asked);
    return await this.options.after?.(asked, answer) ?? answer;
  }

  async #answer(request: OAuthRequest): Promise<Response> {
    const base = this.options.path ?? "";
    if (request.path === this.#metadataPath()) return Response.json(this.#metadata());
    if (!request.path.startsWith(`${base}/`)) return new Response("Not found", { status: 404 });
    try {
      switch (`${request.method} ${request.path.slice(base.length)}`) {
        case "GET /authorize":
          return await this.#endpoints.authorize(request);
        case "GET /decide":
          return this.#endpoints.decide(request);
        case "POST /token":
          return await this.#endpoints.token(request);
        case "POST /register":
          if (this.options.registers === false) break;
          return this.#endpoints.register(request);
        case "POST /revoke":
          if (this.options.revokes === false) break;
          return await this.#endpoints.revoke(request);
      }
    } catch (error) {
      if (!(error instanceof OAuthFault)) throw error;
      return this.#refuse(error, request);
    }
    return new Response("Not found", { status: 404 });
  }

  #metadataPath(): string | undefined {
    const { path = "", metadata = "oauth" } = this.options;
    if (metadata === "none") return undefined;
    if (metadata === "oidc-below") return `${path}/.well-known/openid-configuration`;
    const name = metadata === "oidc" ? "openid-configuration" : "oauth-authorization-server";
    return `/.well-known/${name}${path}`;
  }

  #metadata(): Record<string, unknown> {
    const { issuer, options } = this;
    const methods = options.methods ?? METHODS;
    const usual: Record<string, unknown> = {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      registration_endpoint: options.registers === false ? undefined : `${issuer}/register`,
      revocation_endpoint: options.revokes === false ? undefined : `${issuer}/revoke`,
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
      token_endpoint_auth_methods_supported: methods,
      scopes_supported: options.scopes,
      authorization_response_iss_parameter_supported: options.saysIssuer ?? true,
      client_id_metadata_document_supported: options.takesDocuments ? true : undefined,
    };
    return options.amend?.(usual) ?? usual;
  }

  /** Records a violation for parameters that are forbidden in every request. */
  #watch({ path, query, headers }: OAuthRequest): void {
    const isSecret = (value: string) => this.tokens.secrets.includes(value);
    if ([...query.values()].some(isSecret)) this.violations.push(`${path}: a token in the URL`);
    for (const name of ["access_token", "refresh_token", "client_secret", "code_verifier"]) {
      if (query.has(name)) this.violations.push(`${path}: ${name} in the URL`);
    }
    const authorization = headers.get("authorization") ?? "";
    if (/^bearer /i.test(authorization)) this.violations.push(`${path}: a bearer token`);
    if (headers.has("cookie")) this.violations.push(`${path}: a cookie`);
  }

  #refuse({ code, message, status }: OAuthFault, { headers }: OAuthRequest): Response {
    // A client may send a refresh token once after its sign-in was revoked.
    if (message !== "refresh: the sign-in is revoked") this.violations.push(message);
    const basic = headers.has("authorization") && { "www-authenticate": "Basic" };
    const body = { error: code, error_description: message };
    return Response.json(body, { status, headers: { "cache-control": "no-store", ...basic } });
  }
}

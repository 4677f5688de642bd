/**
 * The endpoints of the authorization server of tests: responses to valid requests, and the faults
 * of all others.
 *
 * @module
 */

import { randomBytes } from "node:crypto";
import type { Allowed, IssuedTokens } from "./issued_tokens.ts";
import {
  type AuthMethod,
  type OAuthClient,
  type OAuthClients,
  OAuthFault,
} from "./oauth_clients.ts";

/** The differences from the usual server. Members without `readonly` may change while it runs. */
export interface AuthorizationServerOptions {
  /** The path of the issuer, for example `/tenant`; none by default. The endpoints are below it. */
  path?: string;
  /**
   * The place of its metadata: RFC 8414 (with the path of the issuer behind the well-known part),
   * OpenID Connect with the path behind (`oidc`) or before (`oidc-below`) the well-known part, or
   * nowhere.
   */
  metadata?: "oauth" | "oidc" | "oidc-below" | "none";
  /** Changes the metadata before they are sent; an undefined key is removed. */
  amend?: (metadata: Record<string, unknown>) => Record<string, unknown>;
  /** The configured clients. */
  clients?: readonly OAuthClient[];
  /** Whether clients may register themselves; true by default. */
  registers?: boolean;
  /** Whether the id of a client may be the address of its document; false by default. */
  takesDocuments?: boolean;
  /** The authentication methods of clients; all three by default. */
  methods?: readonly AuthMethod[];
  /** Whether the port of a redirect to loopback may differ (RFC 8252); true by default. */
  isAnyPort?: boolean;
  /** The value of `scopes_supported`; other scopes are refused. Without it, all are accepted. */
  scopes?: readonly string[];
  /** Whether each request must contain `resource`; true by default. */
  wantsResource?: boolean;
  /** Whether the user's answer contains `iss`; true by default. */
  saysIssuer?: boolean;
  /** The lifetime of access tokens in seconds; 3600 by default. */
  expiresIn?: number;
  /** Whether the response contains the lifetime; true by default. */
  saysExpiry?: boolean;
  /** When refresh tokens are issued: always, never, or with the scope `offline_access` only. */
  renews?: "always" | "never" | "offline_access";
  /** Whether each refresh issues another refresh token; true by default. */
  rotates?: boolean;
  /** Whether tokens can be revoked; true by default. */
  revokes?: boolean;
  /** Answers a request before all other handling; returns undefined for the usual response. */
  script?: (request: OAuthRequest) => Response | undefined | Promise<Response | undefined>;
  /** Gets the usual response at the end, may delay it, and may change it. */
  after?: (request: OAuthRequest, answer: Response) => Response | Promise<Response>;
  readonly port?: number;
}

/** A received request. */
export interface OAuthRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Headers;
  readonly body: string;
  /** The body of a form; empty for other requests. */
  readonly form: URLSearchParams;
}

const AUTHORIZE =
  "response_type client_id redirect_uri scope state code_challenge code_challenge_method resource prompt"
    .split(" ");
const TOKEN =
  "grant_type code redirect_uri client_id client_secret code_verifier refresh_token scope resource"
    .split(" ");
/** All methods of the token endpoint. */
export const METHODS: readonly AuthMethod[] = ["none", "client_secret_basic", "client_secret_post"];

/** The state and options of the endpoints. */
export interface Endpoints {
  readonly options: AuthorizationServerOptions;
  readonly clients: OAuthClients;
  readonly tokens: IssuedTokens;
  readonly resources: ReadonlySet<string>;
  readonly issuer: string;
  readonly violations: string[];
}

/** The endpoints. */
export class OAuthEndpoints {
  readonly #of: Endpoints;
  readonly #waiting = new Map<string, Allowed & { readonly state: string }>();

  constructor(of: Endpoints) {
    this.#of = of;
  }

  /** Shows the page where the user decides. */
  async authorize({ query }: OAuthRequest): Promise<Response> {
    const bad = (what: string) => new OAuthFault("invalid_request", `authorize: ${what}`);
    assertKnown(query, AUTHORIZE, "authorize");
    const said = (name: string) => {
      const value = query.get(name);
      if (value === null || value === "") throw bad(`no ${name}`);
      return value;
    };
    const client = await this.#of.clients.of(said("client_id"));
    const redirect = said("redirect_uri");
    this.#of.clients.assertRedirect(client, redirect);
    if (said("response_type") !== "code") throw bad("response_type is not code");
    if (said("code_challenge_method") !== "S256") throw bad("code_challenge_method is not S256");
    const challenge = said("code_challenge");
    if (!/^[\w-]{43}$/.test(challenge)) throw bad("code_challenge has no right form");
    const state = said("state");
    if (state.length < 22) throw bad("state is short enough to be guessed");
    const resource = this.#resource(query, "authorize");
    const scopes = this.#scopes(query, "authorize");
    const id = randomBytes(12).toString("hex");
    this.#waiting.set(id, { client: client.id, redirect, challenge, state, resource, scopes });
    const link = (answer: string) =>
      `<a id="${answer}" href="${this.#of.issuer}/decide?id=${id}&amp;answer=${answer}">${answer}</a>`;
    const page = `<!doctype html><title>Allow?</title>${link("allow")} ${link("deny")}`;
    return new Response(page, { headers: { "content-type": "text/html; charset=utf-8" } });
  }

  /** Redirects the browser with the user's answer. */
  decide({ query }: OAuthRequest): Response {
    const waiting = this.#waiting.get(query.get("id") ?? "");
    if (waiting === undefined) throw new OAuthFault("invalid_request", "decide: unknown id");
    const { state, ...allowed } = waiting;
    const to = new URL(allowed.redirect);
    if (query.get("answer") === "allow") to.searchParams.set("code", this.#of.tokens.code(allowed));
    else {
      to.searchParams.set("error", "access_denied");
      to.searchParams.set("error_description", "The person said no");
    }
    to.searchParams.set("state", state);
    if (this.#of.options.saysIssuer ?? true) to.searchParams.set("iss", this.#of.issuer);
    return new Response(null, { status: 302, headers: { location: String(to) } });
  }

  /** Issues tokens for a code or a refresh token. */
  async token({ headers, form, query }: OAuthRequest): Promise<Response> {
    this.#assertForm({ headers, form, query }, TOKEN);
    const client = (await this.#of.clients.proven(headers, form)).id;
    const resource = this.#resource(form, "token");
    const said = (name: string) => {
      const value = form.get(name);
      if (value === null) throw new OAuthFault("invalid_request", `token: no ${name}`);
      return value;
    };
    const { access, family } = said("grant_type") === "authorization_code"
      ? this.#of.tokens.redeem(said("code"), {
        verifier: said("code_verifier"),
        redirect: said("redirect_uri"),
        ...{ client, resource },
      })
      : said("grant_type") === "refresh_token"
      ? this.#of.tokens.refresh(said("refresh_token"), {
        ...{ client, resource },
        scopes: form.has("scope") ? this.#scopes(form, "token") : undefined,
      })
      : unknownGrant(said("grant_type"));
    const { renews = "always", expiresIn = 3_600, saysExpiry = true } = this.#of.options;
    const isRenewed = renews === "always" ||
      (renews === "offline_access" && family.scopes.includes(renews));
    if (isRenewed && family.refresh === undefined) this.#of.tokens.renewable(family);
    const isNew = form.has("code") || (this.#of.options.rotates ?? true);
    const answer = {
      access_token: access.token,
      token_type: "Bearer",
      ...(saysExpiry && { expires_in: expiresIn }),
      ...(isRenewed && isNew && { refresh_token: family.refresh }),
      ...(access.scopes.length > 0 && { scope: access.scopes.join(" ") }),
    };
    return Response.json(answer, { headers: { "cache-control": "no-store" } });
  }

  /** Registers a client. */
  register({ headers, body }: OAuthRequest): Response {
    const type = headers.get("content-type") ?? "";
    if (!/^application\/json(;|$)/.test(type)) {
      throw new OAuthFault("invalid_client_metadata", `registration: content type ${type}`);
    }
    const answer = this.#of.clients.register(JSON.parse(body));
    return Response.json(answer, { status: 201, headers: { "cache-control": "no-store" } });
  }

  /** Revokes a token. */
  async revoke({ headers, form, query }: OAuthRequest): Promise<Response> {
    const names = ["token", "token_type_hint", "client_id", "client_secret"];
    this.#assertForm({ headers, form, query }, names);
    const client = await this.#of.clients.proven(headers, form);
    const token = form.get("token");
    if (token === null) throw new OAuthFault("invalid_request", "revoke: no token");
    if (!this.#of.tokens.revoke(token, client.id)) {
      this.#of.violations.push("revoke: a foreign token");
    }
    return new Response(null, { status: 200 });
  }

  #resource(params: URLSearchParams, where: string): string | undefined {
    const resource = params.get("resource");
    if (resource === null && this.#of.options.wantsResource === false) return undefined;
    if (resource !== null && this.#of.resources.has(resource)) return resource;
    throw new OAuthFault("invalid_target", `${where}: resource is ${resource}`);
  }

  #scopes(params: URLSearchParams, where: string): readonly string[] {
    const scopes = (params.get("scope") ?? "").split(" ").filter((one) => one !== "");
    const known = this.#of.options.scopes;
    const strange = scopes.filter((one) => known !== undefined && !known.includes(one));
    if (strange.length === 0) return scopes;
    throw new OAuthFault("invalid_scope", `${where}: scope ${strange} is unknown`);
  }

  #assertForm(
    { headers, form, query }: Pick<OAuthRequest, "headers" | "form" | "query">,
    names: readonly string[],
  ): void {
    const type = headers.get("content-type");
    if (query.size > 0) throw new OAuthFault("invalid_request", `form: query ${query}`);
    if (form.size === 0) throw new OAuthFault("invalid_request", `form: content type ${type}`);
    assertKnown(form, names, "form");
  }
}

/** Throws if a parameter is repeated, or not in the list. */
function assertKnown(params: URLSearchParams, names: readonly string[], where: string): void {
  for (const name of params.keys()) {
    const times = params.getAll(name).length;
    if (times > 1) throw new OAuthFault("invalid_request", `${where}: ${times} times ${name}`);
    if (!names.includes(name)) throw new OAuthFault("invalid_request", `${where}: ${name}?`);
  }
}

function unknownGrant(grant: string): never {
  throw new OAuthFault("unsupported_grant_type", `token: grant ${grant}`);
}

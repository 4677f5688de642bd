/**
 * The clients of an authorization server of tests: configured, registered by themselves, or defined
 * by a document at their address. Each fault of a client is recorded.
 *
 * @module
 */

import { randomBytes } from "node:crypto";

/** How a client authenticates at the token endpoint. */
export type AuthMethod = "none" | "client_secret_basic" | "client_secret_post";

/** A client. */
export interface OAuthClient {
  readonly id: string;
  readonly secret?: string;
  /** `none` without a secret, else `client_secret_basic`. */
  readonly method?: AuthMethod;
  /** The allowed redirect addresses; `http://127.0.0.1/callback` by default. */
  readonly redirects?: readonly string[];
}

/** An error of OAuth, and a sentence for the list of violations. */
export class OAuthFault extends Error {
  constructor(readonly code: string, message: string, readonly status = 400) {
    super(message);
  }
}

/** The supported ways of registration. */
export interface ClientsOptions {
  readonly clients?: readonly OAuthClient[];
  /** The methods that a client may register. */
  readonly methods: readonly AuthMethod[];
  /** Whether the port of a loopback address may differ from the registered one (RFC 8252). */
  readonly isAnyPort: boolean;
  readonly takesDocuments: boolean;
}

/** The clients of a server. */
export class OAuthClients {
  readonly #known = new Map<string, OAuthClient>();
  readonly #options: ClientsOptions;

  constructor(options: ClientsOptions) {
    this.#options = options;
    for (const client of options.clients ?? []) this.#known.set(client.id, client);
  }

  /** The ids of all clients, in the order of their registration. */
  get ids(): readonly string[] {
    return [...this.#known.keys()];
  }

  /** Every secret of a client. */
  get secrets(): readonly string[] {
    return [...this.#known.values()].flatMap(({ secret }) => secret ?? []);
  }

  /** Removes a client, as a server does that removes unused registrations. */
  forget(id: string): void {
    this.#known.delete(id);
  }

  /** Registers a client on its request. Returns the response. Throws `OAuthFault`. */
  register(asked: Readonly<Record<string, unknown>>): Record<string, unknown> {
    const bad = (what: string) =>
      new OAuthFault("invalid_client_metadata", `registration: ${what}`);
    const { token_endpoint_auth_method: method = "client_secret_basic" } = asked;
    const { redirect_uris: redirects, grant_types: grants, response_types: types } = asked;
    if (!isTexts(redirects) || redirects.length === 0) {
      throw new OAuthFault("invalid_redirect_uri", "registration: no redirect_uris");
    }
    for (const one of redirects) {
      if (!isLoopback(one)) throw new OAuthFault("invalid_redirect_uri", `registration: ${one}`);
    }
    if (!isTexts(grants) || !grants.includes("authorization_code")) throw bad("grant_types");
    if (grants.some((one) => one !== "authorization_code" && one !== "refresh_token")) {
      throw bad(`grant_types ${grants}`);
    }
    if (!isTexts(types) || types.join() !== "code") throw bad(`response_types ${types}`);
    if (!this.#options.methods.includes(method as AuthMethod)) throw bad(`auth method ${method}`);
    if (asked.application_type !== "native") throw bad("application_type is not native");
    if (typeof asked.client_name !== "string" || asked.client_name === "") throw bad("no name");
    const id = `client-${randomBytes(8).toString("hex")}`;
    const secret = method === "none" ? {} : { secret: `secret-${randomBytes(16).toString("hex")}` };
    this.#known.set(id, { id, redirects, method: method as AuthMethod, ...secret });
    return {
      ...asked,
      client_id: id,
      client_id_issued_at: Math.floor(Date.now() / 1000),
      ...("secret" in secret && { client_secret: secret.secret, client_secret_expires_at: 0 }),
    };
  }

  /** Returns a client; if its id is an address, it is read from there. Throws `OAuthFault`. */
  async of(id: string): Promise<OAuthClient> {
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    if (!this.#options.takesDocuments || !URL.canParse(id)) {
      throw new OAuthFault("invalid_client", `unknown client ${id}`, 401);
    }
    const client = await readDocument(id);
    this.#known.set(id, client);
    return client;
  }

  /** Throws if the redirect address is not allowed. */
  assertRedirect({ id, redirects = ["http://127.0.0.1/callback"] }: OAuthClient, to: string): void {
    const isIt = (one: string) =>
      one === to || (this.#options.isAnyPort && isLoopback(to) && portless(one) === portless(to));
    if (!redirects.some(isIt)) {
      throw new OAuthFault("invalid_request", `${id} may not be sent to ${to}`);
    }
  }

  /** Returns the authenticated client of a request to the token endpoint. Throws `OAuthFault`. */
  async proven(headers: Headers, form: URLSearchParams): Promise<OAuthClient> {
    const bad = (what: string) => new OAuthFault("invalid_client", `client: ${what}`, 401);
    const basic = basicOf(headers.get("authorization"));
    const id = basic?.id ?? form.get("client_id");
    if (id === null || id === undefined) throw bad("no client_id");
    const client = await this.of(id);
    const method = client.method ?? (client.secret === undefined ? "none" : "client_secret_basic");
    const used = basic !== undefined
      ? "client_secret_basic"
      : form.has("client_secret")
      ? "client_secret_post"
      : "none";
    if (used !== method) throw bad(`${id} uses ${used}, it is registered for ${method}`);
    if (basic !== undefined && form.has("client_secret")) throw bad(`${id} proves itself twice`);
    const secret = basic?.secret ?? form.get("client_secret") ?? undefined;
    if (method !== "none" && secret !== client.secret) throw bad(`${id} has another secret`);
    return client;
  }
}

async function readDocument(address: string): Promise<OAuthClient> {
  const bad = (what: string) => new OAuthFault("invalid_client", `document ${address}: ${what}`);
  const { hostname, pathname, protocol } = new URL(address);
  // A real server accepts https only. In tests it is on loopback.
  if (hostname !== "127.0.0.1" && protocol !== "https:") throw bad("it is not https");
  if (pathname === "/") throw bad("it has no path");
  const response = await fetch(address, { redirect: "manual" });
  const type = response.headers.get("content-type") ?? "";
  const document = await response.json().catch(() => undefined);
  if (response.status !== 200 || !type.startsWith("application/json")) throw bad("it is no JSON");
  if (document?.client_id !== address) throw bad("client_id is not its address");
  if (!isTexts(document.redirect_uris)) throw bad("no redirect_uris");
  if (typeof document.client_name !== "string") throw bad("no client_name");
  if ((document.token_endpoint_auth_method ?? "none") !== "none") throw bad("it has a secret");
  return { id: address, redirects: document.redirect_uris };
}

function basicOf(header: string | null): { id: string; secret: string } | undefined {
  if (header === null) return undefined;
  const [, encoded] = /^Basic ([\w+/=]+)$/i.exec(header) ?? [];
  if (encoded === undefined) {
    throw new OAuthFault("invalid_client", `Authorization: ${header}`, 401);
  }
  const [id = "", secret = ""] = atob(encoded).split(":").map((part) =>
    decodeURIComponent(part.replaceAll("+", " "))
  );
  return { id, secret };
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

function isLoopback(address: string): boolean {
  return /^http:\/\/(127\.0\.0\.1|\[::1\])(:\d+)?\/[^#]*$/.test(address);
}

function portless(address: string): string {
  return address.replace(/^(http:\/\/(?:127\.0\.0\.1|\[::1\])):\d+/, "$1");
}

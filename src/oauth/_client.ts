/**
 * Finds or registers the OAuth client of PML at an authorization server.
 *
 * @module
 */

import type { AuthorizationServer, ClientAuth } from "oauth4webapi";
import { quoted } from "../core/json.ts";
import type { Protocol } from "./_protocol.ts";
import type { OAuthServer, SignInHost } from "./oauth_server.ts";
import {
  clientKey,
  type Registration,
  sharedClientKey,
  type StoredClient,
  type TokenStore,
  usersOf,
} from "./token_store.ts";

/** The sign-in for which PML needs a client. */
export interface ClientUse {
  readonly store: TokenStore;
  readonly server: OAuthServer;
  readonly host: Pick<SignInHost, "document">;
}

/** The client that a sign-in needs. */
interface WantedClient {
  readonly redirect: string;
  readonly scopes: readonly string[];
  readonly signal: AbortSignal;
}

const [BASIC, POST] = ["client_secret_basic", "client_secret_post"] as const;

/** The clients of PML at one authorization server, for one server. */
export class OAuthClients {
  readonly #protocol: Protocol;
  /** The metadata of the authorization server. */
  readonly #as: AuthorizationServer;
  readonly #use: ClientUse;

  /** Registers nothing yet. */
  constructor(protocol: Protocol, as: AuthorizationServer, use: ClientUse) {
    this.#protocol = protocol;
    this.#as = as;
    this.#use = use;
  }

  /** The redirect URL of a registered client whose secret has not expired. */
  get redirect(): string | undefined {
    const { store, server } = this.#use;
    const registration = store.peek<Registration>(clientKey(this.#as.issuer, server));
    const { redirect, until = Infinity } = registration ?? {};
    return until > Date.now() ? redirect : undefined;
  }

  /** Returns the client for a redirect address. Registers a client if there is none. */
  async findOrRegister(wanted: WantedClient): Promise<StoredClient> {
    const as = this.#as;
    const { server, host: { document }, store } = this.#use;
    const { client_id, client_secret } = server.oauth ?? {};
    if (client_id !== undefined) {
      const methods = as.token_endpoint_auth_methods_supported ?? [BASIC];
      const method = methods.includes(BASIC) ? BASIC : POST;
      return { client_id, method: client_secret === undefined ? "none" : method };
    }
    if (document !== undefined && as.client_id_metadata_document_supported) {
      return { client_id: document, method: "none" };
    }
    const key = clientKey(as.issuer, server);
    // A client whose secret cannot be read from the keyring is registered again.
    const registration = this.redirect === wanted.redirect &&
      await store.read<Registration>(key).catch(() => undefined);
    if (registration) return registration.client;
    const registered = await register(this.#protocol, as, wanted);
    await store.write(key, registered, { isAttended: true });
    const shared = sharedClientKey(as.issuer);
    if (store.peek<Registration>(shared) !== undefined) await store.remove(shared);
    return registered.client;
  }

  /**
   * Returns whether the authorization server may know the client from other servers: the id is the
   * URL of the document, or a sign-in at another URL uses or used the same client.
   */
  isShared(client: StoredClient): boolean {
    const { issuer } = this.#as;
    const { server, host, store } = this.#use;
    const { client_id } = client;
    return client_id === host.document ||
      usersOf(store, { issuer, client }).some((url) => url !== server.url) ||
      store.all().some((entry) =>
        entry.issuer === issuer && entry.client.client_id === client_id && entry.url !== server.url
      );
  }
}

async function register(
  protocol: Protocol,
  as: AuthorizationServer,
  { redirect, scopes, signal }: WantedClient,
): Promise<Registration> {
  const { library, server: { name } } = protocol;
  const unsupportedError = protocol.error(
    "CONFIG_INVALID",
    `${quoted(as.issuer)} does not support client registration`,
    `Register a client there, and add "oauth": {"client_id": "…"} next to the url of ${name}`,
  );
  if (as.registration_endpoint === undefined) throw unsupportedError;
  const methods = as.token_endpoint_auth_methods_supported ?? ["none"];
  const authMethod = ["none", BASIC, POST].find((each) => methods.includes(each)) ?? "none";
  const answer = await library.dynamicClientRegistrationRequest(as, {
    client_name: "PML",
    redirect_uris: [redirect],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: authMethod,
    application_type: "native",
    ...(scopes.length > 0 && { scope: scopes.join(" ") }),
  }, protocol.options<"POST", string>(signal));
  // Status 400 reports an error in the registration itself.
  if (answer.status > 400) throw unsupportedError;
  // Some servers answer 200 instead of 201, or omit `client_secret_expires_at`.
  const fullResponse = answer.ok
    ? Response.json({ client_secret_expires_at: 0, ...await answer.json() }, { status: 201 })
    : answer;
  const client = await library.processDynamicClientRegistrationResponse(fullResponse);
  const { client_id, client_secret: secret, client_secret_expires_at: until } = client;
  const client_secret = typeof secret === "string" ? secret : undefined;
  const method = client_secret === undefined
    ? "none"
    : client.token_endpoint_auth_method === POST
    ? POST
    : BASIC;
  return {
    redirect,
    client: { client_id, client_secret, method },
    until: until ? Number(until) * 1_000 : undefined,
  };
}

/** Returns how a client authenticates. */
export function clientAuth(
  { library }: Protocol,
  { method, client_secret }: StoredClient,
  configured: string | undefined,
): ClientAuth {
  const secret = client_secret ?? configured ?? "";
  if (method === "none" || secret === "") return library.None();
  if (method === POST) return library.ClientSecretPost(secret);
  // The library escapes characters that forms do not escape, and some servers do not decode them.
  return (...[, { client_id }, , headers]) => {
    const [id, key] = [client_id, secret].map((each) => `${new URLSearchParams([["", each]])}`);
    headers.set("authorization", `Basic ${btoa(`${id?.slice(1)}:${key?.slice(1)}`)}`);
  };
}

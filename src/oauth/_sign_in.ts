/**
 * Signs the user in: opens the authorization server in a browser, and exchanges the returned code.
 *
 * @module
 */

import { isObject } from "../core/json.ts";
import { EVENTS_TYPE, JSON_TYPE } from "../io/event_stream.ts";
import { unlessAborted } from "../io/waiting.ts";
import { secretsOf } from "./_authorization.ts";
import { clientAuth, OAuthClients } from "./_client.ts";
import { challengeParameter, defaultEndpoints, discover, type Discovered } from "./_discovery.ts";
import { Protocol } from "./_protocol.ts";
import { RedirectPage } from "./_redirect_page.ts";
import { assertSites } from "./_sites.ts";
import { tokensFrom } from "./_tokens.ts";
import type { OAuthServer, PendingSignIn, SignInHost } from "./oauth_server.ts";
import {
  forgetClient,
  keepUser,
  signInKey,
  type StoredClient,
  type StoredSignIn,
  type TokenStore,
} from "./token_store.ts";

/** A sign-in to begin. */
export interface SignInRequest {
  readonly host: SignInHost;
  readonly store: TokenStore;
  readonly server: OAuthServer;
  /** The scopes that a call needs, in addition to the usual scopes. */
  readonly neededScopes: readonly string[];
  readonly signal: AbortSignal;
}

/** The values of a started sign-in, before the browser returns. */
interface StartedSignIn {
  readonly discovery: Discovered;
  readonly client: StoredClient;
  readonly scopes: readonly string[];
  readonly state: string;
  readonly verifier: string;
}

/** The maximum length of the URL that the browser opens, in characters. */
const LONGEST_PAGE = 4_000;
/** How long PML waits for the answer to the request for a stream, in milliseconds. */
const STREAM_MS = 5_000;
/** A request without effect, which a server that requires a sign-in refuses. */
const PING = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });

/** Starts a sign-in. */
export async function beginSignIn(options: SignInRequest): Promise<PendingSignIn> {
  const { host, server, signal } = options;
  const protocol = await Protocol.open(server, host);
  return await protocol.act(() => openSignIn(protocol, options), signal);
}

async function openSignIn(protocol: Protocol, options: SignInRequest): Promise<PendingSignIn> {
  const { host, store, server, signal } = options;
  const { library } = protocol;
  const challenge = await readChallenge(protocol, signal);
  const discovery = await discover(protocol, { challenge, signal }) ?? defaultEndpoints(protocol);
  const { as } = discovery;
  const scopes = scopesFor(options, { discovery, challenge });
  const address = await protocol.forBrowser(as);
  await assertSites(protocol, as, host.issuerHosts);
  const state = library.generateRandomState();
  await using stack = new AsyncDisposableStack();
  const clients = new OAuthClients(protocol, as, options);
  const page = stack.use(await listenForRedirect(protocol, clients, { server, state }));
  const redirect = page.url;
  const client = await clients.findOrRegister({ redirect, scopes, signal });
  const sharedClient = clients.isShared(client) ? client.client_id : undefined;
  if (server.oauth?.client_id !== undefined) {
    await keepUser(store, { issuer: as.issuer, client, url: server.url });
  }
  // Without the consent page, a consent for another server would also count for this server.
  const wantsConsent = sharedClient !== undefined || scopes.includes("offline_access");
  const verifier = library.generateRandomCodeVerifier();
  const query = {
    response_type: "code",
    client_id: client.client_id,
    redirect_uri: redirect,
    code_challenge: await library.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    state,
    resource: discovery.resource,
    ...(scopes.length > 0 && { scope: scopes.join(" ") }),
    ...(wantsConsent && { prompt: "consent" }),
  };
  const url = browserUrl(address, { protocol, query });
  const disposal = new AbortController();
  const endSignal = AbortSignal.any([signal, disposal.signal]);
  const attempt = { discovery, client, scopes, state, verifier };
  const done = protocol.act(
    () => exchangeCode(protocol, page, { ...options, attempt, signal: endSignal }),
    endSignal,
  );
  done.catch(() => {}); // callers that await `done` get the error
  const resources = stack.move();
  return {
    url,
    issuer: new URL(as.issuer).href.replace(/\/$/, ""),
    codeHost: new URL(as.token_endpoint ?? as.issuer).host,
    sharedClient,
    done,
    paste: (pasted) => acceptPasted(pasted, { protocol, page }),
    [Symbol.asyncDispose]: async () => {
      disposal.abort(protocol.error("CANCELLED", "it was cancelled", "Start the sign-in again"));
      await done.catch(() => {});
      await resources[Symbol.asyncDispose]();
    },
  };
}

/** Accepts a pasted URL. Throws if it is not the redirect URL of this sign-in. */
function acceptPasted(
  pasted: string,
  { protocol, page }: { readonly protocol: Protocol; readonly page: RedirectPage },
): void {
  const url = URL.parse(pasted.trim());
  if (url !== null && page.acceptAddress(url)) return;
  throw protocol.error(
    "BAD_ARGUMENTS",
    "that is not the address that the browser was sent to",
    `Copy all of it: it begins ${page.url}`,
  );
}

/** Returns the URL that the browser opens. Throws if it is too long. */
function browserUrl(
  address: URL,
  { protocol, query }: {
    readonly protocol: Protocol;
    readonly query: Readonly<Record<string, string>>;
  },
): string {
  for (const [name, value] of Object.entries(query)) address.searchParams.set(name, value);
  if (address.href.length <= LONGEST_PAGE) return address.href;
  throw protocol.error("UPSTREAM_PROTOCOL", "the URL of its page is too long");
}

/** Waits for the browser, and exchanges the returned code for tokens. */
async function exchangeCode(
  protocol: Protocol,
  page: RedirectPage,
  { attempt, host, server, store, signal }: SignInRequest & {
    readonly attempt: StartedSignIn;
  },
): Promise<void> {
  const { library } = protocol;
  const { discovery: { as, resource }, client, scopes, state, verifier } = attempt;
  try {
    const answer = await unlessAborted(page.answer, signal);
    const parameters = library.validateAuthResponse(as, client, answer.searchParams, state);
    const auth = clientAuth(protocol, client, server.oauth?.client_secret);
    const response = await library.authorizationCodeGrantRequest(
      ...[as, client, auth, parameters, page.url, verifier] as const,
      { ...protocol.options<"POST">(signal), additionalParameters: { resource } },
    );
    const tokens = await library.processAuthorizationCodeResponse(as, client, response);
    const signIn: StoredSignIn = {
      server: server.name,
      url: server.url,
      issuer: as.issuer,
      tokenEndpoint: as.token_endpoint ?? "",
      revocationEndpoint: as.revocation_endpoint,
      resource,
      client,
      ...tokensFrom(protocol, tokens, { refreshToken: undefined, scopes }),
    };
    host.register(secretsOf(signIn), []);
    const key = signInKey(server);
    await store.withLock(key, () => store.write(key, signIn, { isAttended: true }));
    page.showResult(true);
  } catch (error) {
    // The authorization server may have deleted the client.
    await forgetClient(store, { issuer: as.issuer, client }, server);
    throw error;
  } finally {
    page.showResult(false);
  }
}

/**
 * Sends a request without a token, and returns the `WWW-Authenticate` header of the answer;
 * undefined if there is none.
 */
async function readChallenge(protocol: Protocol, signal: AbortSignal): Promise<string | undefined> {
  const accept = `${JSON_TYPE}, ${EVENTS_TYPE}`;
  const headers = { accept, "content-type": JSON_TYPE };
  const { url, requestUrl = url } = protocol.server;
  const response = await protocol.ask(requestUrl, { method: "POST", headers, body: PING, signal });
  const challenge = response.headers.get("www-authenticate") ?? undefined;
  if (challenge !== undefined || response.ok) return challenge;
  // An HTTP+SSE endpoint does not accept POST. If it opens a stream, that stream never ends.
  const limited = AbortSignal.any([signal, AbortSignal.timeout(STREAM_MS)]);
  const streamRequest = { headers: { accept: EVENTS_TYPE }, signal: limited };
  const second = await protocol.ask(requestUrl, streamRequest).catch(() => undefined);
  return second?.headers.get("www-authenticate") ?? undefined;
}

function scopesFor(
  { server, store, neededScopes }: SignInRequest,
  { discovery, challenge }: {
    readonly discovery: Discovered;
    readonly challenge: string | undefined;
  },
): readonly string[] {
  const { as: { scopes_supported: serverScopes }, scopes: supported } = discovery;
  const signIn = store.peek(signInKey(server));
  // Granted scopes are requested again only together with missing scopes.
  const wantedScopes = [...neededScopes, ...signIn?.wanted ?? []];
  const granted = wantedScopes.length > 0 ? signIn?.scopes ?? [] : [];
  const challengeScopes = challengeParameter(challenge, "scope")?.split(" ");
  const usualScopes = server.oauth?.scopes ?? challengeScopes ?? supported;
  const scopes = new Set([...usualScopes, ...granted, ...wantedScopes].filter(Boolean));
  // Some servers issue a refresh token only with this scope.
  const wantsOffline = server.oauth?.scopes === undefined &&
    serverScopes?.includes("offline_access");
  if (wantsOffline && scopes.size > 0) scopes.add("offline_access");
  return [...scopes];
}

/**
 * Listens on the configured port, or else on the port of the registered client. If the port of the
 * registered client is in use, listens on a free port.
 */
async function listenForRedirect(
  protocol: Protocol,
  clients: OAuthClients,
  { server, state }: { readonly server: OAuthServer; readonly state: string },
): Promise<RedirectPage> {
  const configuredPort = server.oauth?.redirect_port;
  const port = configuredPort ?? Number(URL.parse(clients.redirect ?? "")?.port ?? 0);
  try {
    return await RedirectPage.open(state, port);
  } catch (error) {
    if (configuredPort === undefined) return await RedirectPage.open(state, 0);
    const why = isObject(error) ? `${error.code}` : `${error}`;
    throw protocol.error(
      "CONFIG_INVALID",
      `port ${configuredPort} of this machine cannot be used: ${why}`,
      "Close the program that uses it, or change oauth.redirect_port",
    );
  }
}

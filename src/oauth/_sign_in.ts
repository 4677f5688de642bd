/**
 * Signs the user in: opens the authorization server in a browser, and exchanges the returned code.
 *
 * @module
 */

import type { AuthorizationServer } from "oauth4webapi";
import { isObject } from "../core/json.ts";
import { EVENTS_TYPE, JSON_TYPE } from "../io/event_stream.ts";
import { unlessAborted } from "../io/waiting.ts";
import { secretsOf } from "./_authorization.ts";
import { clientAuth, clientFor, isSharedClient, registered } from "./_client.ts";
import { assumed, challenged, discover, type Discovered } from "./_discovery.ts";
import { Protocol } from "./_protocol.ts";
import { RedirectPage } from "./_redirect_page.ts";
import { assertSites } from "./_sites.ts";
import { tokensFrom } from "./_tokens.ts";
import type { OAuthServer, SignIn, SignInHost } from "./oauth_server.ts";
import {
  forgetClient,
  keepUser,
  type KeptClient,
  signInKey,
  type StoredSignIn,
  type TokenStore,
} from "./token_store.ts";

/** Options of `beginSignIn()`. */
export interface SigningIn {
  readonly host: SignInHost;
  readonly store: TokenStore;
  readonly server: OAuthServer;
  /** The scopes that a call needs in addition. */
  readonly more: readonly string[];
  readonly signal: AbortSignal;
}

/** The values of a started sign-in, before the browser returns. */
interface StartedSignIn {
  readonly discovery: Discovered;
  readonly client: KeptClient;
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
export async function beginSignIn(options: SigningIn): Promise<SignIn> {
  const { host, server, signal } = options;
  const protocol = await Protocol.open(server, host);
  return await protocol.act(() => opened(protocol, options), signal);
}

async function opened(protocol: Protocol, options: SigningIn): Promise<SignIn> {
  const { host, store, server, signal } = options;
  const { library } = protocol;
  const challenge = await refusalOf(protocol, signal);
  const discovery = await discover(protocol, { challenge, signal }) ?? assumed(protocol);
  const { as } = discovery;
  const scopes = scopesFor(options, { discovery, challenge });
  const address = await protocol.forBrowser(as);
  await assertSites(protocol, as, host.issuerHosts);
  const state = library.generateRandomState();
  await using stack = new AsyncDisposableStack();
  const page = stack.use(await listening(protocol, options, { as, state }));
  const redirect = page.url;
  const clients = { protocol, as, store, server, document: host.document };
  const client = await clientFor(clients, { redirect, scopes, signal });
  const sharedClient = isSharedClient(clients, client) ? client.client_id : undefined;
  if (server.oauth?.client_id !== undefined) {
    await keepUser(store, { issuer: as.issuer, client, url: server.url });
  }
  // Without the consent page, a consent for another server would also count for this one.
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
  const url = pageOf(address, { protocol, query });
  const over = new AbortController();
  const until = AbortSignal.any([signal, over.signal]);
  const pending = { discovery, client, scopes, state, verifier };
  const done = protocol.act(
    () => finished(protocol, page, { ...options, attempt: pending, signal: until }),
    until,
  );
  done.catch(() => {}); // callers that await `done` get the error
  const open = stack.move();
  return {
    url,
    issuer: new URL(as.issuer).href.replace(/\/$/, ""),
    codeHost: new URL(as.token_endpoint ?? as.issuer).host,
    sharedClient,
    done,
    paste: (pasted) => takePasted(pasted, { protocol, page }),
    [Symbol.asyncDispose]: async () => {
      over.abort(protocol.error("CANCELLED", "it was cancelled", "Start the sign-in again"));
      await done.catch(() => {});
      await open[Symbol.asyncDispose]();
    },
  };
}

/** Accepts a pasted URL. Throws if it is not the redirect URL of this sign-in. */
function takePasted(
  pasted: string,
  { protocol, page }: { readonly protocol: Protocol; readonly page: RedirectPage },
): void {
  const url = URL.parse(pasted.trim());
  if (url !== null && page.take(url)) return;
  throw protocol.error(
    "BAD_ARGUMENTS",
    "that is not the address that the browser was sent to",
    `Copy all of it: it begins ${page.url}`,
  );
}

/** Returns the URL that the browser opens. Throws if it is too long. */
function pageOf(
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
async function finished(
  protocol: Protocol,
  page: RedirectPage,
  { attempt, host, server, store, signal }: SigningIn & { readonly attempt: StartedSignIn },
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
    await store.locked(key, () => store.write(key, signIn, { isAttended: true }));
    page.tell(true);
  } catch (error) {
    // The authorization server may have deleted the client.
    await forgetClient(store, { issuer: as.issuer, client }, server);
    throw error;
  } finally {
    page.tell(false);
  }
}

/** Returns the `WWW-Authenticate` header of the server; undefined if it sends none. */
async function refusalOf(protocol: Protocol, signal: AbortSignal): Promise<string | undefined> {
  const accept = `${JSON_TYPE}, ${EVENTS_TYPE}`;
  const headers = { accept, "content-type": JSON_TYPE };
  const { url, requestUrl = url } = protocol.server;
  const response = await protocol.ask(requestUrl, { method: "POST", headers, body: PING, signal });
  const challenge = response.headers.get("www-authenticate") ?? undefined;
  if (challenge !== undefined || response.ok) return challenge;
  // An HTTP+SSE endpoint does not accept POST. If it opens a stream, that stream never ends.
  const until = AbortSignal.any([signal, AbortSignal.timeout(STREAM_MS)]);
  const stream = { headers: { accept: EVENTS_TYPE }, signal: until };
  const again = await protocol.ask(requestUrl, stream).catch(() => undefined);
  return again?.headers.get("www-authenticate") ?? undefined;
}

function scopesFor(
  { server, store, more }: SigningIn,
  { discovery, challenge }: {
    readonly discovery: Discovered;
    readonly challenge: string | undefined;
  },
): readonly string[] {
  const { as: { scopes_supported: serverScopes }, scopes: supported } = discovery;
  const signIn = store.look(signInKey(server));
  // Granted scopes are requested again only together with missing ones.
  const wantedScopes = [...more, ...signIn?.wanted ?? []];
  const granted = wantedScopes.length > 0 ? signIn?.scopes ?? [] : [];
  const challengeScopes = challenged(challenge, "scope")?.split(" ");
  const own = server.oauth?.scopes ?? challengeScopes ?? supported;
  const scopes = new Set([...own, ...granted, ...wantedScopes].filter(Boolean));
  const isOffline = server.oauth?.scopes === undefined && serverScopes?.includes("offline_access");
  if (isOffline && scopes.size > 0) scopes.add("offline_access");
  return [...scopes];
}

/**
 * Listens on the configured port, or else on the port of the registered client. If the latter is in
 * use, listens on a free port.
 */
async function listening(
  protocol: Protocol,
  { server, store }: SigningIn,
  { as, state }: { readonly as: AuthorizationServer; readonly state: string },
): Promise<RedirectPage> {
  const own = server.oauth?.redirect_port;
  const port = own ?? Number(URL.parse(registered({ store, as, server }) ?? "")?.port ?? 0);
  try {
    return await RedirectPage.open(state, port);
  } catch (error) {
    if (own === undefined) return await RedirectPage.open(state, 0);
    const why = isObject(error) ? `${error.code}` : `${error}`;
    throw protocol.error(
      "CONFIG_INVALID",
      `port ${own} of this machine cannot be used: ${why}`,
      "Close the program that uses it, or change oauth.redirect_port",
    );
  }
}

/**
 * Creates the `Authorization` header for requests to a server that the user signs in at.
 *
 * @module
 */

import type { Authorization, HttpRefusal } from "../core/authorization.ts";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { unlessAborted } from "../io/waiting.ts";
import { challengeParameter, discover } from "./_discovery.ts";
import { Protocol } from "./_protocol.ts";
import type { OAuthServer, SignInHost } from "./oauth_server.ts";
import { signInKey, type StoredSignIn, type TokenStore } from "./token_store.ts";

/**
 * A token is refreshed this long before it expires, or in the last fifth of its lifetime if that is
 * shorter.
 */
const REFRESH_MS = 60_000;
/**
 * After a failed refresh, the token is used until it expires; the refresh is retried after this
 * time.
 */
const RETRY_MS = 10_000;
/** If a server refuses two new tokens within this time, a refused request refreshes no token. */
const USELESS_MS = 60_000;
/** Requests within this time after a check of the sign-in file do not check it again. */
const CHECK_MS = 50;
/** How often a server may ask for more scopes, and in which time in milliseconds. */
const [STEPS, STEPS_MS] = [2, 600_000];

/** The authorization of requests to one server, with the sign-in if the user is signed in there. */
export class ServerAuthorization implements Authorization {
  /** The current definition of the server. */
  server: OAuthServer;
  readonly #key: string;
  readonly #store: TokenStore;
  readonly #host: SignInHost;
  #signIn: Promise<StoredSignIn | undefined> = Promise.resolve(undefined);
  /** When the sign-in is read again, even if its file did not change. */
  #rereadAt = Infinity;
  #stamp: string | undefined;
  /** When the file of the sign-in was checked last. */
  #checkedAt = NaN;
  #refreshing: Promise<void> | undefined;
  /** When a refresh failed last. */
  #failedAt = -Infinity;
  #secrets: readonly string[] = [];
  /** The secrets of the previous sign-in, which stay redacted. */
  #previousSecrets: readonly string[] = [];
  /** The last two new tokens that the server refused. */
  #refusedTokens: readonly { readonly sent: string; readonly at: number }[] = [];
  /** The recent requests of the server for more scopes. */
  #steps: readonly { readonly at: number; readonly scopes: readonly string[] }[] = [];

  /** Creates the authorization without reading anything. */
  constructor(server: OAuthServer, store: TokenStore, host: SignInHost) {
    this.server = server;
    this.#key = signInKey(server);
    this.#store = store;
    this.#host = host;
  }

  async header(signal: AbortSignal): Promise<string | undefined> {
    const isRecent = performance.now() - this.#checkedAt < CHECK_MS;
    let signIn = await (isRecent ? unlessAborted(this.#signIn, signal) : this.#current(signal));
    if (signIn === undefined) return undefined;
    const { accessToken, since, until = Infinity } = signIn;
    if (accessToken === undefined) throw this.#loginRequired(endedText(signIn));
    const remaining = until - Date.now();
    if (remaining < Math.min(REFRESH_MS, (until - since) / 5)) {
      const isDue = remaining <= 0 || performance.now() - this.#failedAt > RETRY_MS;
      if (isDue) signIn = await this.#refreshAndRead(signIn, { signal, mayFail: remaining > 0 });
    }
    return headerOf(signIn);
  }

  async handleRefusal({ response, sent, signal, isAgain }: HttpRefusal): Promise<boolean> {
    const challenge = response.headers.get("www-authenticate") ?? undefined;
    const signIn = await this.#current(signal);
    const isSame = sent !== undefined && headerOf(signIn) === sent;
    if (!isSame && !isAgain && signIn?.accessToken !== undefined) return true;
    if (sent === undefined || signIn === undefined) {
      if (response.status !== 401 || !await this.#mayBegin(challenge, signal)) return false;
      const scopes = challengeParameter(challenge, "scope")?.split(" ");
      throw this.#loginRequired("it requires a sign-in", scopes);
    }
    if (challengeParameter(challenge, "error") === "insufficient_scope") {
      const scopes = challengeParameter(challenge, "scope")?.split(" ") ?? [];
      const error = await this.#stepUp(signIn, scopes);
      if (error === undefined && !isAgain) {
        await this.#current(signal);
        return true;
      }
      throw error ?? this.#loginRequired("it requires more permissions", scopes);
    }
    if (response.status !== 401) return false;
    // A refused new token may have expired already. After two refusals in a row, PML stops
    // refreshing for each call.
    const last = this.#refusedTokens.at(-1);
    if (isAgain && last?.sent !== sent) {
      this.#refusedTokens = [...last ? [last] : [], { sent, at: performance.now() }];
    }
    const [first, second] = this.#refusedTokens;
    const isUseless = second !== undefined && performance.now() - (first?.at ?? 0) < USELESS_MS;
    const next = isAgain || isUseless
      ? signIn
      : await this.#refreshAndRead(signIn, { signal, mayFail: false });
    if (headerOf(next) === sent) throw this.#loginRequired("it does not accept your sign-in");
    return true;
  }

  /** Returns the sign-in. Reads it only if its file has changed. */
  async #current(signal: AbortSignal): Promise<StoredSignIn | undefined> {
    const stamp = this.#store.stamp(this.#key);
    this.#checkedAt = performance.now();
    // guard: sign-in-keyring-once
    if (stamp !== this.#stamp || performance.now() > this.#rereadAt) {
      this.#stamp = stamp;
      this.#rereadAt = Infinity;
      this.#signIn = stamp === undefined ? this.#setSignIn(undefined) : this.#read();
    }
    return await unlessAborted(this.#signIn, signal);
  }

  async #read(): Promise<StoredSignIn | undefined> {
    try {
      return await this.#setSignIn(await this.#store.read(this.#key));
    } catch (error) {
      this.#rereadAt = performance.now() + RETRY_MS;
      throw error;
    }
  }

  #setSignIn(signIn: StoredSignIn | undefined): Promise<StoredSignIn | undefined> {
    const secrets = secretsOf(signIn);
    // An answer may still contain the previous secrets.
    // guard: sign-in-redactor
    this.#host.register(secrets, this.#previousSecrets.filter((each) => !secrets.includes(each)));
    this.#previousSecrets = this.#secrets;
    this.#secrets = secrets;
    return Promise.resolve(signIn);
  }

  async #refreshAndRead(
    signIn: StoredSignIn,
    { signal, mayFail }: { readonly signal: AbortSignal; readonly mayFail: boolean },
  ): Promise<StoredSignIn | undefined> {
    const { refreshToken, accessToken = "" } = signIn;
    if (refreshToken === undefined) return signIn;
    this.#refreshing ??= this.#refresh(accessToken).finally(() => this.#refreshing = undefined);
    try {
      await unlessAborted(this.#refreshing, signal);
    } catch (error) {
      this.#failedAt = performance.now();
      if (!mayFail || signal.aborted) throw error;
    }
    const current = await this.#current(signal);
    if (current?.accessToken === undefined) throw this.#loginRequired(endedText(current));
    return current;
  }

  async #refresh(spent: string): Promise<void> {
    const [key, store] = [this.#key, this.#store];
    // Only one process at a time starts a refresh; the others find the new token.
    await store.withLock(`${key}.queue`, async () => {
      if ((await store.read(key))?.accessToken !== spent) return;
      const { oauth, named, certificates } = this.server;
      const { folder, issuerHosts } = this.#host;
      const [hosts, secret] = [[...named], oauth?.client_secret];
      await this.#host.refresh({
        folder,
        key,
        spent,
        secret,
        named: hosts,
        certificates,
        issuerHosts,
      });
    });
    // A killed process may have stored the new tokens in the keyring without changing the file. The
    // file may also be gone, because the user signed out meanwhile.
    // guard: sign-in-keyring-killed
    this.#rereadAt = -Infinity;
  }

  /**
   * Returns whether the server supports signing in. A server that only requires a key does not
   * mention OAuth.
   */
  async #mayBegin(challenge: string | undefined, signal: AbortSignal): Promise<boolean> {
    if (challengeParameter(challenge, "resource_metadata") !== undefined) return true;
    try {
      const protocol = await Protocol.open(this.server, this.#host);
      return await discover(protocol, { challenge, signal }) !== undefined;
    } catch {
      return false; // the server's own answer is more specific
    }
  }

  /**
   * Returns the error for a call that needs more scopes, and stores them for the next sign-in.
   * Returns undefined if there is another sign-in already.
   */
  async #stepUp(
    signIn: StoredSignIn,
    moreScopes: readonly string[],
  ): Promise<PmlError | undefined> {
    const [key, store] = [this.#key, this.#store];
    const missing = moreScopes.filter((scope) => !signIn.scopes.includes(scope));
    const withMissing = (stored: StoredSignIn) => [
      ...new Set([...stored.wanted ?? [], ...missing]),
    ];
    let scopes = withMissing(signIn);
    const recent = this.#steps.filter(({ at }) => performance.now() - at < STEPS_MS);
    const isKnown = recent.some((step) => missing.every((scope) => step.scopes.includes(scope)));
    const isGranted = moreScopes.length > 0 && missing.length === 0;
    // guard: sign-in-steps
    if (isGranted || !isKnown && recent.length >= STEPS) {
      const why = isGranted ? "scopes that were granted already" : "more scopes each time";
      const name = quoted(this.server.name);
      return new PmlError("PERMISSION_DENIED", `Cannot use ${name}: it asks for ${why}`, {
        hint: "Tell the operator of the server; a new sign-in does not help",
        detail: { server: this.server.name, scopes: moreScopes, may_have_run: false },
      });
    }
    if (!isKnown) this.#steps = [...recent, { at: performance.now(), scopes }];
    // A sign-in has the lock while the user is in the browser.
    const isReplaced = await store.withLock(key, async () => {
      const current = await store.read(key);
      if (current === undefined) return false;
      if (current.accessToken !== signIn.accessToken) return true;
      // Another call may have stored other scopes meanwhile.
      scopes = withMissing(current);
      await store.write(key, { ...current, wanted: scopes });
      return false;
    });
    return isReplaced ? undefined : this.#loginRequired("it requires more permissions", scopes);
  }

  #loginRequired(why: string, scopes?: readonly string[]): PmlError {
    const { name } = this.server;
    const command = `pml login ${name}`;
    // Lists of servers show only the message.
    return new PmlError("LOGIN_REQUIRED", `Cannot use ${quoted(name)}: ${why} (${command})`, {
      hint: `Run: ${command}`,
      detail: { server: name, ...(scopes && { scopes }), may_have_run: false },
    });
  }
}

/**
 * Returns the secrets of a sign-in, which are redacted from all texts. Plain words are excluded, so
 * that a service cannot hide words of the journal by using them as tokens.
 */
export function secretsOf(signIn: StoredSignIn | undefined): readonly string[] {
  const { accessToken, refreshToken, client } = signIn ?? {};
  return [accessToken, refreshToken, client?.client_secret]
    .flatMap((each = "") => /^(?=.*[\dA-Z]).{8,}$/.exec(each) ?? []);
}

/** Returns the reason for a sign-in that has ended. */
function endedText(signIn: StoredSignIn | undefined): string {
  return ["your sign-in has expired or ended", signIn?.refusal].filter(Boolean).join(": ");
}

function headerOf(signIn: StoredSignIn | undefined): string | undefined {
  return signIn?.accessToken && `Bearer ${signIn.accessToken}`;
}

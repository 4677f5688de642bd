/**
 * Signs the user in at servers, for a command or while a call waits. Detects sign-ins of other
 * processes.
 *
 * @module
 */

import { join } from "node:path";
import type { Call } from "../protocol/call.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { objectOf, quoted, withoutUndefined } from "../core/json.ts";
import { ownProgress } from "../protocol/progress.ts";
import { PathWatcher } from "../io/path_watcher.ts";
import { readCache } from "../io/cache_files.ts";
import { withLock, writePrivate } from "../io/private_files.ts";
import { unlessAborted } from "../io/waiting.ts";
import type { SignIns } from "./sign_ins.ts";
import type { OAuthServer, PendingSignIn } from "./oauth_server.ts";

/** The servers that the user can sign in at. */
export interface LoginHost {
  /** How long a sign-in waits for the user, in milliseconds. */
  readonly signInMs: number;
  /** Returns the sign-ins. */
  signIns(): Promise<SignIns>;
  /** Returns a server for a sign-in. Throws if the server does not support signing in. */
  serverForSignIn(name: string): Promise<OAuthServer>;
  /**
   * Is called when the user signed in or out at a server, in any process. `mark` is a new value
   * each time.
   */
  signInChanged(server: string, mark: unknown): void;
}

/** A sign-in that waits for the user. */
export interface Login extends PendingSignIn {
  readonly server: OAuthServer;
  /** The host of the page. */
  readonly host: string;
}

/** A login that calls wait for. */
interface OpenLogin {
  readonly login: Login;
  /** The user's answer to the approval request of one of the calls; undefined if there was none. */
  prompt: Promise<boolean | undefined> | undefined;
}

/** The result of a sign-out. */
type SignOutResult = Awaited<ReturnType<SignIns["end"]>>;

/**
 * If a server refuses a token that is younger than this, PML does not ask the user to sign in
 * again.
 */
const FRESH_MS = 60_000;
/** The time between two progress reports of a waiting call: some clients cancel silent calls. */
const REPORT_MS = 5_000;

/** Returns the server of an error that requires a sign-in; undefined for other errors. */
export function serverToSignInAt({ code, detail }: PmlError): string | undefined {
  const server = detail?.server;
  return code === "LOGIN_REQUIRED" && typeof server === "string" ? server : undefined;
}

/** Signs the user in and out. */
export class Logins {
  readonly #host: LoginHost;
  readonly #closing: AbortSignal;
  readonly #file: string;
  readonly #open = new Map<string, Promise<OpenLogin>>();
  /** The time of the last sign-in at each server while a call of this process waited. */
  readonly #signedInAt = new Map<string, number>();
  #following: Promise<void> | undefined;

  /** Uses the PML home. `closing` aborts when PML ends. */
  constructor(home: string, host: LoginHost, closing: AbortSignal) {
    this.#host = host;
    this.#closing = closing;
    this.#file = join(home, "signed_in.json");
  }

  /** Returns the server for a sign-in. Throws if the user cannot sign in at it. */
  async findServer(name: string): Promise<OAuthServer> {
    return await this.#host.serverForSignIn(name);
  }

  /** Starts a sign-in. It ends after its time limit, with PML, or when the signal aborts. */
  async begin(
    name: string,
    { scopes, signal }: {
      readonly scopes: readonly string[] | undefined;
      readonly signal: AbortSignal;
    },
  ): Promise<Login> {
    const host = this.#host;
    const server = await host.serverForSignIn(name);
    const timeout = AbortSignal.timeout(host.signInMs);
    const endSignal = AbortSignal.any([this.#closing, signal, timeout]);
    const signIn = await (await host.signIns()).begin(server, {
      signal: endSignal,
      ...withoutUndefined({ scopes }),
    });
    const timeoutError = () =>
      new PmlError("TIMED_OUT", `Cannot sign in at ${quoted(name)}: it took too long`);
    const done = unlessAborted(signIn.done, endSignal, timeoutError)
      .then(() => this.#recordChange(name))
      .finally(() => signIn[Symbol.asyncDispose]());
    done.catch(() => {}); // a login may be cancelled before a caller awaits it
    return { ...signIn, server, done, host: new URL(signIn.url).host };
  }

  /** Signs out at one server, or at all. Returns the result by server. */
  async end(
    name: string | undefined,
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, SignOutResult>>> {
    const host = this.#host;
    const signIns = await host.signIns();
    const stored = (await signIns.all()).filter(({ server }) => (name ?? server) === server);
    const results: Record<string, SignOutResult> = {};
    if (name !== undefined && stored.length === 0) {
      results[(await host.serverForSignIn(name)).name] = "none";
    }
    for (const { server: serverName, url, client } of stored) {
      // The definition may have changed since the sign-in, or be gone.
      const earlier: OAuthServer = { name: serverName, url, named: new Set([new URL(url).host]) };
      const current = await host.serverForSignIn(serverName).catch(() => earlier);
      for (const server of [current, earlier, { ...earlier, oauth: { client_id: client } }]) {
        const result = await signIns.end(server, signal);
        if (result !== "none") results[serverName] = result;
      }
      await this.#recordChange(serverName);
    }
    return results;
  }

  /** Runs `work`, and repeats it after each sign-in that the server of the call requires. */
  async during<T>(call: Call, work: () => Promise<T>): Promise<T> {
    for (;;) {
      const since = performance.now();
      try {
        return await work();
      } catch (error) {
        if (!await this.signInAfterError(call, { error, since })) throw error;
      }
    }
  }

  /**
   * Signs the user in after an error of a call that requires a sign-in, if the client can open a
   * page. Returns whether the call can be repeated. `since` is the time when the call was sent. A
   * server may ask for more scopes only a few times, and for the same scopes not soon after a
   * sign-in.
   */
  async signInAfterError(
    call: Call,
    { error: cause, since }: { readonly error: unknown; readonly since: number },
  ): Promise<boolean> {
    const error = asPmlError(cause);
    const server = serverToSignInAt(error);
    if (server === undefined || call.client.onOpen === undefined) return false;
    await this.#signIn(server, { call, since, error });
    return true;
  }

  /** Follows the sign-ins of other processes until PML ends. */
  follow(): Promise<void> {
    return this.#following ??= this.#follow();
  }

  async #follow(): Promise<void> {
    const closing = this.#closing;
    for (let marks = this.#marks(); !closing.aborted;) {
      using file = new PathWatcher([this.#file], closing);
      // The file is read after the watcher has started, so that no change is missed.
      const newMarks = this.#marks();
      for (const [name, mark] of Object.entries(newMarks)) {
        if (mark !== marks[name]) this.#host.signInChanged(name, mark);
      }
      marks = newMarks;
      await file.change();
    }
  }

  async #signIn(
    server: string,
    { call, since, error: { message, ...error } }: {
      readonly call: Call;
      readonly since: number;
      readonly error: PmlError;
    },
  ): Promise<void> {
    const { signal } = call.cancellation;
    const errorFor = (why: string) => new PmlError("LOGIN_REQUIRED", `${message}; ${why}`, error);
    const last = this.#signedInAt.get(server) ?? -Infinity;
    // The user signed in for another call in the meantime.
    if (last > since) return;
    const scopes = error.detail?.scopes as readonly string[] | undefined; // of the sign-in
    // guard: login-again
    if (scopes === undefined && since - last < FRESH_MS) {
      throw errorFor("it does not accept the new sign-in");
    }
    const open = await unlessAborted(this.#openLogin(server, scopes), signal);
    const why = await this.#askUser(open, call);
    if (why !== undefined) throw errorFor(why);
    using _ = reportWaiting(call, open.login);
    await unlessAborted(open.login.done, signal).catch((cause) => {
      signal.throwIfAborted();
      throw errorFor(asPmlError(cause).message);
    });
  }

  /** Asks the user once for all waiting calls. Returns the reason if the user did not agree. */
  async #askUser(
    open: OpenLogin,
    { id, client: { onOpen }, cancellation: { signal } }: Call,
  ): Promise<string | undefined> {
    const { server: { name, url }, host, ...page } = open.login;
    const text = `PML asks: sign in at ${host} for the server ${quoted(name)} (${
      new URL(url).host
    })? ${receiversText(open.login)}. The call of ${id} needs it`;
    for (let hasAsked = false; !hasAsked;) {
      hasAsked = open.prompt === undefined;
      const prompt = open.prompt ??= onOpen?.({ ...page, text }, signal).catch(() => undefined);
      const isAgreed = await unlessAborted(Promise.resolve(prompt), signal);
      if (isAgreed) return undefined;
      if (isAgreed === false) {
        this.#open.delete(name);
        // guard: login-declined
        void open.login[Symbol.asyncDispose]();
        return "the user declined";
      }
      // The call that asked may have ended before the user answered.
      if (open.prompt === prompt) open.prompt = undefined;
    }
    return "there was no answer";
  }

  /** Returns the login at a server that calls wait for. Begins one if there is none. */
  #openLogin(server: string, scopes: readonly string[] | undefined): Promise<OpenLogin> {
    const openLogin = this.#open.get(server);
    // guard: login-once
    if (openLogin !== undefined) return openLogin;
    const signal = this.#closing;
    const opening = this.begin(server, { scopes, signal }).then((login): OpenLogin => {
      login.done.then(() => this.#signedInAt.set(server, performance.now()), () => {})
        .then(removeLogin);
      return { login, prompt: undefined };
    });
    // After a declined sign-in, the map may already contain another login.
    const removeLogin = () => this.#open.get(server) === opening && this.#open.delete(server);
    opening.catch(removeLogin);
    this.#open.set(server, opening);
    return opening;
  }

  /** Records that the user signed in or out, for this process and all others. */
  async #recordChange(server: string): Promise<void> {
    const mark = crypto.randomUUID();
    await withLock(
      `${this.#file}.lock`,
      () => writePrivate(this.#file, { ...this.#marks(), [server]: mark }),
    );
    this.#host.signInChanged(server, mark);
  }

  #marks(): Readonly<Record<string, unknown>> {
    return objectOf(readCache(this.#file));
  }
}

/** Returns a text with the issuer of the token and the receivers of the code and the token. */
export function receiversText({ issuer, codeHost, sharedClient, server: { url } }: Login): string {
  const { host } = new URL(url);
  const text = `Issuer ${quoted(issuer, 200)}; ${codeHost} receives the code, ${host} the token`;
  if (sharedClient === undefined) return text;
  return `${text}. ${
    new URL(issuer).host
  } knows this client from other servers: your consent lets ${host} use your account there`;
}

/** Reports progress to a waiting call periodically, which also extends its deadline. */
function reportWaiting({ client: { onProgress } }: Call, { host }: Login): Disposable {
  const message = `waiting for the sign-in at ${host}`;
  const report = () => onProgress?.(ownProgress("working", message));
  report();
  const timer = setInterval(report, REPORT_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/**
 * Signs the user in at servers, for a command or while a call waits. Detects sign-ins of other
 * processes.
 *
 * @module
 */

import { join } from "node:path";
import type { Call } from "../protocol/call.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { defined, objectOf, quoted } from "../core/json.ts";
import { ownProgress } from "../protocol/progress.ts";
import { PathWatcher } from "../io/following.ts";
import { readCache } from "../io/kept.ts";
import { locked, writePrivate } from "../io/private_files.ts";
import { unlessAborted } from "../io/waiting.ts";
import type { SignIns } from "./sign_ins.ts";
import type { OAuthServer, SignIn } from "./oauth_server.ts";

/** The servers that the user can sign in at. */
export interface LoginHost {
  /** How long a sign-in waits for the user, in milliseconds. */
  readonly signInMs: number;
  /** Returns the sign-ins. */
  signIns(): Promise<SignIns>;
  /** Returns a server to sign in at. Throws if the server does not support signing in. */
  signInAt(name: string): Promise<OAuthServer>;
  /**
   * Called when the user signed in or out at a server, in any process. The mark is different each
   * time.
   */
  signInChanged(server: string, mark: unknown): void;
}

/** A sign-in that waits for the user. */
export interface Login extends SignIn {
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

/** The result of signing out. */
type Ended = Awaited<ReturnType<SignIns["end"]>>;

/**
 * If a server refuses a token that is younger than this, PML does not ask the user to sign in
 * again.
 */
const FRESH_MS = 60_000;
/** How often a waiting call reports progress: some clients cancel silent calls. */
const TELL_MS = 5_000;

/** Returns the server that an error requires a sign-in at; undefined for all other errors. */
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
  readonly #since = new Map<string, number>();
  #following: Promise<void> | undefined;

  /** Uses the PML home. `closing` aborts when PML ends. */
  constructor(home: string, host: LoginHost, closing: AbortSignal) {
    this.#host = host;
    this.#closing = closing;
    this.#file = join(home, "signed_in.json");
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
    const server = await host.signInAt(name);
    const late = AbortSignal.timeout(host.signInMs);
    const until = AbortSignal.any([this.#closing, signal, late]);
    const signIn = await (await host.signIns()).begin(server, {
      signal: until,
      ...defined({ scopes }),
    });
    const tooLong = () =>
      new PmlError("TIMED_OUT", `Cannot sign in at ${quoted(name)}: it took too long`);
    const done = unlessAborted(signIn.done, until, tooLong).then(() => this.#changed(name))
      .finally(() => signIn[Symbol.asyncDispose]());
    done.catch(() => {}); // a login may be cancelled before a caller awaits it
    return { ...signIn, server, done, host: new URL(signIn.url).host };
  }

  /** Signs out at one server, or at all. Returns the result by server. */
  async end(
    name: string | undefined,
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, Ended>>> {
    const host = this.#host;
    const all = await host.signIns();
    const signIns = (await all.all()).filter(({ server }) => (name ?? server) === server);
    const done: Record<string, Ended> = {};
    if (name !== undefined && signIns.length === 0) done[(await host.signInAt(name)).name] = "none";
    for (const { server: one, url, client } of signIns) {
      // The definition may have changed since the sign-in, or be gone.
      const gone: OAuthServer = { name: one, url, named: new Set([new URL(url).host]) };
      const signIn = await host.signInAt(one).catch(() => gone);
      for (const server of [signIn, gone, { ...gone, oauth: { client_id: client } }]) {
        const how = await all.end(server, signal);
        if (how !== "none") done[one] = how;
      }
      await this.#changed(one);
    }
    return done;
  }

  /** Runs `work`, and repeats it after each sign-in that its server requires. */
  async during<T>(call: Call, work: () => Promise<T>): Promise<T> {
    for (;;) {
      const since = performance.now();
      try {
        return await work();
      } catch (error) {
        if (!await this.signedIn(call, { error, since })) throw error;
      }
    }
  }

  /**
   * Signs the user in after an error of a call that requires it, if the client can open a page.
   * Returns whether the call can be repeated. `since` is the time when the call was sent. A server
   * may ask for more scopes only a few times, and for the same scopes not soon after a sign-in.
   */
  async signedIn(
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
      // Reading after the watcher has started prevents a missed change.
      const now = this.#marks();
      for (const [name, mark] of Object.entries(now)) {
        if (mark !== marks[name]) this.#host.signInChanged(name, mark);
      }
      marks = now;
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
    const failed = (why: string) => new PmlError("LOGIN_REQUIRED", `${message}; ${why}`, error);
    const last = this.#since.get(server) ?? -Infinity;
    // The user signed in for another call in the meantime.
    if (last > since) return;
    const scopes = error.detail?.scopes as readonly string[] | undefined; // of the sign-in
    // guard: login-again
    if (scopes === undefined && since - last < FRESH_MS) {
      throw failed("it does not accept the new sign-in");
    }
    const open = await unlessAborted(this.#opened(server, scopes), signal);
    const why = await this.#refusal(open, call);
    if (why !== undefined) throw failed(why);
    using _ = telling(call, open.login);
    await unlessAborted(open.login.done, signal).catch((cause) => {
      signal.throwIfAborted();
      throw failed(asPmlError(cause).message);
    });
  }

  /** Asks the user once for all waiting calls. Returns the reason if the user did not agree. */
  async #refusal(
    open: OpenLogin,
    { id, client: { onOpen }, cancellation: { signal } }: Call,
  ): Promise<string | undefined> {
    const { server: { name, url: at }, host, ...page } = open.login;
    const text = `PML asks: sign in at ${host} for the server ${quoted(name)} (${
      new URL(at).host
    })? ${receiversText(open.login)}. The call of ${id} needs it`;
    for (let isOwn = false; !isOwn;) {
      isOwn = open.prompt === undefined;
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

  #opened(server: string, scopes: readonly string[] | undefined): Promise<OpenLogin> {
    const openLogin = this.#open.get(server);
    // guard: login-once
    if (openLogin !== undefined) return openLogin;
    const signal = this.#closing;
    const opening = this.begin(server, { scopes, signal }).then((login): OpenLogin => {
      login.done.then(() => this.#since.set(server, performance.now()), () => {}).then(over);
      return { login, prompt: undefined };
    });
    // After a declined sign-in, another one may start.
    const over = () => this.#open.get(server) === opening && this.#open.delete(server);
    opening.catch(over);
    this.#open.set(server, opening);
    return opening;
  }

  /** Records that the user signed in or out, for this process and others. */
  async #changed(server: string): Promise<void> {
    const mark = crypto.randomUUID();
    await locked(
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
function telling({ client: { onProgress } }: Call, { host }: Login): Disposable {
  const message = `waiting for the sign-in at ${host}`;
  const tell = () => onProgress?.(ownProgress("working", message));
  tell();
  const timer = setInterval(tell, TELL_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

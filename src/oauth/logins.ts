/**
 * Signs the person in at servers: for a command, and while a call waits. Notices what other
 * processes do about it.
 *
 * @module
 */

import { join } from "node:path";
import type { Call } from "../protocol/call.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { defined, objectOf, quoted } from "../core/json.ts";
import { ownProgress } from "../protocol/progress.ts";
import { Following } from "../io/following.ts";
import { readKept } from "../io/kept.ts";
import { locked, writePrivate } from "../io/private_files.ts";
import { unlessAborted } from "../io/waiting.ts";
import type { SignIns } from "./sign_ins.ts";
import type { OAuthServer, SignIn } from "./oauth_server.ts";

/** The servers at which the user can sign in. */
export interface LoginHost {
  /** How long a sign-in waits for the person now, in milliseconds. */
  readonly signInMs: number;
  /** Returns the sign-ins. */
  signIns(): Promise<SignIns>;
  /** Returns a server to sign in at. Throws if nobody can sign in there. */
  signInAt(name: string): Promise<OAuthServer>;
  /**
   * Is called when the person signed in at a server or out, in any process. The mark is another one
   * each time.
   */
  signInChanged(server: string, mark: unknown): void;
}

/** A sign-in that waits for the person. */
export interface Login extends SignIn {
  readonly server: OAuthServer;
  /** The host of the page. */
  readonly host: string;
}

/** A login that calls wait for. */
interface Open {
  readonly login: Login;
  /** The answer to the question of one of the calls; undefined if nobody answered. */
  asked: Promise<boolean | undefined> | undefined;
}

/** What signing out did. */
type Ended = Awaited<ReturnType<SignIns["end"]>>;

/** A server that refuses a token that is no older than this is not asked about again. */
const FRESH_MS = 60_000;
/** How often a call that waits tells so: some clients give up on calls that are silent. */
const TELL_MS = 5_000;

/** Returns the server that a person must sign in at; undefined if an error is about something else. */
export function serverToSignInAt({ code, detail }: PmlError): string | undefined {
  const server = detail?.server;
  return code === "LOGIN_REQUIRED" && typeof server === "string" ? server : undefined;
}

/** Signs in and out. */
export class Logins {
  readonly #host: LoginHost;
  readonly #closing: AbortSignal;
  readonly #file: string;
  readonly #open = new Map<string, Promise<Open>>();
  /** When the person signed in at a server, while a call of this process waited. */
  readonly #since = new Map<string, number>();
  #following: Promise<void> | undefined;

  /** Takes the PML home. `closing` aborts when PML ends. */
  constructor(home: string, host: LoginHost, closing: AbortSignal) {
    this.#host = host;
    this.#closing = closing;
    this.#file = join(home, "signed_in.json");
  }

  /** Begins a sign-in, which ends with its time, with PML, or when the signal aborts. */
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
    done.catch(() => {}); // a login may be given up while nobody waits for it
    return { ...signIn, server, done, host: new URL(signIn.url).host };
  }

  /** Signs out at a server, or at all. Returns what was done, by server. */
  async end(
    name: string | undefined,
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, Ended>>> {
    const host = this.#host;
    const all = await host.signIns();
    const kept = (await all.all()).filter(({ server }) => (name ?? server) === server);
    const done: Record<string, Ended> = {};
    if (name !== undefined && kept.length === 0) done[(await host.signInAt(name)).name] = "none";
    for (const { server: one, url, client } of kept) {
      // Its definition may be another one by now, or gone.
      const gone: OAuthServer = { name: one, url, named: new Set([new URL(url).host]) };
      const known = await host.signInAt(one).catch(() => gone);
      for (const server of [known, gone, { ...gone, oauth: { client_id: client } }]) {
        const how = await all.end(server, signal);
        if (how !== "none") done[one] = how;
      }
      await this.#changed(one);
    }
    return done;
  }

  /** Runs `work`, and again each time that the user signed in because its server wants that. */
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
   * Signs the user in after an error of a call that asks for it, if the client can open a page.
   * Returns whether the call can be repeated. `since` is when it was sent. A server may ask for
   * more scopes only a few times, and for the same ones not soon after a sign-in.
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

  /** Follows what other processes do, until PML ends. */
  follow(): Promise<void> {
    return this.#following ??= this.#follow();
  }

  async #follow(): Promise<void> {
    const closing = this.#closing;
    for (let known = this.#marks(); !closing.aborted;) {
      using file = new Following([this.#file], closing);
      // Read after the watching has begun, so that no change falls between.
      const now = this.#marks();
      for (const [name, mark] of Object.entries(now)) {
        if (mark !== known[name]) this.#host.signInChanged(name, mark);
      }
      known = now;
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
    // Another call had the person sign in meanwhile.
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

  /** Asks the person, once for all calls that wait. Returns why there is nothing to wait for. */
  async #refusal(
    open: Open,
    { id, client: { onOpen }, cancellation: { signal } }: Call,
  ): Promise<string | undefined> {
    const { server: { name, url: at }, host, ...page } = open.login;
    const text = `PML asks: sign in at ${host} for the server ${quoted(name)} (${
      new URL(at).host
    })? ${receiversText(open.login)}. The call of ${id} needs it`;
    for (let isOwn = false; !isOwn;) {
      isOwn = open.asked === undefined;
      const asked = open.asked ??= onOpen?.({ ...page, text }, signal).catch(() => undefined);
      const isAgreed = await unlessAborted(Promise.resolve(asked), signal);
      if (isAgreed) return undefined;
      if (isAgreed === false) {
        this.#open.delete(name);
        // guard: login-declined
        void open.login[Symbol.asyncDispose]();
        return "the user declined";
      }
      // The call that asked may have ended before there was an answer.
      if (open.asked === asked) open.asked = undefined;
    }
    return "there was no answer";
  }

  #opened(server: string, scopes: readonly string[] | undefined): Promise<Open> {
    const known = this.#open.get(server);
    // guard: login-once
    if (known !== undefined) return known;
    const signal = this.#closing;
    const opening = this.begin(server, { scopes, signal }).then((login): Open => {
      login.done.then(() => this.#since.set(server, performance.now()), () => {}).then(over);
      return { login, asked: undefined };
    });
    // After a no there may be another one.
    const over = () => this.#open.get(server) === opening && this.#open.delete(server);
    opening.catch(over);
    this.#open.set(server, opening);
    return opening;
  }

  /** Notes that the person signed in or out, for this process and others. */
  async #changed(server: string): Promise<void> {
    const mark = crypto.randomUUID();
    await locked(
      `${this.#file}.lock`,
      () => writePrivate(this.#file, { ...this.#marks(), [server]: mark }),
    );
    this.#host.signInChanged(server, mark);
  }

  #marks(): Readonly<Record<string, unknown>> {
    return objectOf(readKept(this.#file));
  }
}

/** Returns who issues the token of a sign-in, and who receives the code and the token. */
export function receiversText({ issuer, codeHost, sharedClient, server: { url } }: Login): string {
  const { host } = new URL(url);
  const text = `Issuer ${quoted(issuer, 200)}; ${codeHost} receives the code, ${host} the token`;
  if (sharedClient === undefined) return text;
  return `${text}. ${
    new URL(issuer).host
  } knows this client from other servers: your consent lets ${host} use your account there`;
}

/** Tells a call what it waits for, again and again. That also extends its deadline. */
function telling({ client: { onProgress } }: Call, { host }: Login): Disposable {
  const message = `waiting for the sign-in at ${host}`;
  const tell = () => onProgress?.(ownProgress("working", message));
  tell();
  const timer = setInterval(tell, TELL_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

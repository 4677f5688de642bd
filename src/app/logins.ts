/**
 * Signs the person in at servers: for a command, and while a call waits. Notices what other
 * processes do about it.
 *
 * @module
 */

import { join } from "node:path";
import { isPage } from "../core/address.ts";
import type { Call } from "../core/call.ts";
import { asPmlError, type ErrorCode, PmlError } from "../core/errors.ts";
import { defined, objectOf, quoted } from "../core/json.ts";
import type { PassGate, PassOutcome } from "../core/server.ts";
import { Following } from "../io/following.ts";
import { keep, readKept } from "../io/kept.ts";
import { unlessAborted } from "../io/waiting.ts";
import type { StartProgress } from "../mcp_client/start_progress.ts";
import type { OAuthServer, SignedIn, SignIn, SignIns } from "../oauth/sign_ins.ts";

/** The options of `Logins`. */
export interface LoginsOptions {
  readonly home: string;
  readonly signIns: () => Promise<SignIns>;
  /** Returns a server to sign in at. Throws if nobody can sign in there. */
  readonly serverOf: (name: string) => Promise<OAuthServer>;
  /** Is called when the person signed in at a server or out, in any process. */
  readonly onChange: (server: string) => void;
  /** Tells the calls that wait for a server what they wait for. */
  readonly starts: StartProgress;
  /** How long a sign-in waits for the person. */
  readonly waitMs: () => number;
  readonly closing: AbortSignal;
}

/** A sign-in that waits for the person. Disposing gives it up. */
export interface Login extends Pick<SignIn, "url" | "done" | "paste">, Disposable {
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

/** What a call needs a sign-in for. */
interface Wanted {
  readonly server: string;
  readonly scopes: readonly string[] | undefined;
  readonly error: PmlError;
}

/** What signing out did. */
type Ended = Awaited<ReturnType<SignIns["end"]>>;

/** A server that refuses a token that is no older than this is not asked about again. */
const FRESH_MS = 60_000;
/** How often a call that waits tells its client so: some give up on calls that are silent. */
const TELL_MS = 5_000;

/** Signs in and out. */
export class Logins {
  readonly #options: LoginsOptions;
  readonly #file: string;
  readonly #open = new Map<string, Promise<Open>>();
  /** When the person signed in at a server, while a call of this process waited. */
  readonly #since = new Map<string, number>();
  #known: Readonly<Record<string, unknown>> = {};

  /** Takes the options; asks nobody. */
  constructor(options: LoginsOptions) {
    this.#options = options;
    this.#file = join(options.home, "signed_in.json");
  }

  /** Begins a sign-in, which ends with its time, with PML, or when the signal aborts. */
  async begin(
    name: string,
    { scopes, signal }: {
      readonly scopes: readonly string[] | undefined;
      readonly signal: AbortSignal;
    },
  ): Promise<Login> {
    const { serverOf, signIns, waitMs, closing } = this.#options;
    const server = await serverOf(name);
    const stop = new AbortController();
    const cannot = (code: ErrorCode, why: string) =>
      new PmlError(code, `Cannot sign in at ${quoted(name)}: ${why}`);
    const until = AbortSignal.any([stop.signal, closing, signal, AbortSignal.timeout(waitMs())]);
    const signIn = await (await signIns()).begin(server, { signal: until, ...defined({ scopes }) });
    const { url } = signIn;
    const over = () => cannot("TIMED_OUT", "it took too long, or was given up");
    const done = unlessAborted(signIn.done, until, over).then(() => this.#changed(name))
      .finally(() => signIn[Symbol.asyncDispose]());
    done.catch(() => {}); // a login may be given up while nobody waits for it
    const login: Login = {
      ...{ url, server, done, host: URL.parse(url)?.host ?? "" },
      paste: (address) => signIn.paste(address),
      [Symbol.dispose]: () => stop.abort(),
    };
    if (isPage(url)) return login;
    stop.abort();
    throw cannot("UPSTREAM_PROTOCOL", "its page has an unsafe address");
  }

  /** Signs out at a server, or at all. Returns what was done, by server. */
  async end(
    name: string | undefined,
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, Ended>>> {
    const { signIns, serverOf } = this.#options;
    const all = await signIns();
    const done: Record<string, Ended> = {};
    const names = name === undefined ? (await all.all()).map(({ server }) => server) : [name];
    for (const one of names) {
      done[one] = await all.end(await serverOf(one), signal);
      this.#changed(one);
    }
    return done;
  }

  /** Returns all sign-ins that are kept. */
  async all(): Promise<readonly SignedIn[]> {
    return await (await this.#options.signIns()).all();
  }

  /**
   * Runs `work`. If its server wants a sign-in and the client of the call can open a page: has the
   * person sign in, and returns what `again` gives, by default `work` once more.
   */
  async during<T>(
    call: Call,
    { work, again = work }: { readonly work: () => Promise<T>; readonly again?: () => Promise<T> },
  ): Promise<T> {
    const since = performance.now();
    try {
      return await work();
    } catch (error) {
      const wanted = wantedBy(error);
      // What runs without a record runs as it was looked at.
      if (wanted === undefined || call.onOpen === undefined || call.isLost) throw error;
      await this.#signIn(wanted, { call, since });
      return await again();
    }
  }

  /** Has the person sign in where the server of a call wants that. Then the pass begins again. */
  readonly gate: PassGate = (next) => async (call) =>
    await this.during<PassOutcome>(call, {
      work: () => next(call),
      again: () => Promise.resolve({ kind: "changed" }),
    });

  /** Follows what other processes do, until PML ends. */
  async follow(): Promise<void> {
    const { closing, onChange } = this.#options;
    this.#known = this.#read();
    while (!closing.aborted) {
      using file = new Following([this.#file], closing);
      // Read after the watching has begun, so that no change falls between.
      const [before, now] = [this.#known, this.#read()];
      this.#known = now;
      for (const name of Object.keys(now)) if (now[name] !== before[name]) onChange(name);
      await file.change();
    }
  }

  async #signIn(
    { server, scopes, error }: Wanted,
    { call, since }: { readonly call: Call; readonly since: number },
  ): Promise<void> {
    const last = this.#since.get(server) ?? -Infinity;
    // Another call had the person sign in meanwhile.
    if (last > since) return;
    if (scopes === undefined && since - last < FRESH_MS) throw error;
    const open = await unlessAborted(this.#opened(server, scopes), call.signal);
    await this.#agreed(open, { call, error });
    const { signal, onProgress } = call;
    const work = () => unlessAborted(this.#told(server, open.login), signal);
    await this.#options.starts.during(server, { onProgress, work }).catch((cause) => {
      signal.throwIfAborted();
      throw failed(error, asPmlError(cause).message);
    });
  }

  /** Waits for a sign-in, and tells the calls that wait again and again. */
  async #told(server: string, { host, done }: Login): Promise<void> {
    const tell = () => this.#options.starts.tell(server, `waiting for the sign-in at ${host}`);
    tell();
    const timer = setInterval(tell, TELL_MS);
    await done.finally(() => clearInterval(timer));
  }

  /** Asks the person, once for all calls that wait. Throws unless the person agrees. */
  async #agreed(
    open: Open,
    { call, error }: { readonly call: Call; readonly error: PmlError },
  ): Promise<void> {
    const { login: { server, url, host, done } } = open;
    for (;;) {
      const isOwn = open.asked === undefined;
      const text = `PML asks: sign in at ${host} for the server ${quoted(server.name)} (${
        new URL(server.url).host
      })? The call of ${call.id} needs it`;
      // Only what can be asked comes here.
      open.asked ??= call.onOpen?.({ url, text, done }, call.signal).catch(() => undefined);
      const { asked } = open;
      const isAgreed = await unlessAborted(Promise.resolve(asked), call.signal);
      if (isAgreed) return;
      if (isAgreed === undefined && open.asked === asked) open.asked = undefined;
      if (isAgreed === false) {
        this.#open.delete(server.name);
        open.login[Symbol.dispose]();
      }
      // The call that asked may have ended before there was an answer.
      if (isOwn || isAgreed === false) {
        throw failed(error, isAgreed === false ? "the person declined" : "nobody answered");
      }
    }
  }

  #opened(server: string, scopes: readonly string[] | undefined): Promise<Open> {
    const known = this.#open.get(server);
    if (known !== undefined) return known;
    const { closing: signal } = this.#options;
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
  #changed(server: string): void {
    this.#known = { ...this.#read(), [server]: crypto.randomUUID() };
    keep(this.#file, this.#known);
    this.#options.onChange(server);
  }

  #read(): Readonly<Record<string, unknown>> {
    return objectOf(readKept(this.#file));
  }
}

/** Returns the sign-in that would mend an error; undefined if none would. */
function wantedBy(error: unknown): Wanted | undefined {
  if (!(error instanceof PmlError) || error.code !== "LOGIN_REQUIRED") return undefined;
  const { server, scopes } = error.detail ?? {};
  if (typeof server !== "string") return undefined;
  return { server, scopes: Array.isArray(scopes) ? scopes : undefined, error };
}

function failed({ message, hint, detail }: PmlError, why: string): PmlError {
  return new PmlError("LOGIN_REQUIRED", `${message}; ${why}`, defined({ hint, detail }));
}

/**
 * The sign-in of the page: links with a secret that is valid once, and the sessions that they open.
 *
 * @module
 */

import { randomBytes } from "node:crypto";
import { sha256 } from "../core/hash.ts";
import { dropOldest } from "../core/memo.ts";
import type { Clock } from "../io/waiting.ts";

/** How long a link may be used, in milliseconds. */
export const LINK_MS = 60_000;
/** How long a session lasts, in milliseconds. */
const SESSION_MS = 12 * 3_600_000;
/** The maximum numbers of links, of sessions, and of tokens in one session. */
const [LINKS_MAX, SESSIONS_MAX, TOKENS_MAX] = [200, 50, 100];

/** A signed-in browser. */
export interface Session {
  /** Aborts when the session ends. */
  readonly ending: AbortSignal;
}

/** The result of a sign-in. */
export type SignIn =
  | { readonly kind: "signed-in"; readonly cookie: string; readonly token: string }
  | { readonly kind: "used" }
  | { readonly kind: "expired" };

interface OpenSession {
  readonly cookie: string;
  readonly tokens: Set<string>;
  readonly expires: number;
  readonly end: AbortController;
}

interface Link {
  readonly expires: number;
  /** The session that the link opened; undefined before its first use. */
  session?: OpenSession;
}

/** The links and the sessions. All secrets are compared by their hashes. */
export class SignIns {
  readonly #clock: Clock;
  readonly #links = new Map<string, Link>();
  readonly #sessions = new Map<string, OpenSession>();

  /** `clock` decides when links and sessions expire. */
  constructor(clock: Clock = Date) {
    this.#clock = clock;
  }

  /** Returns the secret of a new link. */
  link(): string {
    const secret = randomBytes(32).toString("base64url");
    this.#links.set(sha256(secret), { expires: this.#clock.now() + LINK_MS });
    dropOldest(this.#links, LINKS_MAX);
    return secret;
  }

  /**
   * Signs a browser in. A link that was used before ends the session that it opened, because one of
   * the two browsers is not the user's. `cookies` are from the browser's request.
   */
  signIn(secret: string, cookies: readonly string[] = []): SignIn {
    const link = this.#links.get(sha256(secret));
    // guard: page-link-once
    if (link?.session !== undefined) {
      this.#end(link.session);
      return { kind: "used" };
    }
    // guard: page-link-age
    if (link === undefined || link.expires <= this.#clock.now()) return { kind: "expired" };
    // Further tabs of a browser share its cookie, so they share a session.
    const validCookie = cookies.find((cookie) => this.#findSession(cookie) !== undefined);
    const cookie = validCookie ?? randomBytes(32).toString("base64url");
    const session = this.#findSession(cookie) ?? this.#openSession(cookie);
    const token = randomBytes(32).toString("base64url");
    session.tokens.add(sha256(token));
    for (const oldest of session.tokens) {
      if (session.tokens.size <= TOKENS_MAX) break;
      session.tokens.delete(oldest);
    }
    link.session = session;
    return { kind: "signed-in", cookie, token };
  }

  /** Returns the session of a request; undefined without a valid cookie and a token for it. */
  sessionOf(cookies: readonly string[], token: string): Session | undefined {
    const hash = sha256(token);
    for (const cookie of cookies) {
      const session = this.#findSession(cookie);
      // guard: page-both
      if (session?.tokens.has(hash)) return { ending: session.end.signal };
    }
    return undefined;
  }

  /** Ends all sessions. */
  end(): void {
    for (const session of this.#sessions.values()) this.#end(session);
  }

  #openSession(cookie: string): OpenSession {
    const session: OpenSession = {
      cookie: sha256(cookie),
      tokens: new Set(),
      expires: this.#clock.now() + SESSION_MS,
      end: new AbortController(),
    };
    this.#sessions.set(session.cookie, session);
    for (const oldest of this.#sessions.values()) {
      if (this.#sessions.size <= SESSIONS_MAX) break;
      this.#end(oldest);
    }
    return session;
  }

  #findSession(cookie: string): OpenSession | undefined {
    const session = this.#sessions.get(sha256(cookie));
    if (session === undefined || session.expires > this.#clock.now()) return session;
    this.#end(session);
    return undefined;
  }

  #end(session: OpenSession): void {
    this.#sessions.delete(session.cookie);
    session.end.abort();
  }
}

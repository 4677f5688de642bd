/**
 * The codes and tokens of an authorization server of tests: codes that are valid once, refresh
 * tokens that rotate, and families that are revoked when one of their tokens is used again.
 *
 * @module
 */

import { createHash, randomBytes } from "node:crypto";
import { OAuthFault } from "./oauth_clients.ts";

/** The user's consent. */
export interface Allowed {
  readonly client: string;
  readonly redirect: string;
  readonly challenge: string;
  /** The server that the tokens are for; undefined if the request named none and need not. */
  readonly resource: string | undefined;
  readonly scopes: readonly string[];
}

/** One sign-in, and all its tokens. */
export interface Family extends Allowed {
  isRevoked: boolean;
  /** The valid refresh token. */
  refresh: string | undefined;
  /** The number of refreshes. */
  refreshes: number;
}

/** An access token. */
export interface Access {
  readonly token: string;
  readonly family: Family;
  readonly scopes: readonly string[];
  /** The expiry by the clock of the server. */
  until: number;
}

/** The settings of new tokens. */
export interface TokenSettings {
  /** The clock of the server: milliseconds since 1970. */
  readonly now: () => number;
  readonly lifetimeMs: () => number;
  readonly rotates: () => boolean;
}

const CODE_MS = 60_000;

/** All issued codes and tokens. */
export class IssuedTokens {
  /** Each sign-in, in order. */
  readonly families: Family[] = [];
  /** How often a used refresh token was sent again. */
  reuses = 0;
  readonly #settings: TokenSettings;
  readonly #codes = new Map<string, { allowed: Allowed; until: number; family?: Family }>();
  readonly #access = new Map<string, Access>();
  readonly #refresh = new Map<string, Family>();

  constructor(settings: TokenSettings) {
    this.#settings = settings;
  }

  /** The number of refreshes of all sign-ins. */
  get refreshes(): number {
    return this.families.reduce((sum, { refreshes }) => sum + refreshes, 0);
  }

  /** Every issued access and refresh token. */
  get secrets(): readonly string[] {
    return [...this.#access.keys(), ...this.#refresh.keys()];
  }

  /** Creates a code that is valid once, for a minute. */
  code(allowed: Allowed): string {
    const code = `code-${randomBytes(24).toString("base64url")}`;
    this.#codes.set(code, { allowed, until: this.#settings.now() + CODE_MS });
    return code;
  }

  /** Issues tokens for a code. Throws `OAuthFault`; a repeated code revokes its tokens. */
  redeem(
    code: string,
    { verifier, ...given }: {
      readonly verifier: string;
      readonly client: string;
      readonly redirect: string | null;
      readonly resource: string | undefined;
    },
  ): { readonly access: Access; readonly family: Family } {
    const bad = (what: string) => new OAuthFault("invalid_grant", `code: ${what}`);
    const kept = this.#codes.get(code);
    if (kept === undefined) throw bad("it is unknown");
    if (kept.family !== undefined) {
      kept.family.isRevoked = true;
      throw bad("it was used before");
    }
    const { allowed } = kept;
    if (this.#settings.now() > kept.until) throw bad("it is too old");
    if (allowed.client !== given.client) throw bad(`it is of ${allowed.client}`);
    if (allowed.redirect !== given.redirect) throw bad(`redirect_uri is ${given.redirect}`);
    if (allowed.resource !== given.resource) {
      throw new OAuthFault("invalid_target", `code: resource is ${given.resource}`);
    }
    if (!/^[\w.~-]{43,128}$/.test(verifier)) throw bad("code_verifier has no right form");
    const hash = createHash("sha256").update(verifier).digest("base64url");
    if (hash !== allowed.challenge) throw bad("code_verifier is another");
    const family: Family = { ...allowed, isRevoked: false, refresh: undefined, refreshes: 0 };
    kept.family = family;
    this.families.push(family);
    return { access: this.#give(family, family.scopes), family };
  }

  /** Creates the refresh token of a family, which replaces the one before. */
  renewable(family: Family): string {
    family.refresh = `refresh-${randomBytes(24).toString("base64url")}`;
    this.#refresh.set(family.refresh, family);
    return family.refresh;
  }

  /**
   * Issues another access token. Throws `OAuthFault`; a used refresh token revokes the whole
   * family.
   */
  refresh(
    token: string,
    { client, resource, scopes }: {
      readonly client: string;
      readonly resource: string | undefined;
      readonly scopes: readonly string[] | undefined;
    },
  ): { readonly access: Access; readonly family: Family } {
    const bad = (what: string) => new OAuthFault("invalid_grant", `refresh: ${what}`);
    const family = this.#refresh.get(token);
    if (family === undefined) throw bad("the token is unknown");
    if (family.client !== client) throw bad(`the token is of ${family.client}`);
    if (family.resource !== resource) {
      throw new OAuthFault("invalid_target", `refresh: resource is ${resource}`);
    }
    if (scopes?.some((one) => !family.scopes.includes(one))) {
      throw new OAuthFault("invalid_scope", `refresh: scope ${scopes} was never allowed`);
    }
    if (family.isRevoked) throw bad("the sign-in is revoked");
    if (family.refresh !== token) {
      this.reuses++;
      family.isRevoked = true;
      throw bad("the token was used before");
    }
    family.refreshes++;
    if (this.#settings.rotates()) this.renewable(family);
    return { access: this.#give(family, scopes ?? family.scopes), family };
  }

  /** Returns an issued access token, also an invalid one. */
  access(token: string): Access | undefined {
    return this.#access.get(token);
  }

  /** Returns whether an access token is valid now. */
  holds({ until, family }: Access): boolean {
    return !family.isRevoked && this.#settings.now() < until;
  }

  /** Lets all access tokens expire. Refresh tokens stay. */
  expire(): void {
    for (const access of this.#access.values()) access.until = 0;
  }

  /** Revokes a token for its client; a refresh token revokes its whole family. */
  revoke(token: string, client: string): boolean {
    const family = this.#refresh.get(token);
    const access = this.#access.get(token);
    const owner = family ?? access?.family;
    if (owner?.client !== client) return false;
    if (family !== undefined) family.isRevoked = true;
    if (access !== undefined) access.until = 0;
    return true;
  }

  /** Revokes every sign-in, as an administrator does. */
  revokeAll(): void {
    for (const family of this.families) family.isRevoked = true;
  }

  #give(family: Family, scopes: readonly string[]): Access {
    const token = `access-${randomBytes(24).toString("base64url")}`;
    const until = this.#settings.now() + this.#settings.lifetimeMs();
    const access: Access = { token, family, scopes, until };
    this.#access.set(token, access);
    return access;
  }
}

/**
 * Turns the answers of token endpoints into what is kept.
 *
 * @module
 */

import type { TokenEndpointResponse } from "oauth4webapi";
import type { Protocol } from "./_protocol.ts";
import type { Kept } from "./token_store.ts";

/** What of a sign-in an answer changes. */
type Tokens = Pick<Kept, "accessToken" | "refreshToken" | "scopes" | "since" | "until">;

/** What can stand in a header after `Bearer`. */
const SENDABLE = /^[\x21-\x7e]{1,8192}$/;
/** The longest life of a token: no date is far beyond it. */
const LONGEST_S = 1e9;

/** Returns the tokens of an answer. What it leaves out stays as it was. */
export function tokensOf(
  protocol: Protocol,
  answer: TokenEndpointResponse,
  before: Pick<Kept, "refreshToken" | "scopes">,
): Tokens {
  const { access_token, refresh_token, scope, expires_in, token_type } = answer;
  // guard: sign-in-token
  if (token_type !== "bearer" || !SENDABLE.test(access_token)) {
    throw protocol.error("UPSTREAM_PROTOCOL", "it gave a token that is no bearer token");
  }
  const since = Date.now();
  // guard: sign-in-life
  return {
    accessToken: access_token,
    refreshToken: refresh_token ?? before.refreshToken,
    scopes: scope?.split(" ").filter(Boolean) ?? before.scopes,
    since,
    until: expires_in === undefined ? undefined : since + Math.min(expires_in, LONGEST_S) * 1_000,
  };
}

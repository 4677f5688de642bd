/**
 * Converts the answers of token endpoints to stored tokens.
 *
 * @module
 */

import type { TokenEndpointResponse } from "oauth4webapi";
import type { Protocol } from "./_protocol.ts";
import type { StoredSignIn } from "./token_store.ts";

/** The fields of a sign-in that an answer changes. */
type Tokens = Pick<StoredSignIn, "accessToken" | "refreshToken" | "scopes" | "since" | "until">;

/** The characters that a `Bearer` header may contain. */
const SENDABLE = /^[\x21-\x7e]{1,8192}$/;
/**
 * The longest lifetime of a token in seconds. A longer lifetime could exceed the range of dates.
 */
const LONGEST_S = 1e9;

/** Returns the tokens of an answer. Omitted fields keep their previous values. */
export function tokensFrom(
  protocol: Protocol,
  answer: TokenEndpointResponse,
  before: Pick<StoredSignIn, "refreshToken" | "scopes">,
): Tokens {
  const { access_token, refresh_token, scope, expires_in, token_type } = answer;
  // guard: sign-in-token
  if (token_type !== "bearer" || !SENDABLE.test(access_token)) {
    throw protocol.error("UPSTREAM_PROTOCOL", "its token is not a bearer token");
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

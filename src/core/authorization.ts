/**
 * The sign-in of one server, as its requests use it.
 *
 * @module
 */

/** The refusal of a request: the answer 401 or 403. */
export interface HttpRefusal {
  readonly response: Response;
  /** The value of the header `Authorization` that was sent; undefined if there was none. */
  readonly sent: string | undefined;
  /** Whether this was the second attempt, with another token. */
  readonly isAgain: boolean;
  readonly signal: AbortSignal;
}

/** The value of the key `oauth` next to the URL of a server. */
export interface OAuthSettings {
  /** The id of a client that the user registered. */
  readonly client_id?: string | undefined;
  /** The secret of that client. `${NAME}` in it is replaced. */
  readonly client_secret?: string | undefined;
  /** The scopes to request, instead of the scopes that the server names. */
  readonly scopes?: readonly string[] | undefined;
  /** The port of the address that the browser is sent back to; by default any free port. */
  readonly redirect_port?: number | undefined;
}

/** The authorization of requests to one server. */
export interface Authorization {
  /**
   * Returns the value of the header `Authorization`; undefined without a sign-in. Refreshes a token
   * that expires soon.
   */
  header(signal: AbortSignal): Promise<string | undefined>;
  /**
   * Handles a refusal. Returns whether to send the request once more, with another token. Throws
   * LOGIN_REQUIRED if the user must sign in, or must grant further scopes.
   */
  handleRefusal(refusal: HttpRefusal): Promise<boolean>;
}

/**
 * The section `network` of `config.yaml`: the proxy of the user.
 *
 * @module
 */

/** The section as it was written. */
export interface NetworkSection {
  /** The URL of the proxy. A user and a password in it may be `${NAME}`. */
  readonly proxy: string;
  /** The hosts that are reached without it: names, `*.domain`, and ranges of addresses. */
  readonly no_proxy?: readonly string[] | undefined;
}

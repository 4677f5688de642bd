/**
 * The keys of a client's `_meta` that the user lists in `client_meta` of `config.yaml`.
 *
 * @module
 */

/** Matches a key that can be listed: 1 to 128 visible characters. */
export const META_KEY = /^(?=.*\S)[^\p{C}\p{Zl}\p{Zp}]{1,128}$/u;

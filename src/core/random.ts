/**
 * Random texts.
 *
 * @module
 */

/** Returns random bytes as lower-case hexadecimal digits. */
export function randomHex(bytes: number): string {
  return crypto.getRandomValues(new Uint8Array(bytes)).toHex();
}

/** Returns random bytes as base64url without padding. */
export function randomToken(bytes: number): string {
  return crypto.getRandomValues(new Uint8Array(bytes))
    .toBase64({ alphabet: "base64url", omitPadding: true });
}

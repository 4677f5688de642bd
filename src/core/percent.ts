/**
 * Percent codes in parts of addresses and in JSON pointers.
 *
 * @module
 */

/** Returns a text with its percent codes decoded; as it is where they are broken. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

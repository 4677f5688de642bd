/**
 * Decodes text and JSON from untrusted bytes.
 *
 * @module
 */

import { parseJson } from "./parse_json.ts";

/** Returns the text of bytes in UTF-8. Throws `TypeError` if the bytes are not valid UTF-8. */
export function textOfUtf8(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}

/** Parses JSON in UTF-8. Throws the errors of `textOfUtf8` and of `parse`. */
export function parseJsonBytes(
  bytes: Uint8Array,
  parse: (text: string) => ReturnType<typeof JSON.parse> = parseJson,
): ReturnType<typeof JSON.parse> {
  return parse(textOfUtf8(bytes));
}

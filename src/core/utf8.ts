/**
 * Reads texts and JSON of others that come as bytes.
 *
 * @module
 */

import { parseJson } from "./parse_json.ts";

/** Returns the text of bytes in UTF-8. Throws for other bytes. */
export function textOfUtf8(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}

/** Parses JSON in UTF-8. Throws as `parseJson` does, and for other bytes. */
export function parseJsonBytes(
  bytes: Uint8Array,
  parse: (text: string) => ReturnType<typeof JSON.parse> = parseJson,
): ReturnType<typeof JSON.parse> {
  return parse(textOfUtf8(bytes));
}

/**
 * Shows what a capability of a registry does.
 *
 * @module
 */

import { parseExact } from "../../core/exact_json.ts";
import { parseCapability, textLines } from "./capability.ts";

/** Returns the lines of the content of a capability. What is none is shown as it came. */
export function contentLines(content: Uint8Array): readonly string[] {
  const text = new TextDecoder().decode(content);
  try {
    return textLines(parseCapability(parseExact(text)).text);
  } catch {
    return textLines(text); // it is refused when it runs
  }
}

/**
 * Shows the code or the plan of a capability of a registry.
 *
 * @module
 */

import { parseExact } from "../../core/exact_json.ts";
import { parseCapability, textLines } from "./capability.ts";

/** Returns the lines of the content of a capability. Invalid content is shown unchanged. */
export function contentLines(content: Uint8Array): readonly string[] {
  const text = new TextDecoder().decode(content);
  try {
    return textLines(parseCapability(parseExact(text)).text);
  } catch {
    return textLines(text); // invalid content is refused when it runs
  }
}

/**
 * Shows the code or the plan of a capability of a registry.
 *
 * @module
 */

import { parseExact } from "../../core/exact_json.ts";
import { parseCapability, textLines } from "./capability.ts";

/** Returns the code or plan in the content of a capability as lines; invalid content as it is. */
export function contentLines(content: Uint8Array): readonly string[] {
  const text = new TextDecoder().decode(content);
  try {
    return textLines(parseCapability(parseExact(text)).text);
  } catch {
    return textLines(text); // running invalid content fails
  }
}

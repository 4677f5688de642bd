/**
 * The result of publishing a version that already exists.
 *
 * @module
 */

import { objectOf, parseJson, textOf } from "@casys/pml/registry";
import type { PublishResult } from "./store.ts";

/** The characters of an ISO 8601 time in UTC. */
const TIME = /^[\d:.TZ-]{1,40}$/;

/**
 * Compares the offered manifest (`text`) with the stored one. If they differ, the result has the time
 * at which the stored one was signed: signing equal content with that time makes an equal manifest.
 */
export function republishResult(
  storedText: string,
  { text, state }: { readonly text: string; readonly state: "public" | "waiting" },
): PublishResult {
  if (storedText === text || normalizeNumbers(storedText) === normalizeNumbers(text)) {
    return { state, isNew: false };
  }
  const issued = textOf(objectOf(parseJson(storedText)).issued);
  return TIME.test(issued) ? { why: "exists", issued } : { why: "exists" };
}

/** Returns a JSON text with its numbers as doubles, because earlier hubs stored them like this. */
function normalizeNumbers(text: string): string {
  return JSON.stringify(parseJson(text));
}

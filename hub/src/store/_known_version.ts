/**
 * The result of publishing a version that the store has already.
 *
 * @module
 */

import { objectOf, parseJson, textOf } from "@casys/pml/registry";
import type { Published } from "./store.ts";

/** A time as a signature has it. */
const TIME = /^[\d:.TZ-]{1,40}$/;

/**
 * Compares the offered manifest (`text`) with the one of the store. If they differ, returns when the
 * latter was signed: its owner can sign the same content with that time, and gets the same manifest.
 */
export function publishedAgain(
  storedText: string,
  { text, state }: { readonly text: string; readonly state: "public" | "waiting" },
): Published {
  if (storedText === text || rounded(storedText) === rounded(text)) return { state, isNew: false };
  const issued = textOf(objectOf(parseJson(storedText)).issued);
  return TIME.test(issued) ? { why: "exists", issued } : { why: "exists" };
}

/** Returns a JSON text with its numbers as doubles: earlier hubs stored them so. */
function rounded(text: string): string {
  return JSON.stringify(parseJson(text));
}

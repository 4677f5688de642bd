/**
 * What is said of a version that is there already.
 *
 * @module
 */

import { objectOf, parseJson, textOf } from "@casys/pml/registry";
import type { Published } from "./store.ts";

/** A time as a signature has it. */
const TIME = /^[\d:.TZ-]{1,40}$/;

/**
 * Compares what is offered with what is there, both as texts. Where they differ it is told when the
 * one that is there was signed: with that time its owner makes the same signature again.
 */
export function saidOfThere(
  there: string,
  { text, state }: { readonly text: string; readonly state: "public" | "waiting" },
): Published {
  if (there === text) return { state, isNew: false };
  const issued = textOf(objectOf(parseJson(there)).issued);
  return TIME.test(issued) ? { why: "exists", issued } : { why: "exists" };
}

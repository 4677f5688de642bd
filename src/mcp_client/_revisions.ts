/**
 * The revisions of MCP that servers are greeted in, and what a refusal says of the other one.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { objectOf } from "../core/json.ts";
import { Answered } from "./_peer.ts";

/** The revision that is offered to a server that is greeted with `initialize`. */
export const LEGACY = "2025-11-25";
/** The newest revision, which needs no greeting. */
export const MODERN = "2026-07-28";
/** The code of JSON-RPC for a method that is not there. */
export const NO_SUCH_METHOD = -32601;
const UNSUPPORTED_VERSION = -32022;

/** Tells whether a server says that it speaks the newest revision only. */
export function isNewer(error: unknown): boolean {
  return error instanceof Answered && [UNSUPPORTED_VERSION, NO_SUCH_METHOD].includes(error.code);
}

/** Tells whether a server that refused the newest revision names it all the same. */
export function knowsNewest(error: unknown): boolean {
  if (!(error instanceof Answered) || error.code !== UNSUPPORTED_VERSION) return false;
  const { supported } = objectOf(error.data);
  return Array.isArray(supported) && supported.includes(MODERN);
}

/** Tells whether a server may have refused only what it does not know. */
export function mayBeOlder(error: unknown): boolean {
  return error instanceof Answered ||
    error instanceof PmlError && error.detail?.status !== undefined &&
      error.code !== "LOGIN_REQUIRED";
}

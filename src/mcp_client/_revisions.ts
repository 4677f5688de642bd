/**
 * The revisions of MCP that PML uses with servers. An error to one tells whether to try the other.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { objectOf } from "../core/json.ts";
import { ErrorResponse } from "./_peer.ts";

/** The revision that `initialize` offers. */
export const LEGACY = "2025-11-25";
/** The newest revision, which has no `initialize`. */
export const MODERN = "2026-07-28";
/** The JSON-RPC code for an unknown method. */
export const NO_SUCH_METHOD = -32601;
const UNSUPPORTED_VERSION = -32022;

/** Returns whether an error to `initialize` means that the server supports the newest revision. */
export function isNewer(error: unknown): boolean {
  return error instanceof ErrorResponse &&
    [UNSUPPORTED_VERSION, NO_SUCH_METHOD].includes(error.code);
}

/** Returns whether an error to the newest revision still lists that revision as supported. */
export function knowsNewest(error: unknown): boolean {
  if (!(error instanceof ErrorResponse) || error.code !== UNSUPPORTED_VERSION) return false;
  const { supported } = objectOf(error.data);
  return Array.isArray(supported) && supported.includes(MODERN);
}

/** Returns whether an error may mean that the server only supports an older revision. */
export function mayBeOlder(error: unknown): boolean {
  return error instanceof ErrorResponse ||
    error instanceof PmlError && error.detail?.status !== undefined &&
      error.code !== "LOGIN_REQUIRED";
}

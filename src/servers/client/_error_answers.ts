/**
 * Converts the errors of servers to errors for clients. The messages contain the server's name.
 *
 * @module
 */

import { asPmlError, PmlError } from "../../core/errors.ts";
import { quoted, withoutUndefined } from "../../core/json.ts";
import { type ListName, LISTS } from "../../protocol/lists.ts";
import { ERROR, RpcError } from "../../protocol/errors.ts";
import { urlElicitationLines } from "./_url_elicitation.ts";
import type { Denial } from "./wire.ts";

/**
 * Error codes that a client would understand as a statement about PML itself: that PML requires a
 * page to be opened, or does not support the revision of the client.
 */
const RESERVED: readonly number[] = [
  ERROR.urlElicitationRequired,
  ERROR.headerMismatch,
  ERROR.unsupportedProtocolVersion,
];

/** Returns a text with the code and the message of an error response. */
export function errorResponseText(who: string, { code, message }: RpcError): string {
  return `${who} answered with the error ${code}${message && `: ${message}`}`;
}

/** Returns the log line with the reason why a resource of a server cannot be followed. */
export function followErrorLine(name: string, error: unknown): string {
  const why = error instanceof RpcError
    ? errorResponseText("it", error)
    : asPmlError(error).message;
  return `Cannot follow a resource of ${quoted(name)}: ${why.replace(/\s*\n\s*/g, " ")}`;
}

/** Returns the error response of a server as an error for the client, without a reserved code. */
export function errorFor(name: string, error: RpcError): PmlError {
  const message = errorResponseText(quoted(name), error) + urlElicitationLines(error);
  const { code, data } = error;
  const answered = RESERVED.includes(code)
    ? { code: ERROR.internalError, message }
    : { code, message, data };
  return new PmlError("BAD_REQUEST", message, { detail: { answered: withoutUndefined(answered) } });
}

/** Returns the error for a confined server that lacks a permission. */
export function denialError(name: string, { why, hint }: Denial): PmlError {
  return new PmlError("UPSTREAM_DOWN", `Cannot use ${quoted(name)}: ${why}`, { hint });
}

/** Returns the error for a list request that a server answered with an error. */
export function listError(name: string, list: ListName, error: RpcError): PmlError {
  const message = `Cannot read ${LISTS[list].method} of ${quoted(name)}: ${
    errorResponseText("it", error)
  }`;
  return new PmlError("UPSTREAM_PROTOCOL", message, {
    hint: "The error is the server's own: follow its message, or tell its author. PML " +
      "asks again the next time",
    cause: error,
  });
}

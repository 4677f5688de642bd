/**
 * What servers answer, as it is handed on: results, and errors that name their server.
 *
 * @module
 */

import type { ToolResult } from "../core/call.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { defined, isObject, objectOf, quoted } from "../core/json.ts";
import { type ListName, LISTS } from "../core/lists.ts";
import { checkBlocks } from "../core/result_bounds.ts";
import { Answered } from "./_peer.ts";
import type { Denial } from "./wire.ts";

/** Codes by which a client would think that PML itself asks it, or does not know its revision. */
const OURS = [-32042, -32020, -32021, -32022];
const INTERNAL_ERROR = -32603;

/** Takes what a server may say; with any other field it could pass for a question of PML. */
export function resultOf(
  result: unknown,
  { name, method }: { readonly name: string; readonly method: string },
): ToolResult {
  const isTool = method === "tools/call";
  if (isObject(result) && (!isTool || Array.isArray(result.content ?? []))) {
    const what = `what ${quoted(name)} answered`;
    checkBlocks(what, result);
    checkBlocks(what, objectOf(result.result));
    const { resultType: _, inputRequests, requestState: _s, ...rest } = result;
    // What a task asks is judged and worded before it is told.
    const asked = method === "tasks/get" ? defined({ inputRequests }) : {};
    // Looked at just now; what is no tool's result is handed on as it is.
    return (isTool ? { content: [], ...rest } : { ...rest, ...asked }) as unknown as ToolResult;
  }
  const message = `Cannot use what ${quoted(name)} answered: it is no result`;
  throw new PmlError("UPSTREAM_PROTOCOL", message, {
    hint: "It does not speak MCP as PML knows it",
  });
}

/** Says what error a server answered, in its own words. */
export function answeredBy(who: string, { code, message }: Answered): string {
  return `${who} answered with the error ${code}${message && `: ${message}`}`;
}

/** Says, in one line, why a resource of a server is not followed. */
export function notFollowed(name: string, error: unknown): string {
  const why = error instanceof Answered ? answeredBy("it", error) : asPmlError(error).message;
  return `Cannot follow a resource of ${quoted(name)}: ${why.replace(/\s*\n\s*/g, " ")}`;
}

/** Hands on the error that a server answered, but for those that are between a client and PML. */
export function refused(name: string, error: Answered): PmlError {
  const message = answeredBy(quoted(name), error);
  const { code, data } = error;
  const answered = OURS.includes(code)
    ? { code: INTERNAL_ERROR, message }
    : { code, message, data };
  return new PmlError("BAD_REQUEST", message, { detail: { answered: defined(answered) } });
}

/** Makes the error of a confined server that was denied what it needs. */
export function deniedTo(name: string, { why, hint }: Denial): PmlError {
  return new PmlError("UPSTREAM_DOWN", `Cannot use ${quoted(name)}: ${why}`, { hint });
}

/** Makes the error of a list that a server answered with an error. */
export function listRefused(name: string, list: ListName, error: Answered): PmlError {
  const message = `Cannot read ${LISTS[list].method} of ${quoted(name)}: ${
    answeredBy("it", error)
  }`;
  return new PmlError("UPSTREAM_PROTOCOL", message, {
    hint: "The error is the server's own: see to what it says, or tell its author. PML asks it " +
      "again the next time",
    cause: error,
  });
}

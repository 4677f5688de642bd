/**
 * The errors that the browser of the page receives, as JSON.
 *
 * @module
 */

import { asPmlError } from "../core/errors.ts";

/** An error with its HTTP status. */
export class PageFailure extends Error {
  /** The HTTP status. */
  readonly status: number;
  /** An error code of PML, or a code of the page itself. */
  readonly code: string;
  /** The next step of the user, if there is one. */
  readonly hint: string | undefined;

  /** Creates an error. */
  constructor(status: number, code: string, { message, hint }: {
    readonly message: string;
    readonly hint?: string | undefined;
  }) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
  }
}

/** Returns the error of an action for which the user has to type a word. */
export function wordNeededError(word: string, to: string): PageFailure {
  return new PageFailure(400, "WORD_NEEDED", { message: `Type "${word}" to ${to}`, hint: word });
}

/** Returns the HTTP status and the JSON body for an error. */
export function failureOf(error: unknown): { readonly status: number; readonly body: string } {
  const { status, code, message, hint } = error instanceof PageFailure
    ? error
    : withStatus(asPmlError(error));
  return { status, body: JSON.stringify({ error: { code, message, hint } }) };
}

/** The HTTP statuses of PML's error codes. Other codes have 422. */
const STATUSES: Readonly<Record<string, number>> = {
  BUG: 500,
  BAD_REQUEST: 400,
  USAGE: 400,
  UNKNOWN_TOOL: 404,
  APPROVAL_STALE: 409,
};

function withStatus({ code, message, hint }: ReturnType<typeof asPmlError>) {
  return { status: STATUSES[code] ?? 422, code, message, hint };
}

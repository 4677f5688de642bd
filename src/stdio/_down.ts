/**
 * Makes the error for calls of a server that is no longer there.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { quoted, visibleLines } from "../core/json.ts";
import type { Denial } from "../mcp_client/wire.ts";
import { causeIn } from "./_cause.ts";

/** The number of characters that are shown of what a server printed last. */
const TAIL = 4_000;

/**
 * Returns the error, with what the server printed last and the permission that it lacked, if any.
 */
export function downError(
  name: string,
  { why, mayHaveRun, stderr, denial, more }: {
    readonly why: string;
    readonly mayHaveRun: boolean;
    readonly stderr: string;
    readonly denial: Denial | undefined;
    /** Another possible reason. */
    readonly more?: string | undefined;
  },
): PmlError {
  const again = ["Nothing was sent twice; the next call starts it again", more];
  const what = denial?.why ?? `${why}${causeIn(stderr)}`;
  return new PmlError("UPSTREAM_DOWN", `Cannot reach ${quoted(name)}: ${what}`, {
    hint: denial?.hint ?? again.filter(Boolean).join(". "),
    detail: { may_have_run: mayHaveRun, stderr: visibleLines(stderr.trim().slice(-TAIL), TAIL) },
  });
}

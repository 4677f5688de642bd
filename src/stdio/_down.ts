/**
 * What a call is told whose server is not there any more.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { quoted, visibleLines } from "../core/json.ts";
import type { Denial } from "../mcp_client/wire.ts";

/** How much of what a server wrote last is told. */
const TAIL = 4_000;

/** Makes the error, with what the server wrote last and the permission that it lacked, if any. */
export function downError(
  name: string,
  { why, mayHaveRun, stderr, denial, more }: {
    readonly why: string;
    readonly mayHaveRun: boolean;
    readonly stderr: string;
    readonly denial: Denial | undefined;
    /** What else may be why. */
    readonly more?: string | undefined;
  },
): PmlError {
  const again = ["Nothing was sent twice; the next call starts it again", more];
  return new PmlError("UPSTREAM_DOWN", `Cannot reach ${quoted(name)}: ${denial?.why ?? why}`, {
    hint: denial?.hint ?? again.filter(Boolean).join(". "),
    detail: { may_have_run: mayHaveRun, stderr: visibleLines(stderr.trim().slice(-TAIL), TAIL) },
  });
}

/**
 * What a call is told whose server is not there any more.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { quoted, visibleLines } from "../core/json.ts";
import { deniedIn } from "./_confined.ts";

/** How much of what a server wrote last is told. */
const TAIL = 4_000;

/** Makes the error, with what the server wrote last and the permission that it lacked, if any. */
export function downError(
  name: string,
  { why, mayHaveRun, stderr, more }: {
    readonly why: string;
    readonly mayHaveRun: boolean;
    readonly stderr: string;
    /** What else may be why. */
    readonly more?: string | undefined;
  },
): PmlError {
  const denied = deniedIn(stderr);
  return new PmlError("UPSTREAM_DOWN", `Cannot reach ${quoted(name)}: ${denied ?? why}`, {
    hint: denied === undefined
      ? ["Nothing was sent twice; the next call starts it again", more].filter(Boolean).join(". ")
      : `Grant it under "grants" in .pml.json (\`pml learn ${name}\` proposes them), or take "confine" out`,
    detail: { may_have_run: mayHaveRun, stderr: visibleLines(stderr.trim().slice(-TAIL), TAIL) },
  });
}

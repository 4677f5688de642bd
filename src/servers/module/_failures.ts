/**
 * Explains failures of modules: adds the position in the code to a message, or to a hint the grant
 * that would allow a path.
 *
 * @module
 */

import type { Call } from "../../protocol/call.ts";
import { PmlError } from "../../core/errors.ts";
import { PATHS } from "../../core/paths.ts";
import { splitToolId } from "../../core/tool_id.ts";
import type { ModuleFailure } from "../../sandbox/sandbox.ts";

/** Returns the message of a module's error, with the position in the code if it is known. */
export function messageWithPosition(
  { name, message, at }: ModuleFailure,
  file: string | undefined,
): string {
  return at === undefined || file === undefined ? message : `${name}: ${message} (${file}:${at})`;
}

/** Returns an error. If it refuses a path that a grant can allow, its hint shows the grant. */
export function withGrant<E>(error: E, { id }: Pick<Call, "id">): E | PmlError {
  if (!(error instanceof PmlError)) return error;
  const { code, message, hint } = error;
  const [, op = "", requestedPath = "", why = ""] =
    /^Cannot ([\w ]+) "([^"]*)": (.*)/s.exec(message) ?? [];
  const path = PATHS.plain(requestedPath) ?? "";
  // Only a path outside the workspace can be granted here: for a link, the grant would have to name
  // its target, which is not known. No grant allows a name that Windows reads as another file.
  const isGrantable = code === "PATH_PROTECTED"
    ? !/^(?:its name means another file on )?Windows\b/.test(why)
    : /is outside/.test(why) && (path.startsWith("..") || PATHS.isRooted(path));
  if (path === "" || !isGrantable) return error;
  const kind = /read|open|list|look|run/.test(op) ? "read" : "write";
  // The grant has to name the file, not the temporary file next to it that is written first.
  const granted = path.replace(/\/\.[^/]*\.tmp$/, "");
  return new PmlError(code, message, {
    hint: `${hint}, with this in a trusted .pml.json: ` +
      `"grants": { "${splitToolId(id).server}": { "${kind}": [${JSON.stringify(granted)}] } }`,
    cause: error,
  });
}

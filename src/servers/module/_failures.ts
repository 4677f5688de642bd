/**
 * Describes failures of modules: with the grant that opens a path, or the place in the code.
 *
 * @module
 */

import type { Call } from "../../protocol/call.ts";
import { PmlError } from "../../core/errors.ts";
import { PATHS } from "../../core/paths.ts";
import { splitToolId } from "../../core/tool_id.ts";
import type { ModuleFailure } from "../../sandbox/sandbox.ts";

/** Returns an error that a module threw, with its place if it is known. */
export function placed({ name, message, at }: ModuleFailure, file: string | undefined): string {
  return at === undefined || file === undefined ? message : `${name}: ${message} (${file}:${at})`;
}

/** Returns the error for a path with the grant that opens it, if one does. */
export function withGrant(error: unknown, { id }: Pick<Call, "id">): unknown {
  if (!(error instanceof PmlError)) return error;
  const { code, message, hint } = error;
  const [, op = "", requestedPath = "", why = ""] =
    /^Cannot ([\w ]+) "([^"]*)": (.*)/s.exec(message) ?? [];
  const path = PATHS.plain(requestedPath) ?? "";
  // The target of a link is granted by its own name, which is not known here. No grant opens a name
  // that means another file.
  const isGrantable = code === "PATH_PROTECTED"
    ? !/^(?:its name means another file on )?Windows\b/.test(why)
    : /is outside/.test(why) && (path.startsWith("..") || PATHS.isWhole(path));
  if (path === "" || !isGrantable) return error;
  const kind = /read|open|list|look|run/.test(op) ? "read" : "write";
  // A file is first written next to the old one, under a random name.
  const granted = path.replace(/\/\.[^/]*\.tmp$/, "");
  return new PmlError(code, message, {
    hint: `${hint}, with this in a trusted .pml.json: ` +
      `"grants": { "${splitToolId(id).server}": { "${kind}": [${JSON.stringify(granted)}] } }`,
    cause: error,
  });
}

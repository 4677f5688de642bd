/**
 * Tells failures of modules: with the grant that opens a path, or the place in the code.
 *
 * @module
 */

import type { Call } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { splitToolId } from "../core/tool_id.ts";
import type { ModuleFailure } from "../sandbox/sandbox.ts";

/** Returns an error that a module threw, with its place if it is known. */
export function placed({ name, message, at }: ModuleFailure, file: string | undefined): string {
  return at === undefined || file === undefined ? message : `${name}: ${message} (${file}:${at})`;
}

/** Returns the error for a path with the grant that opens it, if one does. */
export function withGrant(error: unknown, { id }: Call): unknown {
  if (!(error instanceof PmlError)) return error;
  const { code, message, hint } = error;
  const [, op = "", path = ""] = /^Cannot ([\w ]+) ("[^"]*")/.exec(message) ?? [];
  // What lies behind a link is granted by its own name, which is not known here.
  if (!path || code !== "PATH_PROTECTED" && !/ "(\.\.|\/).*is outside/.test(message)) return error;
  const kind = /read|open|list|look|run/.test(op) ? "read" : "write";
  // A file is first written beside the old one, by a name that nobody knows before.
  const granted = path.replace(/\/\.[^/]*\.tmp"/, '"');
  return new PmlError(code, message, {
    hint: `${hint}, with this in a trusted .pml.json: ` +
      `"grants": { "${splitToolId(id).server}": { "${kind}": [${granted}] } }`,
    cause: error,
  });
}

/**
 * Tells failures of modules: with the grant that opens a protected path, or the place in the code.
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

/** Returns the error for a protected path with the grant that opens it. */
export function withGrant(error: unknown, { id }: Call): unknown {
  if (!(error instanceof PmlError) || error.code !== "PATH_PROTECTED") return error;
  const [, op, path] = /^Cannot (\w+) ("(?:[^"\\]|\\.)*")/.exec(error.message) ?? [];
  if (op === undefined || path === undefined) return error;
  const kind = /^(read|open|list)$/.test(op) ? "read" : "write";
  return new PmlError(error.code, error.message, {
    hint: "Only the person can open it, with this in a trusted .pml.json: " +
      `"grants": { "${splitToolId(id).server}": { "${kind}": [${path}] } }`,
    cause: error,
  });
}

/**
 * Checks the text of a path with the guard of the broker before a call, so that the user is not asked
 * about a call that the sandbox refuses anyway.
 *
 * @module
 */

import type { PmlError } from "../core/errors.ts";
import { failureFrom, ModuleFailure } from "./_failure.ts";
import type { ChildOptions } from "./_options.ts";
import { plainScope } from "./boot/names.ts";
import { PathGuard } from "./boot/path_guard.ts";
import { SandboxRefusal } from "./boot/refusal.ts";

/** Returns the error of a child with these options for a path; undefined if the path is allowed. */
export function pathRefusal(
  { workspace, read, write, protection, home, limits }: ChildOptions,
  { requestedPath, access }: {
    readonly requestedPath: string;
    readonly access: "read" | "write";
  },
): PmlError | undefined {
  const { resultBytes, writeBytes } = limits;
  const scope = plainScope({ workspace, read, write, protection, home, resultBytes, writeBytes });
  try {
    const op = access === "write" ? "change" : "read";
    new PathGuard(scope).lexical({ op, requestedPath, access });
    return undefined;
  } catch (error) {
    // The tool itself reports other mistakes, such as an empty path.
    if (!(error instanceof SandboxRefusal)) return undefined;
    const { name, message, code } = error;
    const failure = failureFrom({ name, message, code });
    return failure instanceof ModuleFailure ? undefined : failure;
  }
}

/**
 * Modules of Node. The first of them takes as long to load as an empty Deno takes to start, so what
 * every start loads names none in an import.
 *
 * @module
 */

/** Returns a module, which is loaded by the first use. */
export function nodePath(): typeof import("node:path") {
  // deno-lint-ignore no-process-global
  return process.getBuiltinModule("node:path");
}

/** Returns a module, which is loaded by the first use. */
export function nodeCrypto(): typeof import("node:crypto") {
  // deno-lint-ignore no-process-global
  return process.getBuiltinModule("node:crypto");
}

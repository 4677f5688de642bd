/**
 * What is known of the modules that ship with PML before one of them is used.
 *
 * @module
 */

/** The names of their servers. */
export const BUILTIN_NAMES: ReadonlySet<string> = new Set(["filesystem", "git", "shell", "sqlite"]);

/** The tools that run commands, queries or code: "Always" allows exactly the same again. */
export const RUNS_CODE: ReadonlySet<string> = new Set([
  "shell:exec",
  "sqlite:query",
  "sqlite:execute",
]);

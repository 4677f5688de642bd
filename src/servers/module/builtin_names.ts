/**
 * Lists facts about built-in modules that are needed before one of them is used.
 *
 * @module
 */

/** The names of the built-in servers. */
export const BUILTIN_NAMES: ReadonlySet<string> = new Set(["filesystem", "git", "shell", "sqlite"]);

/**
 * The tools that run commands, queries or code. "Always" then allows only exactly the same call.
 */
export const RUNS_CODE: ReadonlySet<string> = new Set([
  "shell:exec",
  "sqlite:query",
  "sqlite:execute",
]);

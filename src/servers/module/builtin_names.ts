/**
 * Lists facts about built-in modules that PML needs before it loads one of them.
 *
 * @module
 */

/** The names of the built-in servers. */
export const BUILTIN_NAMES: ReadonlySet<string> = new Set(["filesystem", "git", "shell", "sqlite"]);

/**
 * The tools that run commands, queries or code. For such a tool, the user's answer "Always" allows
 * only calls with the same arguments.
 */
export const RUNS_CODE: ReadonlySet<string> = new Set([
  "shell:exec",
  "sqlite:query",
  "sqlite:execute",
]);

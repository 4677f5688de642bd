/**
 * The levels of log messages, as MCP defines them.
 *
 * @module
 */

/** All levels, the least serious first. */
export const LEVELS: readonly string[] = "debug info notice warning error critical alert emergency"
  .split(" ");

/**
 * Returns whether a message is at least as serious as a level. A message of an unknown level always
 * is.
 */
export function isAtLeast(level: unknown, least: string): boolean {
  const at = LEVELS.indexOf(String(level));
  return at < 0 || at >= LEVELS.indexOf(least);
}

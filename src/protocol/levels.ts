/**
 * The levels of log messages, as MCP defines them.
 *
 * @module
 */

/** All levels, the least serious first. */
export const LEVELS: readonly string[] = "debug info notice warning error critical alert emergency"
  .split(" ");

/**
 * Returns whether a message is at least as serious as `least`. Returns true for an unknown level.
 */
export function isAtLeast(level: unknown, least: string): boolean {
  const index = LEVELS.indexOf(String(level));
  return index < 0 || index >= LEVELS.indexOf(least);
}

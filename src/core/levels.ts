/**
 * The levels of log messages, as MCP has them.
 *
 * @module
 */

/** Every level, the least serious first. */
export const LEVELS: readonly string[] = "debug info notice warning error critical alert emergency"
  .split(" ");

/** Tells whether a message of a level is wanted from another on; one of no level always is. */
export function isAtLeast(level: unknown, least: string): boolean {
  const at = LEVELS.indexOf(String(level));
  return at < 0 || at >= LEVELS.indexOf(least);
}

/**
 * Writes words of a command as a user types them.
 *
 * @module
 */

/** Returns a word as a user types it for a shell of a system. */
export function shellWord(word: string, os: typeof Deno.build.os = Deno.build.os): string {
  // `cmd` and PowerShell both read double quotes.
  if (os === "windows") {
    return /^[\w@+=:,./\\-]+$/.test(word) ? word : `"${word.replaceAll('"', '\\"')}"`;
  }
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

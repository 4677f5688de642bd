/**
 * Quotes the words of a command for a shell.
 *
 * @module
 */

/** Returns a word as a user has to type it in the usual shell of an operating system. */
export function shellWord(word: string, os: typeof Deno.build.os = Deno.build.os): string {
  // `cmd` and PowerShell both read double quotes.
  if (os === "windows") {
    return /^[\w@+=:,./\\-]+$/.test(word) ? word : `"${word.replaceAll('"', '\\"')}"`;
  }
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

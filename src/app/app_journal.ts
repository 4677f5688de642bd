/**
 * Lets the command line read the journal, and check it.
 *
 * @module
 */

import { JournalReader, journalRuns } from "../audit/journal_lines.ts";
import { type JournalCheck, verifyJournal } from "../audit/verify.ts";

export { JournalReader };

/** Checks the journal of each process. */
export async function checkJournal(
  home: string,
): Promise<readonly (JournalCheck & { readonly files: readonly string[] })[]> {
  const checks = [];
  for (const files of journalRuns(home)) checks.push({ ...await verifyJournal(files), files });
  return checks;
}

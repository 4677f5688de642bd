/**
 * Lets the command line read the journal, and check it.
 *
 * @module
 */

import { basename } from "node:path";
import { sha256 } from "../core/hash.ts";
import { JournalReader, journalRuns } from "../audit/journal_lines.ts";
import { type JournalCheck, verifyJournal } from "../audit/verify.ts";

export { JournalReader };

/** The check of one process's journal. */
export type RunCheck = JournalCheck & { readonly files: readonly string[] };

/** Checks the journal of each process. `until` is the time of a checkpoint. */
export async function checkJournal(home: string, until: string): Promise<readonly RunCheck[]> {
  const checks = [];
  for (const files of journalRuns(home)) {
    checks.push({ ...await verifyJournal(files, until), files });
  }
  return checks;
}

/** Returns a checkpoint: a text that changes if a record until that time changes or is removed. */
export function checkpointOf(checks: readonly RunCheck[], until: string): string {
  const heads = checks.flatMap(({ files: [file = ""], head }) =>
    head === undefined ? [] : [`${basename(file).replace(/\.\d{4,}\.jsonl$/, "")} ${head}`]
  );
  return `${until}/${sha256(heads.sort().join("\n"))}`;
}

/**
 * What the configuration says of the calls of this process: where their records go, and how long
 * they may take.
 *
 * @module
 */

import { Journal } from "../audit/journal.ts";
import { Records } from "../audit/records.ts";
import type { CallPathOptions } from "./call_path.ts";
import { Deadlines } from "./deadline.ts";

/** Returns what writes records. The first record opens the journal. */
export function openRecords({ policy, redactor, log, metrics }: CallPathOptions): Records {
  return new Records({
    open: (onFailure) => {
      const { home, limits } = policy.now.config;
      const { journalBytes: fileBytes, journalFiles: filesKept } = limits;
      return Journal.open(home, { redactor, fileBytes, filesKept, onFailure });
    },
    log,
    onNote: (record) => metrics.recorded(record),
  });
}

/** Returns the deadlines of calls, by the limits of each moment. */
export function deadlinesOf({ policy, backlog }: CallPathOptions): Deadlines {
  return new Deadlines(() => {
    const { callMs, callMaxMs } = policy.now.config.limits;
    return { callMs, capMs: callMaxMs, heldMs: backlog?.fullMs ?? 0 };
  });
}

/**
 * The last step of a call, the records of it, and how long it may take.
 *
 * @module
 */

import { Journal } from "../audit/journal.ts";
import { Records } from "../audit/records.ts";
import type { PassCall, PassOutcome } from "../core/server.ts";
import type { ToolDefinition } from "../core/tool.ts";
import { splitToolId } from "../core/tool_id.ts";
import { restless } from "../permissions/trust_gate.ts";
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

/** Returns the deadlines of calls, by the limits of each moment and of each server. */
export function deadlinesOf({ policy, backlog }: CallPathOptions): Deadlines {
  return new Deadlines((id) => {
    const { callMs, callMaxMs } = policy.now.config.limits;
    const own = policy.definitionOf(splitToolId(id).server);
    const { timeoutMs = callMs } = own?.kind === "deno" ? {} : own ?? {};
    const capMs = Math.max(callMaxMs, timeoutMs);
    return { callMs: timeoutMs, capMs, heldMs: backlog?.fullMs ?? 0 };
  });
}

/** Has the server of a call run it, and tells of it. What changes while it waits begins a new pass. */
export async function used(
  call: PassCall,
  { isCurrent, onUse }: Pick<CallPathOptions, "onUse"> & { readonly isCurrent: () => boolean },
): Promise<PassOutcome> {
  const since = performance.now();
  let outcome: PassOutcome | undefined;
  const assert = (isSame: boolean) => {
    if (isSame) return;
    outcome = { kind: "changed" };
    throw restless(call);
  };
  const assertCurrent = () => assert(isCurrent());
  const { server, definition } = call.pass;
  const passed = call.method === undefined ? await definition() : undefined;
  const assertListed = passed && ((listed: unknown) => assert(isSame(listed, passed)));
  try {
    return outcome = await server.call({ ...call, assertCurrent, assertListed });
  } catch (error) {
    if (outcome !== undefined) return outcome;
    throw error;
  } finally {
    if (outcome?.kind !== "changed") {
      onUse?.({ call, definition: passed, since, ended: performance.now(), outcome });
    }
  }
}

/** Returns whether two definitions are written the same. Another order is compared in a new pass. */
function isSame(listed: unknown, passed: ToolDefinition): boolean {
  return listed === passed || JSON.stringify(listed) === JSON.stringify(passed);
}

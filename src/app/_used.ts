/**
 * Has a server run a call that passed all gates.
 *
 * @module
 */

import type { Outcome } from "../core/call.ts";
import type { PassCall, PassOutcome } from "../core/server.ts";
import { restless } from "../permissions/trust_gate.ts";
import type { CallPathOptions } from "./call_path.ts";

/** Has the server of a call run it, and tells of it. What changes while it waits begins a new pass. */
export async function used(
  call: PassCall,
  { isCurrent, onUse }: Pick<CallPathOptions, "onUse"> & { readonly isCurrent: () => boolean },
): Promise<PassOutcome> {
  const since = performance.now();
  let isChanged = false;
  let outcome: Outcome | undefined;
  const assertCurrent = () => {
    isChanged = !isCurrent();
    if (isChanged) throw restless(call);
  };
  try {
    return outcome = await call.pass.server.call({ ...call, assertCurrent });
  } catch (error) {
    if (isChanged) return { kind: "changed" };
    throw error;
  } finally {
    if (!isChanged) onUse?.({ call, since, outcome });
  }
}

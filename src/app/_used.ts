/**
 * Has a server run a call that passed all gates.
 *
 * @module
 */

import type { PassCall, PassOutcome } from "../core/server.ts";
import { restless } from "../permissions/trust_gate.ts";
import type { CallPathOptions } from "./call_path.ts";

/** Has the server of a call run it, and tells of it. What changes while it waits begins a new pass. */
export async function used(
  call: PassCall,
  { isCurrent, onUse }: Pick<CallPathOptions, "onUse"> & { readonly isCurrent: () => boolean },
): Promise<PassOutcome> {
  const since = performance.now();
  let outcome: PassOutcome | undefined;
  const assertCurrent = () => {
    if (isCurrent()) return;
    outcome = { kind: "changed" };
    throw restless(call);
  };
  try {
    return outcome = await call.pass.server.call({ ...call, assertCurrent });
  } catch (error) {
    if (outcome !== undefined) return outcome;
    throw error;
  } finally {
    if (outcome?.kind !== "changed") onUse?.({ call, since, ended: performance.now(), outcome });
  }
}

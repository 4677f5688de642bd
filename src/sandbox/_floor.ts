/**
 * Checks that Deno is new enough for its permissions to hold.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";

const FLOOR = "2.9.6";

/** Throws `SANDBOX_DENIED` if this version of Deno has known ways around its permissions. */
export function assertDenoFloor(version: string = Deno.version.deno): void {
  const floor = FLOOR.split(".").map(Number);
  const parts = version.split(/[.-]/).map(Number);
  const differs = floor.findIndex((part, at) => part !== parts[at]);
  if (differs < 0 || (parts[differs] ?? 0) > (floor[differs] ?? 0)) return;
  const message = `Cannot run modules: Deno ${version} is older than ${FLOOR}`;
  throw new PmlError("SANDBOX_DENIED", message, { hint: `Install Deno ${FLOOR} or newer` });
}

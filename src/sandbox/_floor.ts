/**
 * The oldest Deno whose permissions hold.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";

const FLOOR = [2, 9, 6] as const;

/** Refuses a Deno whose permissions are known to be passed by. */
export function assertDenoFloor(version: string = Deno.version.deno): void {
  const parts = version.split("-")[0]?.split(".").map(Number) ?? [];
  for (const [at, floor] of FLOOR.entries()) {
    const part = parts[at] ?? 0;
    if (part > floor) return;
    if (part === floor) continue;
    throw new PmlError(
      "SANDBOX_DENIED",
      `Cannot run modules: Deno ${version} is older than ${FLOOR.join(".")}`,
      { hint: `Install Deno ${FLOOR.join(".")} or newer` },
    );
  }
}

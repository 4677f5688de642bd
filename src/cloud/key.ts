/**
 * The key of the person's cloud account, where `pml init` put it: a private file in the PML home.
 *
 * @module
 */

import { join } from "node:path";

/** The name of the key file in the PML home. */
export const KEY_FILE = "api_key";

/** Reads the key file; undefined where there is none. */
export function readKeyFile(home: string): string | undefined {
  try {
    const key = Deno.readTextFileSync(join(home, KEY_FILE)).trim();
    return key === "" ? undefined : key;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

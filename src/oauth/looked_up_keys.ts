/**
 * Looks up the keys that are stored outside PML.
 *
 * @module
 */

import type { Log } from "../audit/log.ts";
import type { Key, Keys } from "../config/keys.ts";
import { messageOf } from "../core/errors.ts";
import { type KeyContext, keyFrom, keySources } from "./outside_keys.ts";

/**
 * Returns all keys that are stored outside PML. Logs a warning for each key that cannot be read.
 */
export async function lookUpKeys(
  app: KeyContext & { readonly log: Log; readonly keys: Pick<Keys, "home"> },
): Promise<ReadonlyMap<string, Pick<Key, "value" | "from">>> {
  const { log } = app;
  const values = await Promise.all(
    Object.entries(keySources(app.keys.home, log)).map(async ([name, source]) => {
      try {
        const value = await keyFrom(app, name, source);
        const from: Key["from"] = "keyring" in source ? "the keyring" : "a command";
        return [[name, { value, from }]] as const;
      } catch (error) {
        log.warn(messageOf(error));
        return [];
      }
    }),
  );
  return new Map(values.flat());
}

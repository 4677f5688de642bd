/**
 * The texts about a value that PML already has under the name of a key, and the servers that use it.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { wantedKeys } from "../config/wanted_keys.ts";
import { visible } from "../core/json.ts";

/** Returns a text about the value that PML has under a name: its place, and the servers that use it. */
export function otherValueText(app: App, name: string): string {
  const users = usersOf(app, name).map((user) => visible(user)).join(", ");
  const { from = "the environment" } = app.keys.find(name) ?? {};
  const use = users === "" ? "" : `, used by ${users}`;
  return `another value of ${name} (in ${from}${use})`;
}

/** Returns the servers that use a key. */
export function usersOf(app: App, name: string): readonly string[] {
  const key = wantedKeys(app.config(), app.registryKeys()).find((key) => key.name === name);
  return key?.by ?? [];
}

/** Returns the keys of a server that PML stores, and that `pml key remove` can remove. */
export function storedKeysOf(app: App, server: string): readonly string[] {
  return wantedKeys(app.config(), app.registryKeys())
    .filter(({ by }) => by.includes(server))
    .map(({ name }) => name)
    .filter((name) => ["the key file", "the keyring"].includes(app.keys.find(name)?.from ?? ""));
}

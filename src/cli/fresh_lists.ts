/**
 * Discards cached lists of servers and registries, so that they are requested again.
 *
 * @module
 */

import type { App } from "../app/app.ts";

/** Drops the lists of one server or of all, and those of registries. The next use requests them. */
export async function forgetLists(app: App, only?: string): Promise<void> {
  if (app.config().registries.length > 0) {
    const registries = await app.registries();
    await registries.lookup.refresh(registries.names(), app.closing);
  }
  app.servers.lists.forgetLateStarts(only);
  app.servers.lists.forget(only);
}

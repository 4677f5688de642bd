/**
 * Has the lists of servers and registries requested again.
 *
 * @module
 */

import type { App } from "../app/app.ts";

/** Drops the lists of all servers or of one, so that the next use requests them; registries, too. */
export async function forgetLists(app: App, only?: string): Promise<void> {
  if (app.config().registries.length > 0) {
    const registries = await app.registries();
    await registries.lookup.refresh(registries.names(), app.closing);
  }
  app.servers.lists.forget(only);
}

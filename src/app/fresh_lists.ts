/**
 * Has lists asked for again.
 *
 * @module
 */

import type { App } from "./app.ts";

/** Forgets what servers listed, all or one, so that they are asked again; registries are, too. */
export async function forgetLists(app: App, only?: string): Promise<void> {
  if (app.config().registries.length > 0) {
    const registries = await app.registries();
    await registries.lookup.refresh(registries.names(), app.closing);
  }
  forgetServers(app, only);
}

/** Forgets what servers listed, all or one, and asks no registry. */
export function forgetServers(app: App, only?: string): void {
  for (const server of app.directory.all()) {
    const isAsked = server.tells && server.blocked() === undefined;
    if (isAsked && (only === undefined || server.name === only)) server.forget();
  }
}

/**
 * Removes installed packages that no definition and no approval of any workspace names.
 *
 * @module
 */

import { join } from "node:path";
import { pathExists } from "../config/workspace.ts";
import { objectOf } from "../core/json.ts";
import { isOwnPin } from "../policy/server_identity.ts";
import { namesIn, NO_WARNINGS, readPrivate } from "../io/private_files.ts";
import { programsOf } from "../servers/kinds.ts";
import { prunePackages } from "../servers/stdio/install/prune_packages.ts";
import type { App } from "../app/app.ts";

/** Removes the unused packages, and returns their names. */
export async function pruneUnused(app: App): Promise<readonly string[]> {
  const { home, servers } = app.config();
  const { root } = app.loaded().workspace;
  const defined = programsOf(servers);
  const pinned = (await approvedCommands(home)).filter(({ name, source, folder }) =>
    // The approvals of this workspace do not keep packages that it no longer defines.
    folder !== root || !isOwnPin({ source }) || defined.some((one) => one.name === name)
  );
  return await prunePackages(home, [...defined, ...pinned]);
}

/** Returns the commands that were approved in the workspaces that still exist. */
async function approvedCommands(home: string) {
  const folder = join(home, "pins");
  const files = await namesIn(folder);
  return files.filter((name) => name.endsWith(".json")).flatMap((name) => {
    const pins = readPrivate(join(folder, name), objectOf, NO_WARNINGS);
    const { path, servers } = pins ?? {};
    if (typeof path !== "string" || !pathExists(path)) return [];
    return Object.entries(objectOf(servers)).flatMap(([name, server]) => {
      const { command: all, source } = objectOf(server);
      if (!Array.isArray(all)) return [];
      const [command = "", ...args] = all.map(String);
      return [{ name, command, args, source, folder: path }];
    });
  });
}

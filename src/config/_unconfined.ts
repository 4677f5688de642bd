/**
 * Finds confined servers that count as unconfined on this machine: their grants include programs or
 * paths to write, which only a layer of the operating system can limit, and there is no such layer.
 *
 * @module
 */

import type { Environment } from "./env.ts";
import type { WorkspaceFile } from "./file.ts";
import type { Grants } from "./server_grants.ts";
import type { AccessConfig } from "./current_config.ts";
import type { UserConfig } from "./user_config.ts";
import type { ServerDefinition } from "../servers/kind.ts";
import { programOf } from "../servers/kinds.ts";

interface Files {
  readonly file: WorkspaceFile | undefined;
  readonly userConfig: UserConfig;
}

/** Returns the files with a mark on each confined server that counts as unconfined here. */
export async function markUnconfined<T extends Files>(
  files: T,
  { environment, access, folder }: {
    readonly environment: Environment;
    readonly access: AccessConfig | undefined;
    readonly folder: string;
  },
): Promise<Files> {
  const { file, userConfig } = files;
  const all = [file?.sections.grants, userConfig.grants];
  const needsLayer = (server: ServerDefinition) =>
    programOf(server)?.confine === true &&
    all.some((grants) => grantsWriteOrRun(grants, server.name));
  const servers = [...file?.servers ?? [], ...userConfig.servers];
  if (environment.confines === undefined || !servers.some(needsLayer)) return files;
  const { osLayer } = userConfig.settings;
  const layer = osLayer === "off" && access?.company?.mustConfine ? "auto" : osLayer;
  if (await environment.confines(layer, folder)) return files;
  const mark = (list: readonly ServerDefinition[]) =>
    list.map((server) =>
      needsLayer(server) ? { ...server, countsAsUnconfined: true as const } : server
    );
  return {
    file: file && { ...file, servers: mark(file.servers) },
    userConfig: { ...userConfig, servers: mark(userConfig.servers) },
  };
}

/** Returns whether grants name programs, or paths to write. */
function grantsWriteOrRun(grants: Grants | undefined, server: string): boolean {
  const { write = [], run = [] } = grants?.[server] ?? {};
  return write.length > 0 || run.length > 0;
}

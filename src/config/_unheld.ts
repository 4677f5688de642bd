/**
 * Finds confined servers that count as unconfined on this machine: the user granted them more than
 * Deno alone can bound, and the system has no layer that does.
 *
 * @module
 */

import type { Environment } from "./env.ts";
import type { WorkspaceFile } from "./file.ts";
import type { Grants } from "./server_grants.ts";
import type { Others } from "./current_config.ts";
import type { PersonConfig } from "./person.ts";
import type { ServerDefinition } from "../servers/kind.ts";
import { programOf } from "../servers/kinds.ts";

interface Files {
  readonly file: WorkspaceFile | undefined;
  readonly person: PersonConfig;
}

/** Returns the files with a mark on each confined server that counts as unconfined here. */
export async function markUnheld<T extends Files>(
  files: T,
  { environment, others, folder }: {
    readonly environment: Environment;
    readonly others: Others | undefined;
    readonly folder: string;
  },
): Promise<Files> {
  const { file, person } = files;
  const all = [file?.sections.grants, person.grants];
  const isWide = (server: ServerDefinition) =>
    programOf(server)?.confine === true &&
    all.some((grants) => grantsMore(grants, server.name));
  const servers = [...file?.servers ?? [], ...person.servers];
  if (environment.confines === undefined || !servers.some(isWide)) return files;
  const { osLayer } = person.settings;
  const layer = osLayer === "off" && others?.company?.mustConfine ? "auto" : osLayer;
  if (await environment.confines(layer, folder)) return files;
  const marked = (list: readonly ServerDefinition[]) =>
    list.map((server) => isWide(server) ? { ...server, isUnheld: true as const } : server);
  return {
    file: file && { ...file, servers: marked(file.servers) },
    person: { ...person, servers: marked(person.servers) },
  };
}

/** Returns whether grants name programs, or paths to write. */
function grantsMore(grants: Grants | undefined, server: string): boolean {
  const { write = [], run = [] } = grants?.[server] ?? {};
  return write.length > 0 || run.length > 0;
}

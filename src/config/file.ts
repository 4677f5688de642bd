/**
 * Reads a `.pml.json`.
 *
 * @module
 */

import type { Permissions } from "../core/tool.ts";
import { readDocument } from "./_document.ts";
import type { Report } from "./_problem.ts";
import { parseJsonc } from "./_syntax.ts";
import { gatewayOf, type SaidOfGateway } from "./gateway_options.ts";
import { registriesOf, type RegistryEntry } from "./registries.ts";
import { type Rules, rulesOf } from "./rules.ts";
import { disabledIn, type ServerDefinition, serversOf } from "./servers.ts";

/** What a person gives to a server's code beyond the defaults, by server. */
export type Grants = Readonly<Record<string, Partial<Permissions>>>;

/** A `.pml.json` that was read and found good. */
export interface WorkspaceFile {
  readonly path: string;
  readonly realPath: string;
  /** `sha256-` and the hash of the exact bytes in hexadecimal. */
  readonly hash: string;
  /** The part of the workspace that tools may touch, relative to its root. */
  readonly workspace: string | undefined;
  /** Nothing where the key is missing: then the defaults hold. */
  readonly permissions: Rules | undefined;
  readonly servers: readonly ServerDefinition[];
  /** The names of servers that it switches off. */
  readonly disabled: readonly string[];
  readonly sections: Sections;
}

/** What else counts only once the file is trusted; nothing for what the file leaves out. */
export interface Sections {
  readonly registries: readonly RegistryEntry[] | undefined;
  readonly cloud: { readonly url?: string } | undefined;
  readonly grants: Grants | undefined;
  readonly gateway: SaidOfGateway | undefined;
  readonly intent: string | undefined;
}

/** Reads a file. Gives nothing if it is missing, or if the report says what is wrong with it. */
export async function readWorkspaceFile(
  path: string,
  report: Report,
): Promise<WorkspaceFile | undefined> {
  const read = await readDocument(path, {
    report,
    parse: parseJsonc,
    schema: async (zod) => (await import("./_schema.ts")).workspaceSchema(zod),
  });
  if (read === undefined) return undefined;
  const { said: { workspace, permissions, registries, cloud, grants, gateway, intent } } = read;
  const servers = serversOf(read);
  if (read.isBad()) return undefined;
  return {
    path,
    realPath: read.realPath,
    hash: read.hash,
    workspace,
    permissions: permissions && rulesOf(permissions, path),
    servers,
    disabled: disabledIn(read),
    sections: {
      registries: registriesOf(registries),
      cloud,
      // Without a prototype, `constructor` names nothing that the person did not write.
      grants: grants && Object.assign(Object.create(null), grants),
      gateway: gateway && gatewayOf(gateway, read.warn),
      intent,
    },
  };
}

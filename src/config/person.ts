/**
 * Reads `config.yaml` in the PML home: what the person wants everywhere.
 *
 * @module
 */

import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { readDocument } from "./_document.ts";
import type { Report } from "./_problem.ts";
import { parseYaml } from "./_syntax.ts";
import { gatewayOf, type SaidOfGateway } from "./gateway_options.ts";
import { type Limits, limitsOf } from "./limits.ts";
import type { OsLayer } from "./os_layer.ts";
import { registriesOf, type RegistryEntry } from "./registries.ts";
import { type Rules, rulesOf } from "./rules.ts";
import { disabledIn, type ServerDefinition, serversOf } from "./servers.ts";

/** Where questions go. */
export type Channel = "client" | "page" | "terminal";

/** What the person wants everywhere. */
export interface PersonConfig {
  readonly path: string;
  /** The hash of its bytes, or nothing where there is no file. */
  readonly hash: string | undefined;
  readonly permissions: Rules;
  readonly gateway: SaidOfGateway;
  /** The folder of the model that search understands meanings with; absolute. */
  readonly model: string | undefined;
  readonly limits: Limits;
  /** The one channel for questions, where the person wants but one. */
  readonly channel: Channel | undefined;
  /** What the system is to hold modules with. */
  readonly osLayer: OsLayer;
  /** Whether no call runs without a record, or those do that only read. */
  readonly journal: "required" | "best_effort";
  /** The person's own servers, in every workspace. */
  readonly servers: readonly ServerDefinition[];
  /** The names of servers that are switched off. */
  readonly disabled: readonly string[];
  /** Where servers are looked up, where the person said so. */
  readonly registries: readonly RegistryEntry[] | undefined;
  /** The folders in which reading need not ask although they are wide; absolute. */
  readonly workspaces: readonly string[];
}

/** What reading it needs. */
export interface PersonReport extends Report {
  /** What `~/` stands for; the home folder of this process unless told. */
  readonly userHome?: string;
}

/** Reads a file. A missing one says nothing, a bad one only to the report. */
export async function readPerson(path: string, report: PersonReport): Promise<PersonConfig> {
  const read = await readDocument(path, {
    report,
    parse: parseYaml,
    schema: async (zod) => (await import("./_schema.ts")).personSchema(zod),
  });
  const warn = (said: string) => read?.warn(said);
  const {
    permissions = {},
    gateway = {},
    limits = {},
    approvals,
    journal = "required",
    sandbox,
    registries,
    search,
    workspaces = [],
    mcpServers: _,
    ...later
  } = read?.said ?? {};
  const pathOf = (said: string) =>
    /^~(?:[\\/]|$)/.test(said)
      ? join(report.userHome ?? homedir(), said.slice(1))
      : resolve(dirname(path), said);
  const servers = read === undefined ? [] : serversOf(read);
  for (const key of Object.keys(later)) warn(`"${key}" counts for nothing yet`);
  return {
    path,
    hash: read?.hash,
    permissions: rulesOf(permissions, path),
    gateway: gatewayOf(gateway, warn),
    model: search?.model === undefined ? undefined : pathOf(search.model),
    limits: limitsOf(limits),
    channel: approvals?.channel,
    osLayer: sandbox?.os_layer ?? "auto",
    journal,
    servers,
    disabled: read === undefined ? [] : disabledIn(read),
    registries: registriesOf(registries),
    workspaces: workspaces.map(pathOf),
  };
}

/**
 * Reads `config.yaml` in the PML home: the user's settings for all workspaces.
 *
 * @module
 */

import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { DocumentReader, type ParseText } from "./_document.ts";
import type { Report } from "./_problem.ts";
import {
  MEMORY,
  SANDBOX,
  USER_CONFIG,
  userConfigSchema,
  type UserConfigValues,
  WORKFLOW,
} from "./settings.ts";
import { isObject } from "../core/json.ts";
import { gatewayOptions, type GatewayOverrides } from "./gateway_options.ts";
import { type Limits, limitsOf } from "./limits.ts";
import type { NetworkSection } from "./network.ts";
import type { OsLayer } from "./os_layer.ts";
import { registriesOf, type RegistryEntry } from "./registries.ts";
import { type Rules, rulesOf } from "./rules.ts";

import type { SamplingSettings } from "./sampling.ts";
import type { Grants } from "./server_grants.ts";
import type { ServerDefinition } from "../servers/kind.ts";
import { disabledNames, serversOf } from "./servers.ts";

/** Where questions go. */
export type Channel = "client" | "page" | "terminal";

/** The settings of the user, for every workspace. */
export interface PersonSettings {
  /** The folder of the embedding model for search, an absolute path; undefined if there is none. */
  readonly model: string | undefined;
  /** All limits. */
  readonly limits: Limits;
  /** The only channel for questions, if the user chose one. */
  readonly channel: Channel | undefined;
  /** The layer of the operating system that confines modules and confined servers. */
  readonly osLayer: OsLayer;
  /** Whether calls with an argument that looks like a key always need an answer of the user. */
  readonly askForKeys: boolean;
  /** Whether every call needs a journal record, or calls that only read may run without one. */
  readonly journal: "required" | "best_effort";
  /** Whether the use of tools is remembered. */
  readonly memory: boolean;
  /** Whether `pml stdio` starts the approved servers after its greeting, before their first use. */
  readonly warm: boolean;
  /** The confidence above which a plan that PML created from an intent may run. */
  readonly confidence: number;
  /** The model that answers requests of servers, if the user chose one. */
  readonly sampling: SamplingSettings | undefined;
  /** The keys of a client's `_meta` that pass to servers without being shown. */
  readonly clientMeta: readonly string[];
  /** Whether servers get the name and the version of the client that uses them. */
  readonly clientName: boolean;
  /** Whether a desktop notification shows that a call waits for the user. */
  readonly notifications: boolean;
  /** The proxy, if the user configured one. */
  readonly network: NetworkSection | undefined;
}

/** The user's configuration for all workspaces. */
export interface UserConfig {
  readonly path: string;
  /** The hash of the file's bytes; undefined if there is no file. */
  readonly hash: string | undefined;
  readonly permissions: Rules;
  readonly gateway: GatewayOverrides;
  readonly settings: PersonSettings;
  /** The user's own servers, in every workspace. */
  readonly servers: readonly ServerDefinition[];
  /**
   * The grants of the user's own servers. They do not apply to servers that another file defines.
   */
  readonly grants: Grants;
  /** The names of the servers that the file disables. */
  readonly disabled: readonly string[];
  /** The registries, if the user chose them. */
  readonly registries: readonly RegistryEntry[] | undefined;
  /** The settings of sign-ins. */
  readonly oauth: UserConfigValues["oauth"];
  /** The section of identities that may use this PML over HTTP, and of named sets of tools. */
  readonly others: IdentitySections;
  /**
   * The folders in which reading needs no question although they are large or private; absolute
   * paths.
   */
  readonly workspaces: readonly string[];
}

/** The report to which `readUserConfig` adds problems and warnings, and its option. */
export interface UserConfigReport extends Report {
  /** The folder of `~/`; by default the home folder of this process. */
  readonly userHome?: string;
}

/**
 * Reads a file. Returns the defaults for a missing file. Adds problems to the report.
 */
export async function readUserConfig(path: string, report: UserConfigReport): Promise<UserConfig> {
  const parse: ParseText = async (...text) => (await import("./_syntax.ts")).parseYaml(...text);
  const document = await new DocumentReader(parse, report).read(path, userConfigSchema);
  const warn = (message: string) => document?.warn(message);
  const values = document?.content ?? {};
  const { permissions = {}, gateway = {}, registries, workspaces = [], grants = {}, oauth } =
    values;
  const { identities, toolsets, client_toolsets, serve, telemetry } = values;
  const pathOf = (text: string) =>
    /^~([\\/]|$)/.test(text)
      ? join(report.userHome ?? homedir(), text.slice(1))
      : resolve(dirname(path), text);
  const servers = document ? serversOf(document) : [];
  if (telemetry !== undefined) warn('"telemetry" is ignored for now');
  return {
    path,
    hash: document?.hash,
    permissions: rulesOf(permissions, path),
    gateway: gatewayOptions(gateway, warn),
    settings: await settingsOf(values, pathOf),
    servers,
    grants: Object.assign(Object.create(null), grants),
    disabled: document ? disabledNames(document) : [],
    registries: registriesOf(registries),
    oauth,
    workspaces: workspaces.map(pathOf),
    others: { identities, toolsets, client_toolsets, serve },
  };
}

/** Returns the settings, with defaults. */
async function settingsOf(
  values: Partial<UserConfigValues>,
  pathOf: (text: string) => string,
): Promise<PersonSettings> {
  const { search, limits = {}, approvals, sandbox, workflow, sampling, network, memory } = values;
  return {
    model: search?.model && pathOf(search.model),
    limits: limitsOf(limits),
    channel: approvals?.channel,
    osLayer: sandbox?.os_layer ?? SANDBOX.os_layer.default,
    askForKeys: values.ask_for_keys ?? USER_CONFIG.ask_for_keys.default,
    journal: values.journal ?? USER_CONFIG.journal.default,
    memory: (isObject(memory) ? memory.enabled : memory) ?? MEMORY.enabled.default,
    warm: values.warm ?? USER_CONFIG.warm.default,
    confidence: workflow?.confidence ?? WORKFLOW.confidence.default,
    sampling: sampling && (await import("./sampling.ts")).samplingOf(sampling),
    network,
    clientMeta: values.client_meta ?? USER_CONFIG.client_meta.default,
    clientName: values.client_name ?? USER_CONFIG.client_name.default,
    notifications: values.notifications ?? USER_CONFIG.notifications.default,
  };
}

/** Identities and tool sets as the file has them. */
export type IdentitySections = Pick<
  UserConfigValues,
  "identities" | "toolsets" | "client_toolsets" | "serve"
>;

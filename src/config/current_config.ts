/**
 * The current configuration, and its restrictions.
 *
 * @module
 */

import type { Pause } from "./pause.ts";
import type { PersonSettings } from "./user_config.ts";
import type { Rules } from "./rules.ts";
import type { ServerDefinition } from "../servers/kind.ts";
import type { RegistryEntry } from "./registries.ts";
import type { Grants } from "./server_grants.ts";
import type { GatewayOptions } from "./gateway_options.ts";
import type { PmlError } from "../core/errors.ts";
import type { Company } from "./company.ts";
import type { ToolId } from "../core/tool_id.ts";
import type { Verdict } from "../protocol/verdict.ts";
import type { Toolset } from "../protocol/toolset.ts";
import type { Pattern } from "../core/pattern.ts";

/** The current configuration, as all other modules see it. It is frozen. */
export interface Config extends PersonSettings {
  /** The PML home, an absolute path. */
  readonly home: string;
  /** The folder that tools may touch, a real path. */
  readonly workspace: string;
  /** The effective rules. */
  readonly rules: Rules;
  /** The servers of the user's configuration, and of the workspace file if it is trusted. */
  readonly servers: readonly ServerDefinition[];
  /** The registries, in the order in which they are asked. */
  readonly registries: readonly RegistryEntry[];
  /** The address of the cloud, if it is not the default one. */
  readonly cloud: { readonly url?: string } | undefined;
  /** The grants of the user, by server. */
  readonly grants: Grants;
  /** The tools that clients see. */
  readonly gateway: GatewayOptions;
  /** The restrictions by an identity, tool sets or a policy; undefined if there are none. */
  readonly restrictions: Restrictions | undefined;
  /** The user's description of their work. Lists of tools can be chosen by it. */
  readonly intent: string | undefined;
  /** Whether the workspace file is trusted; false if there is none. */
  readonly trusted: boolean;
  /** The parts of an untrusted file that are ignored: its keys, and the names of its servers. */
  readonly ignored: readonly string[];
  /** The pause of the workspace, if the user paused it. Then every new call is refused. */
  readonly pause: Pause | undefined;
  /** The problem of the configuration, if there is one. Then every call is denied. */
  readonly problem: PmlError | undefined;
  /** Warnings for the user. */
  readonly warnings: readonly string[];
}

/** The configuration that restrictions are made from: identities, tool sets and the policy. */
export interface AccessConfig {
  /** The policy of the company, if there is one. */
  readonly company: Company | undefined;
  /** The identities, by their names. */
  readonly identities: ReadonlyMap<string, Identity>;
  /** Returns the restrictions, given the name of the tool set of a trusted file. */
  readonly restrictionsFor: (toolset: string | undefined) => Restrictions | undefined;
}

/** The restrictions of the user's configuration by an identity, by tool sets and by the policy. */
export interface Restrictions {
  /** The identity that this PML works for; undefined for the user or a removed identity. */
  readonly identity: Identity | undefined;
  /** The policy of the company, if there is one. */
  readonly company: Company | undefined;
  /** Returns a configuration with the rules of the identity and without forbidden parts. */
  applyTo(config: Config): Config;
  /** Returns a judge that denies every tool that is missing in one of the tool sets. */
  judge<A>(judge: (id: ToolId, args?: A) => Verdict): (id: ToolId, args?: A) => Verdict;
  /** Returns the tool set of a client, if it has one; undefined if no client has one. */
  readonly toolsetFor: ((client: string) => Toolset | undefined) | undefined;
}

/** A user of this PML over HTTP. */
export interface Identity {
  /** The name. */
  readonly name: string;
  /** The SHA-256 of the token, in hexadecimal digits; undefined if the identity has no access. */
  readonly token: string | undefined;
  /** The rules of the identity. The owner's deny and ask rules apply, too. */
  readonly permissions: Rules;
  /** The tools that the identity may use; undefined if it may use all. */
  readonly toolset: Toolset | undefined;
  /** Whether the user's keys may be used. */
  readonly keys: boolean;
  /** The maximum numbers of calls. */
  readonly rates: readonly Rate[];
}

/** The maximum number of calls of some tools in some time. */
export interface Rate {
  /** The tools. */
  readonly pattern: Pattern;
  /** The maximum number of calls in that time. */
  readonly calls: number;
  /** The time, in milliseconds. */
  readonly ms: number;
  /** The rate as it is written: `60/minute`. */
  readonly text: string;
}

/** The owner of the configuration, which changes while PML runs. `Policy` implements it. */
export interface ConfigOwner<Key extends keyof Config = keyof Config> {
  /** The current configuration, or these parts of it. */
  readonly config: Pick<Config, Key>;
}

/**
 * The services that the sources and the runtimes of servers share.
 *
 * @module
 */

import type { Logins } from "../oauth/logins.ts";
import type { Pins } from "../policy/pins.ts";
import type { Policy } from "../policy/policy.ts";
import type { CapabilityRunner } from "./capability/capability_server.ts";
import type { Directory } from "./directory.ts";
import { DefinitionValues } from "./definition_values.ts";
import type { DefinitionFiller, ServerHost } from "./host.ts";
import type { Servers } from "./lists/servers.ts";
import type { Machine, MachineOptions } from "./machine.ts";
import type { ModuleSource } from "./module/module_files.ts";
import type { LateParts, RegistryNames, SourceServices } from "./source.ts";

/** The parts of a running PML that its services use. */
export interface ServiceParts extends Omit<MachineOptions, "opener" | "values"> {
  readonly servers: Servers;
  readonly directory: Directory;
  readonly parts: LateParts;
}

/** The services of a running PML. Those that few calls need are loaded by their first use. */
export class ServerServices implements ServerHost, SourceServices {
  readonly policy: Policy;
  readonly pins: Pins;
  readonly servers: Servers;
  readonly machine: Machine;
  readonly #options: ServiceParts;
  readonly #logins: Logins;

  /** Loads nothing yet. */
  constructor(options: ServiceParts, machine: Machine, logins: Logins) {
    this.policy = options.policy;
    this.pins = options.pins;
    this.servers = options.servers;
    this.machine = machine;
    this.#options = options;
    this.#logins = logins;
  }

  /** Loads the modules that ship with PML. */
  async builtins(): Promise<ReadonlyMap<string, ModuleSource>> {
    return await this.#options.parts.builtinModules();
  }

  /** Returns the servers of registries. */
  async registries(): Promise<RegistryNames> {
    return await this.#options.parts.registries();
  }

  /** Returns the values of definitions of registries. */
  registryValues(registries: RegistryNames): DefinitionFiller {
    const registryOf = (name: string) => registries.at(name)?.identity.pinned.source;
    return new DefinitionValues(this.#options, registryOf);
  }

  /** Returns the saved capabilities. */
  async capabilities(): Promise<CapabilityRunner> {
    return (await this.#options.parts.capabilities()).capabilities;
  }

  /** Follows where the user signs in, if the process stays. */
  followSignIns(): void {
    if (!this.#options.stays) return;
    this.#logins.follow().catch(({ message }) => this.#options.log.debug(message));
  }
}

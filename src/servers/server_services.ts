/**
 * The services that the sources and the runtimes of servers share, and the servers to sign in at.
 *
 * @module
 */

import { type ErrorCode, PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import type { LoginHost, Logins } from "../oauth/logins.ts";
import type { OAuthServer } from "../oauth/oauth_server.ts";
import type { SignIns } from "../oauth/sign_ins.ts";
import type { HttpValues } from "./http/http_options.ts";
import { kindNamed } from "./kinds.ts";
import type { Pins } from "../policy/pins.ts";
import type { Policy } from "../policy/policy.ts";
import type { CapabilityRunner } from "./capability/capability_server.ts";
import type { Directory } from "./directory.ts";
import { DefinitionValues } from "./definition_values.ts";
import type { DefinitionFiller, ServerHost } from "./host.ts";
import type { Servers } from "./lists/servers.ts";
import type { Machine, MachineOptions } from "./machine.ts";
import type { ModuleSource } from "./module/module_files.ts";
import type { LateParts, RegistryNames, ServerOpening, SourceServices } from "./source.ts";

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

/** Finds the servers to sign in at, and uses their sign-ins. */
export class SignInServers implements LoginHost {
  readonly #opener: Pick<ServerOpening, "open">;
  readonly #machine: Machine;
  readonly #parts: {
    readonly policy: Policy;
    readonly directory: Directory;
    readonly servers: Servers;
  };

  /** Opens nothing yet. */
  constructor(
    opener: Pick<ServerOpening, "open">,
    machine: Machine,
    parts: { readonly policy: Policy; readonly directory: Directory; readonly servers: Servers },
  ) {
    this.#opener = opener;
    this.#machine = machine;
    this.#parts = parts;
  }

  /** How long a sign-in waits for the user, in milliseconds. */
  get signInMs(): number {
    return this.#parts.policy.now.config.limits.approvalMs;
  }

  /** Returns the sign-ins of the user. */
  signIns(): Promise<SignIns> {
    return this.#machine.signIns();
  }

  /** Uses the sign-in of a server that has changed. */
  signInChanged(name: string, mark: unknown): void {
    this.#machine.addresses.renew(name, mark);
    this.#parts.servers.lists.expire(name);
  }

  /** Returns a server to sign in at. Throws if it has no sign-in. */
  async signInAt(name: string): Promise<OAuthServer> {
    const { policy, directory } = this.#parts;
    const listing = directory.listingOf(name);
    const cannot = (code: ErrorCode, why: string, hint?: string) =>
      new PmlError(code, `Cannot sign in or out at ${quoted(name)}: ${why}`, { hint });
    if (kindNamed(listing.kind)?.definition?.remote === undefined) {
      throw policy.forbidden(name)?.error ??
        cannot("USAGE", "no server over HTTP has this name", "See `pml list`");
    }
    const blocked = listing.blocked();
    // guard: login-untrusted
    if (blocked !== undefined) throw cannot("WORKSPACE_UNTRUSTED", blocked);
    await this.#opener.open(listing);
    const { upstreams } = this.#machine;
    const values = this.#machine.upstreamOf(name, upstreams).values as HttpValues; // it is of this kind
    if (Object.keys(values.headers).some((header) => /^authorization$/i.test(header))) {
      throw cannot("USAGE", "its definition has an Authorization header");
    }
    return values;
  }
}

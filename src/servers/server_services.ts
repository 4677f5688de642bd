/**
 * The services that the sources and runtimes of servers share, and the services for sign-ins.
 *
 * @module
 */

import { type ErrorCode, PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import type { LoginHost, Logins } from "../oauth/logins.ts";
import type { OAuthServer } from "../oauth/oauth_server.ts";
import type { SignIns } from "../oauth/sign_ins.ts";
import type { HttpValues } from "./http/http_options.ts";
import { findKind } from "./kinds.ts";
import type { Pins } from "../policy/pins.ts";
import type { Policy } from "../policy/policy.ts";
import type { CapabilityRunner } from "./capability/capability_server.ts";
import { DefinitionValues } from "./definition_values.ts";
import type { DefinitionFiller, ServerHost } from "./host.ts";
import type { Servers } from "./lists/servers.ts";
import type { Machine } from "./machine.ts";
import type { ModuleSource } from "./module/module_files.ts";
import type { ServiceParts } from "./service_parts.ts";
import type { RegistryNames, ServerOpening, SourceServices } from "./source.ts";

/** The services of a running PML. The first use loads services that few calls need. */
export class ServerServices implements ServerHost, SourceServices {
  readonly policy: Policy;
  readonly pins: Pins;
  readonly servers: Servers;
  readonly machine: Machine;
  readonly #parts: ServiceParts;
  readonly #logins: Logins;

  /** Loads nothing yet. */
  constructor(parts: ServiceParts, machine: Machine, logins: Logins) {
    this.policy = parts.policy;
    this.pins = parts.pins;
    this.servers = parts.servers;
    this.machine = machine;
    this.#parts = parts;
    this.#logins = logins;
  }

  /** Loads the modules that ship with PML. */
  async builtins(): Promise<ReadonlyMap<string, ModuleSource>> {
    return await this.#parts.lateParts.builtinModules();
  }

  /** Returns the servers of registries. */
  async registries(): Promise<RegistryNames> {
    return await this.#parts.lateParts.registries();
  }

  /** Returns the object that fills in the variables of definitions of registries. */
  registryValues(registries: RegistryNames): DefinitionFiller {
    const registryOf = (name: string) => registries.find(name)?.identity.pinned.source;
    return new DefinitionValues(this.#parts, registryOf);
  }

  /** Returns the saved capabilities. */
  async capabilities(): Promise<CapabilityRunner> {
    return (await this.#parts.lateParts.capabilities()).capabilities;
  }

  /** Watches the user's sign-ins, if the process is long-running. */
  followSignIns(): void {
    if (!this.#parts.isLongRunning) return;
    this.#logins.follow().catch(({ message }) => this.#parts.log.debug(message));
  }
}

/** Finds the servers that have sign-ins, and applies changes of sign-ins. */
export class SignInServers implements LoginHost {
  readonly #opener: Pick<ServerOpening, "open">;
  readonly #machine: Machine;
  readonly #parts: Pick<ServiceParts, "policy" | "directory" | "servers">;

  /** Opens nothing yet. */
  constructor(
    opener: Pick<ServerOpening, "open">,
    machine: Machine,
    parts: Pick<ServiceParts, "policy" | "directory" | "servers">,
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

  /**
   * Applies a changed sign-in: the next call opens a new connection, and lists are loaded again.
   */
  signInChanged(name: string, mark: unknown): void {
    this.#machine.addresses.renew(name, mark);
    this.#parts.servers.lists.expire(name);
  }

  /** Returns a server for a sign-in. Throws if the server has no sign-in. */
  async serverForSignIn(name: string): Promise<OAuthServer> {
    const { policy, directory } = this.#parts;
    const listing = directory.listingOf(name);
    const errorWith = (code: ErrorCode, why: string, hint?: string) =>
      new PmlError(code, `Cannot sign in or out at ${quoted(name)}: ${why}`, { hint });
    if (findKind(listing.kind)?.definition?.remote === undefined) {
      throw policy.whyForbidden(name)?.error ??
        errorWith("USAGE", "no server over HTTP has this name", "See `pml list`");
    }
    const blocked = listing.whyBlocked();
    // guard: login-untrusted
    if (blocked !== undefined) throw errorWith("WORKSPACE_UNTRUSTED", blocked);
    await this.#opener.open(listing);
    const { upstreams } = this.#machine;
    const values = this.#machine.upstreamOf(name, upstreams).values as HttpValues; // checked above
    if (Object.keys(values.headers).some((header) => /^authorization$/i.test(header))) {
      throw errorWith("USAGE", "its definition has an Authorization header");
    }
    return values;
  }
}

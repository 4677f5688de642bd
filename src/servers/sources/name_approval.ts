/**
 * The approval of a name that no file defines: registries are asked about it.
 *
 * @module
 */

import { PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import type { Approval } from "../known_server.ts";
import type { ResolvedCall } from "../server.ts";
import { isOwnPin, type ServerIdentity, type Unapproved } from "../../policy/server_identity.ts";
import { isFreeName, splitToolId, type ToolId } from "../../core/tool_id.ts";
import { allowsBeforehand } from "../../policy/always_rule.ts";
import { fqdnOf } from "../../registry/fqdn.ts";
import type { SourceServices } from "../source.ts";
import { NothingToApprove } from "./nothing_to_approve.ts";

/** The services of lookups in registries. */
type LookupServices = Pick<SourceServices, "policy" | "pins" | "registries">;

/** The approval of a name that no file defines. */
export class NameApproval implements Approval {
  readonly #services: LookupServices;
  readonly #isCloud: boolean;

  /** Takes the services, and whether the lists of PML or the hub have the name. */
  constructor(services: LookupServices, isCloud = false) {
    this.#services = services;
    this.#isCloud = isCloud;
  }

  /** Returns the description. */
  text(): string {
    return "a server that no file defines";
  }

  /** Returns undefined: nothing is known yet that an approval could bind to. */
  identity(): Promise<ServerIdentity | undefined> {
    return Promise.resolve(undefined);
  }

  /** Looks the name up. */
  async unapproved(call: ResolvedCall): Promise<Unapproved | undefined> {
    return await lookedUp(call, this.#services, this.#isCloud);
  }
}

/**
 * The approval of a namespace of saved capabilities. The user approved each when it was saved. Of
 * the others, registries may have some.
 */
export class NamespaceApproval extends NothingToApprove {
  readonly #services: LookupServices;

  /** Takes the services. */
  constructor(services: LookupServices) {
    super("a capability that you saved: it calls tools, and nothing else");
    this.#services = services;
  }

  /** Returns the unapproved parts of a capability that a registry offers. */
  override async unapproved(call: ResolvedCall): Promise<Unapproved | undefined> {
    const { config } = this.#services.policy.now;
    if (call.method !== undefined || config.registries.length === 0) return undefined;
    const { offers } = await this.#services.registries();
    const fqdn = fqdnOf(call.id);
    // A name that the user may have mistyped reaches no registry.
    const isOffered = fqdn !== undefined && await offers.entryOf(fqdn) !== undefined;
    return isOffered ? await lookedUp(call, this.#services) : undefined;
  }
}

/** Looks a name up in the registries, and returns the unapproved parts of the entry. */
export async function lookedUp(
  { id, isTyped, verdict, cancellation: { signal }, server, version }: ResolvedCall,
  services: LookupServices,
  isCloud = false,
): Promise<Unapproved | undefined> {
  const { policy, pins } = services;
  let { name } = server;
  await pins.state();
  try {
    // No registry has the servers of the cloud itself.
    if (policy.now.config.registries.length > 0 && isFreeName(name)) {
      const registries = await services.registries();
      const isNamed = isTyped === true || policy.names(name) || isCloud;
      // The lists of cloud servers are those of PML and of the hub.
      const { tool } = splitToolId(id);
      const options = { signal, isAllowed: allowsBeforehand(policy, verdict), isNamed, tool };
      name = await registries.entryOf(name, tool, isNamed);
      const unapproved = await registries.unapproved(name, options) ??
        // If no registry offers the name that the user typed, it may be the name of a capability.
        (isNamed && name === server.name && registries.at(name) === undefined && isEntry(id)
          ? await registries.unapproved(id, options)
          : undefined);
      if (unapproved !== undefined) return unapproved;
    }
    // A server whose registry is no longer configured is listed, and blocked.
    const isFound = policy.now.version !== version ||
      server.definition && server.blocked() === undefined;
    if (isFound) return undefined;
  } catch (error) {
    // Servers on the list of the cloud need no registry.
    if (isCloud && error instanceof PmlError && error.code === "REGISTRY_OFFLINE") return undefined;
    throw error;
  }
  const pinned = pins.pinOf(name);
  if (pinned === undefined || isOwnPin(pinned)) return undefined;
  const { source } = pinned;
  throw policy.now.config.narrowing?.company?.forbidsRegistry(source)?.error ??
    notThere(name, source);
}

/** Returns whether the id of a tool may be the name of an entry of a registry. */
function isEntry(id: ToolId): boolean {
  const fqdn = fqdnOf(id);
  return fqdn?.action !== undefined && fqdn.version === undefined;
}

function notThere(server: string, source: string): PmlError {
  const message =
    `Cannot use ${quoted(server)}: it is pinned to ${quoted(source, 300)}, which is ` +
    "not asked, or no longer has it";
  return new PmlError("REGISTRY_OFFLINE", message, {
    hint: "Put it back under `registries`, or run `pml lock update`",
  });
}

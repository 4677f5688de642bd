/**
 * The approval of a name that no file defines. Looks the name up in registries.
 *
 * @module
 */

import { PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import type { Approval } from "../known_server.ts";
import type { ResolvedCall } from "../server.ts";
import { isOwnPin, type ServerIdentity, type Unapproved } from "../../policy/server_identity.ts";
import { isUsableServerName, splitToolId, type ToolId } from "../../core/tool_id.ts";
import { isAllowedByListedFile } from "../../policy/always_rule.ts";
import { fqdnOf } from "../../registry/fqdn.ts";
import type { SourceServices } from "../source.ts";
import { NothingToApprove } from "./nothing_to_approve.ts";

/** The services of lookups in registries. */
type LookupServices = Pick<SourceServices, "policy" | "pins" | "registries">;

/** The approval of a name that no file defines. */
export class NameApproval implements Approval {
  readonly #services: LookupServices;
  readonly #isCloud: boolean;

  /** `isCloud` is whether the name is on a list of cloud servers, of PML or of the hub. */
  constructor(services: LookupServices, isCloud = false) {
    this.#services = services;
    this.#isCloud = isCloud;
  }

  /** Returns the description. */
  text(): string {
    return "a server that no file defines";
  }

  /** Returns undefined, because nothing is known yet that an approval could cover. */
  identity(): Promise<ServerIdentity | undefined> {
    return Promise.resolve(undefined);
  }

  /** Looks the name up. */
  async findUnapproved(call: ResolvedCall): Promise<Unapproved | undefined> {
    return await lookUpName(call, this.#services, this.#isCloud);
  }
}

/**
 * The approval of a namespace of saved capabilities. The user approved each capability when it was
 * saved. Looks up other capabilities of the namespace in registries.
 */
export class NamespaceApproval extends NothingToApprove {
  readonly #services: LookupServices;

  constructor(services: LookupServices) {
    super("a capability that you saved: it calls tools, and nothing else");
    this.#services = services;
  }

  /** Returns the unapproved parts of a capability that a registry offers. */
  override async findUnapproved(call: ResolvedCall): Promise<Unapproved | undefined> {
    const { config } = this.#services.policy.now;
    if (call.method !== undefined || config.registries.length === 0) return undefined;
    const { offers } = await this.#services.registries();
    const fqdn = fqdnOf(call.id);
    // A name that is in no catalog may be a typing error, so it is not sent to registries.
    const isOffered = fqdn !== undefined && await offers.entryOf(fqdn) !== undefined;
    return isOffered ? await lookUpName(call, this.#services) : undefined;
  }
}

/**
 * Looks a name up in the registries, and returns an approval request for the entry. Returns
 * undefined if the entry is approved, or if no registry is needed. Throws `REGISTRY_OFFLINE` if the
 * name is pinned to a registry that does not have it.
 */
export async function lookUpName(
  { id, isTyped, verdict, cancellation: { signal }, server, version }: ResolvedCall,
  services: LookupServices,
  isCloud = false,
): Promise<Unapproved | undefined> {
  const { policy, pins } = services;
  let { name } = server;
  await pins.state();
  try {
    // Only valid names of servers can be in a registry.
    if (policy.now.config.registries.length > 0 && isUsableServerName(name)) {
      const registries = await services.registries();
      // The user wrote the name. A name on a list of cloud servers counts as such a name, too.
      const isNamed = isTyped === true || policy.hasRuleFor(name) || isCloud;
      const { tool } = splitToolId(id);
      const options = { signal, isAllowed: isAllowedByListedFile(policy, verdict), isNamed, tool };
      name = await registries.entryOf(name, tool, isNamed);
      const unapproved = await registries.findUnapproved(name, options) ??
        // If no registry has the server that the user typed, the whole id may name a capability.
        (isNamed && name === server.name && registries.find(name) === undefined && isEntry(id)
          ? await registries.findUnapproved(id, options)
          : undefined);
      if (unapproved !== undefined) return unapproved;
    }
    // If the policy changed, the call is resolved again. A server whose registry is no longer
    // configured is still listed, but blocked.
    const isFound = policy.now.version !== version ||
      server.definition && server.whyBlocked() === undefined;
    if (isFound) return undefined;
  } catch (error) {
    // Servers on a list of cloud servers also work without a registry.
    if (isCloud && error instanceof PmlError && error.code === "REGISTRY_OFFLINE") return undefined;
    throw error;
  }
  const pinned = pins.pinOf(name);
  if (pinned === undefined || isOwnPin(pinned)) return undefined;
  const { source } = pinned;
  throw policy.now.config.restrictions?.company?.forbidsRegistry(source)?.error ??
    missingServerError(name, source);
}

/** Returns whether the id of a tool may be the name of an entry of a registry. */
function isEntry(id: ToolId): boolean {
  const fqdn = fqdnOf(id);
  return fqdn?.action !== undefined && fqdn.version === undefined;
}

function missingServerError(server: string, source: string): PmlError {
  const message =
    `Cannot use ${quoted(server)}: it is pinned to ${quoted(source, 300)}, which is ` +
    "not asked, or no longer has it";
  return new PmlError("REGISTRY_OFFLINE", message, {
    hint: "Put it back under `registries`, or run `pml lock update`",
  });
}

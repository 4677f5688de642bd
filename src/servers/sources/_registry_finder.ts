/**
 * Finds the definitions and approvals of servers of registries.
 *
 * @module
 */

import { serverText } from "../../config/workspace_lines.ts";
import type { Approval } from "../known_server.ts";
import type { Manifest } from "../manifest.ts";
import type { ResolvedCall } from "../server.ts";
import type { ServerIdentity, Unapproved } from "../../policy/server_identity.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import type { ModuleUse } from "../module/loader.ts";
import { grantsOf } from "../../policy/grants.ts";
import type { DefinitionFiller, FoundServer } from "../host.ts";
import type { ModuleDefinition, ServerDefinition } from "../kind.ts";
import { moduleOf } from "../kinds.ts";
import type {
  RegisteredServer,
  RegistryNames,
  ServerListing,
  SourceFinder,
  SourceServices,
} from "../source.ts";
import { comparePins, NO_CODE } from "./_unpinned.ts";
import { lookUpName, NameApproval } from "./name_approval.ts";

/** Finds servers of registries. */
export class RegistryFinder implements SourceFinder {
  readonly #services: SourceServices;
  readonly #names: RegistryNames;
  readonly #values: DefinitionFiller;

  /** `names` finds the servers of registries. */
  constructor(services: SourceServices, names: RegistryNames) {
    this.#services = services;
    this.#names = names;
    this.#values = services.registryValues(names);
  }

  /** Returns a server whose manifest the user approved. */
  find({ definition }: ServerListing): FoundServer | undefined {
    const manifest = definition as Manifest | undefined; // `RegistrySource` listed it
    const registered = manifest && this.#names.find(manifest.fqdn);
    return registered && this.#foundServer(registered);
  }

  #foundServer(registered: RegisteredServer): FoundServer {
    const { definition, identity, entry: { manifest } } = registered;
    const { kind } = manifest;
    if (definition === undefined) {
      return { approval: new NameApproval(this.#services, true), kind, manifest };
    }
    this.#services.machine.packages.addIdentity(definition, identity);
    const approval = new RegistryApproval(definition, this.#services);
    const server = { approval, kind, definition, manifest, values: this.#values };
    const module = moduleOf(definition);
    if (module === undefined) return server;
    const use = () => this.#use(registered, module);
    return { ...server, use, fetchCode: () => this.#fetch(manifest) };
  }

  #use(
    { identity: { pinned }, entry: { manifest } }: RegisteredServer,
    { path }: ModuleDefinition,
  ) {
    const { name } = manifest;
    const { integrity, permissions } = pinned;
    const { grants } = this.#services.policy.now.config;
    const use: ModuleUse = {
      source: { kind: "file", name, path },
      expectedHash: integrity ?? NO_CODE,
      listedPermissions: permissions,
      grants: grantsOf(manifest, grants[name]),
    };
    return use;
  }

  async #fetch({ name, fqdn }: Manifest): Promise<void> {
    const { starts, closing } = this.#services.machine;
    const report = (message: string) => starts.report(name, message);
    await this.#names.fetchCode(fqdn, { signal: closing, tell: report });
  }
}

/** The approval of a server of a registry. Each call looks the server up in the registry. */
class RegistryApproval implements Approval {
  readonly #definition: ServerDefinition;
  readonly #services: SourceServices;

  constructor(definition: ServerDefinition, services: SourceServices) {
    this.#definition = definition;
    this.#services = services;
  }

  text(): string {
    return serverText(this.#definition);
  }

  identity(): Promise<ServerIdentity> {
    return Promise.resolve(this.#identity());
  }

  approvedDefinitions(
    tools: readonly ToolDefinition[],
  ): Promise<ReadonlyMap<ToolDefinition, ToolDefinition>> {
    return this.#services.pins.approvedDefinitions(this.#identity(), tools);
  }

  async findUnapproved(call: ResolvedCall): Promise<Unapproved | undefined> {
    const unapproved = await lookUpName(call, this.#services);
    const { policy, pins } = this.#services;
    // If the lookup approved the server by a rule, the policy has changed: the caller resolves the
    // call again.
    if (unapproved !== undefined || policy.now.version !== call.version) return unapproved;
    return await comparePins(call, { pins, identity: () => this.#identity() });
  }

  #identity(): ServerIdentity {
    return this.#services.machine.packages.identityOf(this.#definition);
  }
}

/**
 * Finds the definitions and approvals of servers in files.
 *
 * @module
 */

import { envFileNames } from "../../config/env_file.ts";
import { serverText } from "../../config/workspace_lines.ts";
import type { Approval } from "../known_server.ts";
import type { Maybe } from "../../core/maybe.ts";
import type { ResolvedCall } from "../server.ts";
import type { ServerIdentity, Unapproved } from "../../policy/server_identity.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import type { ModuleUse } from "../module/loader.ts";
import type { FoundServer, ServerMachine, ServerPackages } from "../host.ts";
import type { ModuleDefinition, ServerDefinition } from "../kind.ts";
import { moduleOf } from "../kinds.ts";
import type { ServerListing, SourceFinder, SourceServices } from "../source.ts";
import { assertTrusted } from "../workspace_code.ts";
import { comparePins, NO_CODE } from "./_unpinned.ts";

/** Finds servers of files. */
export class FileFinder implements SourceFinder {
  readonly #services: SourceServices;

  constructor(services: SourceServices) {
    this.#services = services;
  }

  /** Returns the definition that the directory listed. */
  find({ definition, kind }: ServerListing): FoundServer {
    const fileDefinition = definition as ServerDefinition; // `FileSource` listed it
    const approval = new FileApproval(fileDefinition, this.#services);
    const server = { approval, kind, definition: fileDefinition };
    const module = moduleOf(fileDefinition);
    return module === undefined ? server : { ...server, use: () => this.#use(module) };
  }

  #use({ name, path }: ModuleDefinition): ModuleUse {
    const { policy } = this.#services;
    return {
      source: { kind: "file", name, path },
      // Without an approved hash, no code may run, not even if the file was created after the
      // start.
      expectedHash: policy.approvedCode(name) ?? NO_CODE,
      grants: policy.now.config.grants[name],
    };
  }
}

/** The services of `FileApproval`. */
export interface FileApprovalServices extends Pick<SourceServices, "policy" | "pins" | "servers"> {
  readonly machine: Pick<ServerMachine, "trialOf"> & {
    readonly packages: Pick<ServerPackages, "identityOf">;
  };
}

/** The approval of a server that a file defines. */
export class FileApproval implements Approval {
  readonly #definition: ServerDefinition;
  readonly #services: FileApprovalServices;

  /** Compares nothing yet. */
  constructor(definition: ServerDefinition, services: FileApprovalServices) {
    this.#definition = definition;
    this.#services = services;
  }

  /** Returns the description of the definition. */
  text(): string {
    const { policy, machine } = this.#services;
    return serverText(this.#definition, {
      isOfUser: policy.now.loaded.userConfig.servers.includes(this.#definition),
      register: policy.register,
      fileNames: envFileNames(this.#definition, policy),
      plain: (name) => policy.plain(name),
      trial: machine.trialOf(this.#definition.name),
    });
  }

  /** Returns the identity now: the installation of a package can change it. */
  identity(): Promise<ServerIdentity> {
    return Promise.resolve(this.#identity());
  }

  /** Returns the approved definitions of changed tools. */
  approvedDefinitions(
    tools: readonly ToolDefinition[],
  ): Promise<ReadonlyMap<ToolDefinition, ToolDefinition>> {
    return this.#services.pins.approvedDefinitions(this.#identity(), tools);
  }

  /**
   * Returns an approval request for unapproved parts of the server or the tool; undefined if all
   * are approved. Throws if the file is not trusted.
   */
  findUnapproved(call: ResolvedCall): Maybe<Unapproved | undefined> {
    assertTrusted(this.#definition, this.#services.policy);
    return this.#isCompared(call) ? undefined : this.#compare(call);
  }

  #identity(): ServerIdentity {
    return this.#services.machine.packages.identityOf(this.#definition);
  }

  /**
   * Returns whether the server, the tool and the instructions have already passed the comparison.
   */
  #isCompared(call: ResolvedCall): boolean {
    const { policy, pins, servers } = this.#services;
    // If the policy blocks the server, the user must approve the file first.
    if (call.method !== undefined || policy.whyBlocked(this.#definition.name) !== undefined) {
      return false;
    }
    // Loading the definition may start the server, so the server must be approved first.
    // guard: definition-first
    if (!pins.isKnownEqual(this.#identity())) return false;
    const definition = call.definition();
    if (definition instanceof Promise || !pins.isKnownEqual(definition)) return false;
    const text = servers.sentInstructionsOf(this.#definition.name);
    return text === undefined || pins.isKnownEqual(text);
  }

  async #compare(call: ResolvedCall): Promise<Unapproved | undefined> {
    const { policy, pins } = this.#services;
    return await policy.findUnapproved(this.#definition.name) ??
      await comparePins(call, { pins, identity: () => this.#identity() });
  }
}

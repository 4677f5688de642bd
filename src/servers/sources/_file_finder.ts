/**
 * Finds the definitions and approvals of servers that files define.
 *
 * @module
 */

import { envFileNames } from "../../config/env_file.ts";
import { serverText } from "../../config/shown.ts";
import type { Approval } from "../known_server.ts";
import type { Maybe } from "../../core/maybe.ts";
import type { ResolvedCall } from "../server.ts";
import type { ServerIdentity, Unapproved } from "../../policy/server_identity.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import type { ModuleUse } from "../module/loader.ts";
import type { ServerPackages } from "../host.ts";
import type { ModuleDefinition, ServerDefinition } from "../kind.ts";
import { moduleOf } from "../kinds.ts";
import type { FoundServer, ServerListing, SourceFinder, SourceServices } from "../source.ts";
import { assertTrusted } from "../workspace_code.ts";
import { NO_CODE, unpinned } from "./_unpinned.ts";

/** Finds servers of files. */
export class FileFinder implements SourceFinder {
  readonly #services: SourceServices;

  /** Takes the services. */
  constructor(services: SourceServices) {
    this.#services = services;
  }

  /** Returns the definition that the directory listed. */
  find({ definition, kind }: ServerListing): FoundServer {
    const own = definition as ServerDefinition; // the source of files listed it
    const approval = new FileApproval(own, this.#services);
    const server = { approval, kind, definition: own };
    const module = moduleOf(own);
    return module === undefined ? server : { ...server, use: () => this.#use(module) };
  }

  #use({ name, path }: ModuleDefinition): ModuleUse {
    const { policy } = this.#services;
    return {
      source: { kind: "file", name, path },
      // It may have had no file until now.
      approved: policy.approvedCode(name) ?? NO_CODE,
      grants: policy.now.config.grants[name],
    };
  }
}

/** The services of `FileApproval`. */
export interface FileApprovalServices extends Pick<SourceServices, "policy" | "pins" | "servers"> {
  readonly machine: { readonly packages: Pick<ServerPackages, "identityOf"> };
}

/** The approval of a server that a file defines. */
export class FileApproval implements Approval {
  readonly #own: ServerDefinition;
  readonly #services: FileApprovalServices;

  /** Takes the definition. */
  constructor(own: ServerDefinition, services: FileApprovalServices) {
    this.#own = own;
    this.#services = services;
  }

  /** Returns the description of the definition. */
  text(): string {
    const { policy } = this.#services;
    return serverText(this.#own, {
      isOfUser: policy.now.loaded.person.servers.includes(this.#own),
      register: policy.register,
      fileNames: envFileNames(this.#own, policy),
      plain: (name) => policy.plain(name),
    });
  }

  /** Returns the identity, which an installed package can change. */
  identity(): Promise<ServerIdentity> {
    return Promise.resolve(this.#identity());
  }

  /** Returns the approved definitions of changed tools. */
  approvedDefinitions(
    tools: readonly ToolDefinition[],
  ): Promise<ReadonlyMap<ToolDefinition, ToolDefinition>> {
    return this.#services.pins.approvedDefinitions(this.#identity(), tools);
  }

  /** Returns the parts of the file, the server or the tool that are not approved. */
  unapproved(call: ResolvedCall): Maybe<Unapproved | undefined> {
    assertTrusted(this.#own, this.#services.policy);
    return this.#isCompared(call) ? undefined : this.#look(call);
  }

  #identity(): ServerIdentity {
    return this.#services.machine.packages.identityOf(this.#own);
  }

  /** Returns whether the server, the tool and the instructions were compared with their pins. */
  #isCompared(call: ResolvedCall): boolean {
    const { policy, pins, servers } = this.#services;
    // The policy blocks a server that it asks about.
    if (call.method !== undefined || policy.blocked(this.#own.name) !== undefined) return false;
    // To load the definition may start the server, so the server must be approved before.
    // guard: definition-first
    if (!pins.isPassed(this.#identity())) return false;
    const definition = call.definition();
    if (definition instanceof Promise || !pins.isPassed(definition)) return false;
    const text = servers.saidBy(this.#own.name);
    return text === undefined || pins.isPassed(text);
  }

  async #look(call: ResolvedCall): Promise<Unapproved | undefined> {
    const { policy, pins } = this.#services;
    return await policy.unapproved(this.#own.name) ??
      await unpinned(call, { pins, identity: () => this.#identity() });
  }
}

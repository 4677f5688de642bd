/**
 * Finds servers that the cloud runs, and their approvals.
 *
 * @module
 */

import type { PmlError } from "../../core/errors.ts";
import type { Unapproved } from "../../policy/server_identity.ts";
import { getToolRouting, isListedLocal } from "../cloud/routing.ts";
import { CLOUD, CLOUD_URL } from "../cloud/kind.ts";
import { kindOf } from "../kinds.ts";
import type { FoundServer } from "../host.ts";
import type { SourceFinder, SourceServices } from "../source.ts";
import { NameApproval } from "./name_approval.ts";
import { NothingToApprove } from "./nothing_to_approve.ts";

/** Finds servers that the cloud runs. */
export class HubFinder implements SourceFinder {
  readonly #services: SourceServices;

  constructor(services: SourceServices) {
    this.#services = services;
  }

  /** Returns undefined, because this source lists no servers. */
  find(): undefined {
    return undefined;
  }

  /**
   * Returns a server that runs in the cloud; undefined if the name does not. If a company's policy
   * forbids the server, each call of it throws that.
   */
  findUnlisted(name: string): FoundServer | undefined {
    if (!this.#runsInCloud(name)) return undefined;
    const { restrictions, cloud } = this.#services.policy.now.config;
    const server = { name, kind: CLOUD.name, url: cloud?.url ?? CLOUD_URL };
    const refusal = restrictions?.company?.forbids(server);
    if (refusal !== undefined) {
      return { approval: new ForbiddenServer(refusal.error), kind: undefined };
    }
    return { approval: new NameApproval(this.#services, true), kind: CLOUD.name };
  }

  #runsInCloud(name: string): boolean {
    const { pins, machine } = this.#services;
    // A name that is pinned to a local server is never sent to the cloud, even if that server is
    // missing now.
    const pinned = pins.pinOf(name);
    // guard: pinned-here
    if (pinned !== undefined && !kindOf(pinned).isInCloud) return false;
    // The list of the hub only adds names: servers that PML lists as local stay local.
    const isAdded = !isListedLocal(name) && machine.hub.has(name);
    return isAdded || getToolRouting(name) === "cloud";
  }
}

/** The approval of a server that a policy forbids. */
class ForbiddenServer extends NothingToApprove {
  readonly #error: PmlError;

  constructor(error: PmlError) {
    super("a server that a policy forbids");
    this.#error = error;
  }

  override findUnapproved(): Promise<Unapproved | undefined> {
    return Promise.reject(this.#error);
  }
}

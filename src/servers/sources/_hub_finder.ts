/**
 * Finds names that the cloud runs, and their approval.
 *
 * @module
 */

import type { PmlError } from "../../core/errors.ts";
import type { Unapproved } from "../../policy/server_identity.ts";
import { getToolRouting, isListedLocal } from "../cloud/routing.ts";
import { CLOUD, CLOUD_URL } from "../cloud/kind.ts";
import { kindOf } from "../kinds.ts";
import type { FoundServer, SourceFinder, SourceServices } from "../source.ts";
import { NameApproval } from "./name_approval.ts";
import { NothingToApprove } from "./nothing_to_approve.ts";

/** Finds names that the cloud runs. */
export class HubFinder implements SourceFinder {
  readonly #services: SourceServices;

  /** Takes the services. */
  constructor(services: SourceServices) {
    this.#services = services;
  }

  /** Returns undefined: no server is listed. */
  find(): undefined {
    return undefined;
  }

  /** Returns a server of the cloud, unless a policy of a company forbids it. */
  findUnlisted(name: string): FoundServer | undefined {
    if (!this.#runsInCloud(name)) return undefined;
    const { narrowing, cloud } = this.#services.policy.now.config;
    const server = { name, kind: CLOUD.name, url: cloud?.url ?? CLOUD_URL };
    const refusal = narrowing?.company?.forbids(server);
    if (refusal !== undefined) {
      return { approval: new ForbiddenServer(refusal.error), kind: undefined };
    }
    return { approval: new NameApproval(this.#services, true), kind: CLOUD.name };
  }

  #runsInCloud(name: string): boolean {
    const { pins, machine } = this.#services;
    // A name that was pinned to run here is not sent to the cloud, even if it is not available now.
    const pinned = pins.pinOf(name);
    // guard: pinned-here
    if (pinned !== undefined && !kindOf(pinned).isInCloud) return false;
    // The list of the hub adds names, and takes none from this machine.
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

  override unapproved(): Promise<Unapproved | undefined> {
    return Promise.reject(this.#error);
  }
}

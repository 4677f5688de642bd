/**
 * The capabilities that the user saved, by their namespaces.
 *
 * @module
 */

import type { Approval } from "../known_server.ts";
import { CAPABILITY } from "../capability/kind.ts";
import { listingOf } from "../listing.ts";
import type { FoundServer } from "../host.ts";
import type {
  ServerListing,
  ServerSource,
  SourceFinder,
  SourceHost,
  SourceServices,
} from "../source.ts";

/** Lists the namespaces of saved capabilities. */
export class CapabilitySource implements ServerSource {
  readonly name = "private";
  readonly isShipped = false;
  readonly isFetched = false;
  readonly #host: SourceHost;

  /** The host has the saved capabilities. */
  constructor(host: SourceHost) {
    this.#host = host;
  }

  /** Returns a server for each namespace. */
  list(): readonly ServerListing[] {
    return [...this.#host.savedCapabilities?.namespaces ?? []].map(([name, definition]) =>
      listingOf(this, { name, kind: CAPABILITY.name, definition })
    );
  }

  /**
   * Opens the finder, and loads the code of the approval. If a capability is not saved, this code
   * looks it up in registries.
   */
  async finder(services: SourceServices): Promise<SourceFinder> {
    const { NamespaceApproval } = await import("./name_approval.ts");
    return new CapabilityFinder(new NamespaceApproval(services));
  }
}

/** Finds the approval of saved capabilities. */
class CapabilityFinder implements SourceFinder {
  readonly #approval: Approval;

  constructor(approval: Approval) {
    this.#approval = approval;
  }

  find({ kind }: ServerListing): FoundServer {
    return { approval: this.#approval, kind };
  }
}

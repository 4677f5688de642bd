/**
 * The source of servers that run in the cloud according to the lists of PML and of the hub.
 *
 * @module
 */

import type { ServerListing, ServerSource, SourceFinder, SourceServices } from "../source.ts";

/** Finds names that no other source lists. */
export class HubSource implements ServerSource {
  readonly name = "cloud";
  readonly isShipped = false;
  readonly isFetched = false;
  readonly findsUnlisted = true;

  /** Returns no servers: a server in the cloud is found when it is called. */
  list(): readonly ServerListing[] {
    return [];
  }

  /** Opens the finder, and loads its code. */
  async finder(services: SourceServices): Promise<SourceFinder> {
    const { HubFinder } = await import("./_hub_finder.ts");
    return new HubFinder(services);
  }
}

/**
 * The servers and capabilities of registries that the user approved in this workspace.
 *
 * @module
 */

import { MODULE } from "../module/kind.ts";
import { listingOf } from "../listing.ts";
import type {
  ActionListing,
  ServerListing,
  ServerSource,
  SourceFinder,
  SourceHost,
  SourceServices,
} from "../source.ts";

/** The kind of an entry whose manifest is not loaded. It is a guess: most entries are modules. */
const UNLOADED = { kind: MODULE.name };

/** Lists approved servers of registries, also servers whose entries have changed. */
export class RegistrySource implements ServerSource {
  readonly name = "registry";
  readonly isShipped = false;
  readonly isFetched = true;
  readonly #host: SourceHost;

  /** The host has the approved servers. */
  constructor(host: SourceHost) {
    this.#host = host;
  }

  /** Returns the approved servers. */
  list(): readonly ServerListing[] {
    const { registryServers: approved } = this.#host;
    return (approved?.servers() ?? []).map((name) => {
      const definition = approved?.manifestOf(name);
      const { kind } = definition ?? UNLOADED;
      const listing = listingOf(this, { name, kind, definition });
      return { ...listing, whyBlocked: () => approved?.whyBlocked(name) };
    });
  }

  /** Returns the approved capabilities. */
  actions(): readonly ActionListing[] {
    const { registryServers: approved } = this.#host;
    return (approved?.capabilities() ?? []).map((whole) => {
      const [namespace = "", action = ""] = whole.split(/:(.*)/s);
      const definition = approved?.manifestOf(whole);
      const { kind } = definition ?? UNLOADED;
      const listing = listingOf(this, { name: namespace, kind, definition });
      return {
        namespace,
        action,
        listing: { ...listing, whyBlocked: () => approved?.whyBlocked(whole) },
      };
    });
  }

  /** Opens the finder of approved servers, and loads the code that looks up names in registries. */
  async finder(services: SourceServices): Promise<SourceFinder> {
    const [{ RegistryFinder }, registries] = await Promise.all([
      import("./_registry_finder.ts"),
      services.registries(),
    ]);
    return new RegistryFinder(services, registries);
  }
}

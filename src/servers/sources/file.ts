/**
 * The servers that files define: the user's own file, and the file of the workspace.
 *
 * @module
 */

import type { ServerDefinition } from "../kind.ts";
import { listingOf } from "../listing.ts";
import type {
  ServerListing,
  ServerSource,
  SourceFinder,
  SourceHost,
  SourceServices,
} from "../source.ts";
import { whyUntrusted } from "../workspace_code.ts";

/** Lists the servers of trusted files. */
export class FileSource implements ServerSource {
  readonly name = "private";
  readonly isShipped = false;
  readonly isFetched = false;
  /** The facts that it lists from. */
  protected readonly host: SourceHost;

  /** Takes the policy, which has the definitions. */
  constructor(host: SourceHost) {
    this.host = host;
  }

  /** Returns a server for each definition. */
  list(): readonly ServerListing[] {
    return this.definitions().map((own) => this.#listing(own));
  }

  /** Loads the finder. */
  async finder(services: SourceServices): Promise<SourceFinder> {
    const { FileFinder } = await import("./_file_finder.ts");
    return new FileFinder(services);
  }

  /** Returns the definitions. */
  protected definitions(): readonly ServerDefinition[] {
    return this.host.policy.now.config.servers;
  }

  #listing(own: ServerDefinition): ServerListing {
    const { name, title, kind, settings } = own;
    const { policy } = this.host;
    return {
      ...listingOf(this, { name, kind, definition: own }),
      title,
      settings,
      blocked: () => policy.blocked(name) ?? whyUntrusted(own, policy),
    };
  }
}

/** Lists the servers of a file that is not trusted. Each call of one asks. */
export class UntrustedFileSource extends FileSource {
  /** Returns the definitions that no policy of a company forbids. */
  protected override definitions(): readonly ServerDefinition[] {
    const { policy } = this.host;
    const { servers = [] } = policy.now.loaded.file ?? {};
    return servers.filter(({ name }) => policy.forbidden(name) === undefined);
  }
}

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
  /** The policy, from which the servers are listed, and other services. */
  protected readonly host: SourceHost;

  /** The policy of the host contains the definitions. */
  constructor(host: SourceHost) {
    this.host = host;
  }

  /** Returns a server for each definition. */
  list(): readonly ServerListing[] {
    return this.definitions().map((definition) => this.#listing(definition));
  }

  /** Opens the finder, and loads its code. */
  async finder(services: SourceServices): Promise<SourceFinder> {
    const { FileFinder } = await import("./_file_finder.ts");
    return new FileFinder(services);
  }

  /** Returns the definitions. */
  protected definitions(): readonly ServerDefinition[] {
    return this.host.policy.now.config.servers;
  }

  #listing(definition: ServerDefinition): ServerListing {
    const { name, title, kind, settings } = definition;
    const { policy } = this.host;
    return {
      ...listingOf(this, { name, kind, definition }),
      title,
      settings,
      whyBlocked: () => policy.whyBlocked(name) ?? whyUntrusted(definition, policy),
    };
  }
}

/**
 * Lists the servers of an untrusted file. Each call of such a server asks the user to trust the
 * file.
 */
export class UntrustedFileSource extends FileSource {
  /** Returns the definitions that the company's policy does not forbid. */
  protected override definitions(): readonly ServerDefinition[] {
    const { policy } = this.host;
    const { servers = [] } = policy.now.loaded.file ?? {};
    return servers.filter(({ name }) => policy.whyForbidden(name) === undefined);
  }
}

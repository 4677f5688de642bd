/**
 * The servers that ship with PML.
 *
 * @module
 */

import { MODULE } from "../module/kind.ts";
import { listingOf } from "../listing.ts";
import type {
  ServerListing,
  ServerSource,
  SourceFinder,
  SourceHost,
  SourceServices,
} from "../source.ts";

/** The definition of all built-ins: always the same object, because they never change. */
const SHIPPED = {};

/** Lists the servers that ship with PML. */
export class BuiltinSource implements ServerSource {
  readonly name = "builtin";
  readonly isShipped = true;
  readonly isFetched = false;
  readonly #host: SourceHost;

  /** The host has the names of the built-ins. */
  constructor(host: SourceHost) {
    this.#host = host;
  }

  /** Returns every built-in. */
  list(): readonly ServerListing[] {
    return [...this.#host.builtins].map((name) =>
      listingOf(this, { name, kind: MODULE.name, definition: SHIPPED })
    );
  }

  /** Opens the finder, and loads the code of the built-ins. */
  async finder(services: SourceServices): Promise<SourceFinder> {
    const [{ BuiltinFinder }, modules] = await Promise.all([
      import("./_builtin_finder.ts"),
      services.builtins(),
    ]);
    return new BuiltinFinder(modules, services.policy);
  }
}

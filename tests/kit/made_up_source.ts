/**
 * A made-up source of servers, for tests: a shelf with one module, which the user approves once.
 *
 * @module
 */

import type { Unapproved } from "../../src/policy/server_identity.ts";
import type { ModuleUse } from "../../src/servers/module/loader.ts";
import { MODULE } from "../../src/servers/module/kind.ts";
import { listingOf } from "../../src/servers/listing.ts";
import type { FoundServer } from "../../src/servers/host.ts";
import type { ServerListing, ServerSource, SourceFinder } from "../../src/servers/source.ts";
import { NothingToApprove } from "../../src/servers/sources/nothing_to_approve.ts";

const DEFINITION = {};
const META = { name: "poet", tools: { recite: { description: "Recites a poem" } } };
const CODE = new TextEncoder().encode(`export const recite = () => "roses are red";`);

/** Lists the servers of the shelf. */
export class ShelfSource implements ServerSource {
  readonly name = "shelf";
  readonly isShipped = false;
  readonly isFetched = false;

  /** Returns the one server. */
  list(): readonly ServerListing[] {
    return [listingOf(this, { name: META.name, kind: MODULE.name, definition: DEFINITION })];
  }

  /** Returns the finder. */
  finder(): Promise<SourceFinder> {
    return Promise.resolve(new ShelfFinder());
  }
}

class ShelfFinder implements SourceFinder {
  readonly #approval = new ShelfApproval("a module of the shelf");

  find({ name, kind }: ServerListing): FoundServer {
    const use: ModuleUse = {
      source: { kind: "builtin", name, code: CODE, meta: META },
      expectedHash: undefined,
      grants: undefined,
    };
    return { approval: this.#approval, kind, use: () => use };
  }
}

class ShelfApproval extends NothingToApprove {
  #isApproved = false;

  override findUnapproved(): Unapproved | undefined {
    if (this.#isApproved) return undefined;
    return {
      code: "APPROVAL_REQUIRED",
      facts: ["Yes lets PML use the shelf"],
      accept: () => Promise.resolve(void (this.#isApproved = true)),
    };
  }
}

/**
 * Creates listings of servers, for sources and for the directory.
 *
 * @module
 */

import { findKind } from "./kinds.ts";
import type { Listing } from "./known_server.ts";
import type { Origin } from "./server.ts";

/** Returns the listing of a server: the given facts, the properties of its kind, and defaults. */
export function listingOf<O extends Origin>(
  origin: O,
  from: Pick<Listing, "name" | "kind" | "definition">,
): Listing & { readonly origin: O } {
  const { notifies = true, checksItself = true } = findKind(from.kind) ?? {};
  return {
    ...from,
    origin,
    title: undefined,
    settings: undefined,
    reportsChanges: notifies,
    checksItself,
    whyBlocked: () => undefined,
  };
}

/**
 * Creates the listings of sources and of the directory.
 *
 * @module
 */

import { kindNamed } from "./kinds.ts";
import type { Listing } from "./known_server.ts";
import type { Origin } from "./server.ts";

/** Returns the listing of a server, with the traits of its kind. */
export function listingOf<O extends Origin>(
  origin: O,
  from: Pick<Listing, "name" | "kind" | "definition">,
): Listing & { readonly origin: O } {
  const { notifies = true, checksItself = true } = kindNamed(from.kind) ?? {};
  return {
    ...from,
    origin,
    title: undefined,
    settings: undefined,
    tells: notifies,
    checksItself,
    blocked: () => undefined,
  };
}

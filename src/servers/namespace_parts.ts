/**
 * Puts capabilities of registries next to the server, or the saved capabilities, of their namespace.
 *
 * @module
 */

import { MODULE } from "./module/kind.ts";
import { listingOf } from "./listing.ts";
import type {
  ActionListing,
  NamespaceDefinition,
  NamespaceListing,
  ServerListing,
} from "./source.ts";

/** Keeps the parts of each namespace as long as they are the same. */
export class NamespaceParts {
  readonly #parts = new Map<string, NamespaceDefinition>();

  /** Returns the servers without a namespace of their name, and all namespaces. */
  with(
    listed: readonly ServerListing[],
    all: readonly ActionListing[],
  ): readonly (ServerListing | NamespaceListing)[] {
    if (all.length === 0) return listed;
    const spaces = Map.groupBy(all, ({ namespace }) => namespace);
    const made = [...spaces].map(([name, actions]) =>
      this.#namespace(name, {
        base: listed.find((one) => one.name === name),
        actions,
      })
    );
    return [...listed.filter(({ name }) => !spaces.has(name)), ...made];
  }

  #namespace(name: string, now: NamespaceDefinition): NamespaceListing {
    const before = this.#parts.get(name);
    const definition = before !== undefined && isSame(before, now) ? before : now;
    this.#parts.set(name, definition);
    const { base, actions: [first] } = definition;
    const { origin } = base ?? first?.listing ?? {};
    if (origin === undefined) throw new Error(`the namespace ${name} is empty`);
    const listing = listingOf(origin, { name, kind: MODULE.name, definition });
    const tells = base?.tells ?? false;
    return { ...listing, kind: "namespace", entry: "namespace", definition, tells };
  }
}

function isSame(one: NamespaceDefinition, other: NamespaceDefinition): boolean {
  const look = ({ base, actions }: NamespaceDefinition) => [
    base?.definition,
    base?.kind,
    ...actions.flatMap(({ action, listing }) => [action, listing.definition]),
  ];
  const [was, is] = [look(one), look(other)];
  return was.length === is.length && was.every((each, at) => each === is[at]);
}

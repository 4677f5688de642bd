/**
 * Creates namespaces. A namespace combines capabilities of registries, such as `fs:read_json`, with
 * the server `fs`, or with the capabilities of this namespace that the user saved.
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

/**
 * Creates namespaces. Their definition stays the same object until a part of the namespace changes.
 */
export class NamespaceParts {
  readonly #parts = new Map<string, NamespaceDefinition>();

  /** Returns all namespaces, and the servers that belong to no namespace. */
  with(
    listed: readonly ServerListing[],
    capabilities: readonly ActionListing[],
  ): readonly (ServerListing | NamespaceListing)[] {
    if (capabilities.length === 0) return listed;
    const spaces = Map.groupBy(capabilities, ({ namespace }) => namespace);
    const namespaces = [...spaces].map(([name, actions]) =>
      this.#namespace(name, {
        base: listed.find((listing) => listing.name === name),
        actions,
      })
    );
    return [...listed.filter(({ name }) => !spaces.has(name)), ...namespaces];
  }

  #namespace(name: string, now: NamespaceDefinition): NamespaceListing {
    const before = this.#parts.get(name);
    const definition = before !== undefined && isSame(before, now) ? before : now;
    this.#parts.set(name, definition);
    const { base, actions: [first] } = definition;
    const { origin } = base ?? first?.listing ?? {};
    if (origin === undefined) throw new Error(`the namespace ${name} is empty`);
    const listing = listingOf(origin, { name, kind: MODULE.name, definition });
    const reportsChanges = base?.reportsChanges ?? false;
    return { ...listing, kind: "namespace", entry: "namespace", definition, reportsChanges };
  }
}

function isSame(one: NamespaceDefinition, other: NamespaceDefinition): boolean {
  const factsOf = ({ base, actions }: NamespaceDefinition) => [
    base?.definition,
    base?.kind,
    ...actions.flatMap(({ action, listing }) => [action, listing.definition]),
  ];
  const [was, is] = [factsOf(one), factsOf(other)];
  return was.length === is.length && was.every((fact, index) => fact === is[index]);
}

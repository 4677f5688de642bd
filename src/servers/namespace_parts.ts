/**
 * Puts capabilities of registries beside what else stands behind the name of their namespace.
 *
 * @module
 */

import type { Listing } from "./known_server.ts";
import type { Manifest } from "./manifest.ts";
import { MODULE } from "./module/kind.ts";

/** A capability of a registry, by its action. */
export interface Action {
  readonly action: string;
  readonly listing: Listing;
}

/** What stands behind one name: the same object as long as each part is the same. */
export interface Parts {
  /** The server of this name, or what the person saved. Its tools win. */
  readonly base: Listing | undefined;
  readonly actions: readonly Action[];
}

/** What is known of the capabilities of registries. */
export interface ActionsKnown {
  /** Their whole names. */
  readonly actions: readonly string[];
  readonly manifestOf: (name: string) => Manifest | undefined;
  readonly blocked: (name: string) => string | undefined;
}

/** Keeps the parts of each name as long as they are the same. */
export class NamespaceParts {
  readonly #parts = new Map<string, Parts>();

  /** Returns a list of servers in which namespaces have their capabilities. */
  with(listed: readonly Listing[], known: ActionsKnown): readonly Listing[] {
    const spaces = Map.groupBy(known.actions, (name) => name.split(":", 1)[0] ?? "");
    const made = [...spaces].map(([name, names]) => {
      const base = listed.find((one) => one.name === name);
      const actions = names.map((whole) => ({
        action: whole.slice(name.length + 1),
        listing: actionListing(whole, { ...known, name }),
      }));
      const before = this.#parts.get(name);
      const definition = before !== undefined && isSame(before, { base, actions })
        ? before
        : { base, actions };
      this.#parts.set(name, definition);
      const { tells = false, origin = "registry" } = base ?? {};
      return { ...module(name), origin, kind: "namespace", definition, tells };
    });
    return [...listed.filter(({ name }) => !spaces.has(name)), ...made];
  }
}

function actionListing(
  whole: string,
  { name, manifestOf, blocked }: ActionsKnown & { readonly name: string },
): Listing {
  const definition = manifestOf(whole);
  return { ...module(name), definition, blocked: () => blocked(whole) };
}

function module(name: string): Listing {
  return {
    name,
    kind: MODULE.name,
    origin: "registry",
    title: undefined,
    definition: undefined,
    settings: undefined,
    tells: false,
    checksArguments: false,
    blocked: () => undefined,
  };
}

function isSame(one: Parts, other: Parts): boolean {
  const look = ({ base, actions }: Parts) => [
    base?.definition,
    base?.kind,
    ...actions.flatMap(({ action, listing }) => [action, listing.definition]),
  ];
  const [was, is] = [look(one), look(other)];
  return was.length === is.length && was.every((each, at) => each === is[at]);
}

/**
 * A made-up kind of servers, for tests: one that speaks a phrase.
 *
 * @module
 */

import type { Manifest } from "../../../src/core/manifest.ts";
import { list, object } from "../../../src/core/wanted.ts";
import type { ServerDefinition, ServerKind } from "../../../src/servers/kind.ts";

/** A server that speaks. */
export interface SpokenDefinition extends ServerDefinition {
  readonly phrase: string;
  /** The rooms in which it is heard. */
  readonly rooms: readonly string[];
}

/** The manifest of a server that speaks. */
interface SpokenManifest extends Manifest {
  readonly phrase: string;
}

/** Servers that speak. */
export const SPOKEN: ServerKind<SpokenManifest, SpokenDefinition> = {
  name: "spoken",
  pinnedAs: "spoken",
  isSandboxed: false,
  isOnline: false,
  notifies: false,
  checksArguments: true,
  definition: {
    types: ["spoken"],
    forms: ({ type, filled, text, beside }) => {
      const keys = { ...type("spoken"), phrase: filled };
      const rooms = list(text, "names of rooms");
      return { own: {}, clients: { spoken: object(keys, { rooms, ...beside }) } };
    },
    read: ({ json, names, settings, limits }) => {
      const { phrase, rooms = [] } = json as Pick<SpokenDefinition, "phrase" | "rooms">;
      return { ...names, phrase, rooms, ...settings, ...limits };
    },
    describe: ({ phrase, rooms }, { given }) =>
      `a server that is heard in ${rooms.join(", ")}${given("phrase", { phrase })}`,
    identity: ({ phrase }) => ({ command: ["speak", phrase] }),
    texts: ({ phrase }) => ({ env: { phrase } }),
    policyWords: () => ["unconfined"],
  },
  manifest: {
    text: { title: "speaker", summary: "It speaks." },
    read: ({ entry, plainTexts }) => ({ phrase: plainTexts("phrase", entry.phrase).join(" ") }),
    templates: ({ phrase }) => [phrase],
    facts: ({ phrase }) => ({ command: ["speak", phrase] }),
    definition: ({ phrase }) => ({ phrase, rooms: [] }),
    lines: (_, { describe }) => [describe()],
  },
};

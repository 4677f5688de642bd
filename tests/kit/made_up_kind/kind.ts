/**
 * A made-up kind of servers, for tests: a server that speaks a phrase.
 *
 * @module
 */

import type { Manifest } from "../../../src/servers/manifest.ts";
import { list, object } from "../../../src/core/value_schema.ts";
import type { ServerDefinition, ServerKind } from "../../../src/servers/kind.ts";

/** A server that speaks. */
export interface SpokenDefinition extends ServerDefinition {
  readonly phrase: string;
  /** The channels of its speech. */
  readonly channels: readonly string[];
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
  checksItself: true,
  definition: {
    types: ["spoken"],
    forms: ({ type, nonEmpty: filled, text, ignored: beside }) => {
      const keys = { ...type("spoken"), phrase: filled };
      const channels = list(text, "names of channels");
      return { own: {}, clients: { spoken: object(keys, { channels, ...beside }) } };
    },
    read: ({ json, names, settings, limits }) => {
      const { phrase, channels = [] } = json as Pick<SpokenDefinition, "phrase" | "channels">;
      return { ...names, phrase, channels, ...settings, ...limits };
    },
    describe: ({ phrase, channels }, { describeValues }) =>
      `a server that is heard on ${channels.join(", ")}${describeValues("phrase", { phrase })}`,
    identity: ({ phrase }) => ({ command: ["speak", phrase] }),
    texts: ({ phrase }) => ({ env: { phrase } }),
    policyWords: () => ["unconfined"],
  },
  manifest: {
    text: { title: "speaker", summary: "It speaks." },
    read: ({ entry, plainTexts }) => ({ phrase: plainTexts("phrase", entry.phrase).join(" ") }),
    templates: ({ phrase }) => [phrase],
    facts: ({ phrase }) => ({ command: ["speak", phrase] }),
    definition: ({ phrase }) => ({ phrase, channels: [] }),
    lines: (_, { describe }) => [describe()],
  },
};

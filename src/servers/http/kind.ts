/**
 * The kind of servers at a URL, which are reached over HTTP.
 *
 * @module
 */

import { isHeader } from "../../core/entry_words.ts";
import { visible } from "../../core/json.ts";
import type { Manifest } from "../../core/manifest.ts";
import type { ServerKind, Texts } from "../kind.ts";

/** The manifest of a server that is reached over HTTP. */
export interface HttpManifest extends Manifest {
  readonly url: string;
  /** The headers of each request. `${NAME}` is replaced when a request is sent. */
  readonly headers: Texts;
}

/** Servers at a URL. */
export const HTTP: ServerKind<HttpManifest> = {
  name: "http",
  pinnedAs: "http",
  isSandboxed: false,
  isOnline: true,
  manifest: {
    read: (reader) => ({
      url: reader.address("url", reader.entry.url),
      headers: reader.values("headers", reader.entry.headers, isHeader),
    }),
    templates: ({ headers }) => Object.values(headers),
    facts: ({ url, headers }) => ({
      url,
      headers: Object.entries(headers).map(([name, value]) => `${name}=${value}`),
    }),
    definition: ({ url, headers }) => ({ url, headers }),
    lines: ({ headers }, { describe }) => [
      describe({ headers: {} }),
      ...Object.entries(headers).map(([name, value]) =>
        visible(`It is sent the header ${name}: ${value}`, Infinity)
      ),
    ],
  },
};

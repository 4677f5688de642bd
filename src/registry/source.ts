/**
 * The common interface of registries with different APIs.
 *
 * @module
 */

import type { Progress } from "../protocol/call.ts";
import type { JsonObject } from "../core/json.ts";
import type { CodeManifest } from "../servers/manifest.ts";
import type { Fqdn } from "./fqdn.ts";

/** The result of looking up one name. */
export type Lookup =
  | {
    readonly kind: "found";
    /** The entry, in the JSON of PML's own API. `parseManifest` parses it. */
    readonly json: JsonObject;
    /** The tag for the next request, so that an unchanged entry is not sent again. */
    readonly etag: string | undefined;
  }
  | { readonly kind: "unchanged" }
  | { readonly kind: "missing" };

/** One page of the catalog. */
export interface CatalogPage {
  /** Entries in the JSON of PML's own API, not checked yet. */
  readonly items: readonly unknown[];
  readonly next: string | undefined;
}

/**
 * A registry. Its functions reject with REGISTRY_OFFLINE if it cannot be reached, and with
 * REGISTRY_BAD_RESPONSE if its answer cannot be used.
 */
export interface RegistryReader {
  /** The URL as configured. */
  readonly url: string;
  /** Looks up a name. With the `etag` of a cached entry, an unchanged entry is not sent again. */
  manifest(name: Fqdn, signal: AbortSignal, etag?: string): Promise<Lookup>;
  /** Returns the code of a module as sent. The caller compares its hash. */
  code(
    manifest: CodeManifest,
    signal: AbortSignal,
    onProgress?: (progress: Progress) => void,
  ): Promise<Uint8Array>;
  /** Returns a page of the catalog: the first page, or the page at a cursor. */
  catalog(signal: AbortSignal, cursor?: string): Promise<CatalogPage>;
}

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

/** The options of one request. */
export interface LookOptions {
  readonly signal: AbortSignal;
  readonly etag?: string | undefined;
}

/**
 * A registry. Its functions reject with REGISTRY_OFFLINE if it cannot be reached, and with
 * REGISTRY_BAD_RESPONSE if its answer cannot be used.
 */
export interface RegistryReader {
  /** The URL as configured. */
  readonly url: string;
  manifest(name: Fqdn, options: LookOptions): Promise<Lookup>;
  /** Returns the code of a module as sent. The caller compares its hash. */
  code(
    manifest: CodeManifest,
    options: LookOptions & { readonly onProgress?: ((progress: Progress) => void) | undefined },
  ): Promise<Uint8Array>;
  catalog(options: LookOptions & { readonly cursor?: string | undefined }): Promise<CatalogPage>;
}

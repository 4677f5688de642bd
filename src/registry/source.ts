/**
 * A place where servers are looked up, whatever format it speaks.
 *
 * @module
 */

import type { Progress } from "../core/call.ts";
import type { JsonObject } from "../core/json.ts";
import type { DenoManifest } from "../core/manifest.ts";
import type { Fqdn } from "./fqdn.ts";

/** What came of a look at one name. */
export type Lookup =
  | {
    readonly kind: "found";
    /** The entry in the JSON of PML's own contract; `parseManifest` reads it. */
    readonly json: JsonObject;
    /** What to ask with next time, so that an unchanged entry is not sent again. */
    readonly etag: string | undefined;
  }
  | { readonly kind: "unchanged" }
  | { readonly kind: "missing" };

/** A part of the catalog. */
export interface CatalogPage {
  /** Entries in the JSON of PML's own contract, not looked at yet. */
  readonly items: readonly unknown[];
  readonly next: string | undefined;
}

/** How one look is made. */
export interface LookOptions {
  readonly signal: AbortSignal;
  readonly etag?: string | undefined;
}

/** A registry. It throws REGISTRY_OFFLINE where it cannot be reached, REGISTRY_BAD_RESPONSE else. */
export interface Source {
  /** Its address, as it was configured. */
  readonly url: string;
  readonly manifest: (name: Fqdn, options: LookOptions) => Promise<Lookup>;
  /** Gives the code of a module, as it was sent: who asks for it compares its hash. */
  readonly code: (
    manifest: DenoManifest,
    options: LookOptions & { readonly onProgress?: ((progress: Progress) => void) | undefined },
  ) => Promise<Uint8Array>;
  readonly catalog: (
    options: LookOptions & { readonly cursor?: string | undefined },
  ) => Promise<CatalogPage>;
}

/**
 * Chooses the API that a registry has, by its URL.
 *
 * @module
 */

import type { Fetch } from "../core/fetch.ts";
import { contractSource } from "./_contract.ts";
import { Official } from "./_official.ts";
import type { RegistrySource } from "./source.ts";

/** The options of a source. */
export interface SourceOptions {
  readonly fetch: Fetch;
  /** Returns the token for this registry. It is sent nowhere else. */
  readonly token?: () => string | undefined;
  /** Returns whether the registry is the hub of `cloud.url`, whose token is PML_API_KEY. */
  readonly isHub?: () => boolean;
}

/** Returns the source for a registry's URL. */
export function sourceOf(url: string, options: SourceOptions): RegistrySource {
  return url.startsWith("mcp+") ? new Official(url, options) : contractSource(url, options);
}

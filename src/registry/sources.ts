/**
 * Finds the format that a registry speaks.
 *
 * @module
 */

import type { Fetch } from "../core/fetch.ts";
import { contractSource } from "./_contract.ts";
import { Official } from "./_official.ts";
import type { Source } from "./source.ts";

/** What asking a registry needs. */
export interface SourceOptions {
  readonly fetch: Fetch;
  /** What lets its caller in; it goes to this registry alone. */
  readonly token?: () => string | undefined;
}

/** Makes the registry of an address. */
export function sourceOf(url: string, options: SourceOptions): Source {
  return url.startsWith("mcp+") ? new Official(url, options) : contractSource(url, options);
}

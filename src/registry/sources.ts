/**
 * Chooses the API of a registry by its URL.
 *
 * @module
 */

import { ContractSource } from "./_contract.ts";
import { Official } from "./_official.ts";
import type { ClientOptions } from "./client.ts";
import type { RegistrySource } from "./source.ts";

/** Returns the source for a registry's URL. */
export function sourceOf(url: string, options: ClientOptions): RegistrySource {
  return url.startsWith("mcp+") ? new Official(url, options) : new ContractSource(url, options);
}

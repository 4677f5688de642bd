/**
 * Chooses the API of a registry by its URL.
 *
 * @module
 */

import { ContractSource } from "./_contract.ts";
import { Official } from "./_official.ts";
import type { RegistryClientOptions } from "./client.ts";
import type { RegistryReader } from "./source.ts";

/** Returns the source for a registry's URL. */
export function sourceOf(url: string, options: RegistryClientOptions): RegistryReader {
  return url.startsWith("mcp+") ? new Official(url, options) : new ContractSource(url, options);
}

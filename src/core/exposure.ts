/**
 * Which tools a client is shown: the words that files and the gateway have for it.
 *
 * @module
 */

import type { Pattern } from "./pattern.ts";

/** What `tools/list` shows. */
export type Exposure = "meta_only" | "semantic" | "hybrid" | "full_proxy";

/** What the exposure `hybrid` lists; every other exposure is a choice of these. */
export interface HybridOptions {
  /** Whether the meta-tools are listed. */
  readonly exposeMetaTools: boolean;
  /** Whether tools of servers are listed. */
  readonly exposeUnderlyingTools: boolean;
  /** Whether only tools are listed that fit the query or the intent; else the first ones are. */
  readonly applySemanticFilter: boolean;
  /** How many tools of servers are listed; the whitelist counts, and is never cut. */
  readonly maxUnderlyingTools: number;
  /** How well a tool has to fit, as a part of how well the best one does. */
  readonly semanticThreshold: number;
  /** What the list of tools of servers may cost, in estimated tokens. */
  readonly maxTokens: number | undefined;
  /** Names or patterns of tools that are always listed. */
  readonly whitelistedTools: readonly Pattern[];
  /** Names or patterns of tools that are never listed. */
  readonly blacklistedTools: readonly Pattern[];
}

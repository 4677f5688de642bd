/**
 * The options that decide which tools a client sees in `tools/list`.
 *
 * @module
 */

import type { Pattern } from "../core/pattern.ts";

/** A tool of the gateway itself. */
export type MetaTool =
  | "search"
  | "schema"
  | "call"
  | "batch"
  | "execute_workflow"
  | "execute_code";

/** All meta-tools. */
export const META_TOOLS: readonly MetaTool[] = [
  "search",
  "schema",
  "call",
  "batch",
  "execute_workflow",
  "execute_code",
];

/** The maximum number of queries of one `search`: each is a step of a task. */
export const QUERIES_MAX = 8;

/** The content of `tools/list`. */
export type Exposure = "meta_only" | "semantic" | "hybrid" | "full_proxy";

/** All exposures, the smallest first. */
export const EXPOSURES: readonly Exposure[] = ["meta_only", "semantic", "hybrid", "full_proxy"];

/** The options of the exposure `hybrid`. Every other exposure is a fixed choice of these. */
export interface HybridOptions {
  /** Whether the meta-tools are listed. */
  readonly exposeMetaTools: boolean;
  /** Whether tools of servers are listed. */
  readonly exposeUnderlyingTools: boolean;
  /**
   * Whether only tools that fit the query or the intent are listed; otherwise the first tools are.
   */
  readonly applySemanticFilter: boolean;
  /** The maximum number of tools of servers. Whitelisted tools count, but are never left out. */
  readonly maxUnderlyingTools: number;
  /** How well a tool must fit: a part, from 0 to 1, of the score of the best tool. */
  readonly semanticThreshold: number;
  /** The maximum number of tokens (estimated) of the servers' tools in the list. */
  readonly maxTokens: number | undefined;
  /** Names or patterns of tools that are always listed. */
  readonly whitelistedTools: readonly Pattern[];
  /** Names or patterns of tools that are never listed. */
  readonly blacklistedTools: readonly Pattern[];
}

/** Returns the meta-tools that `tools/list` has. */
export function listedMetaTools(
  { exposure, hybrid, metaTools }: {
    readonly exposure: Exposure;
    readonly hybrid: Pick<HybridOptions, "exposeMetaTools">;
    readonly metaTools: readonly MetaTool[];
  },
): readonly MetaTool[] {
  const isHidden = exposure === "full_proxy" ||
    exposure === "hybrid" && !hybrid.exposeMetaTools;
  return isHidden ? [] : metaTools;
}

/**
 * Which tools a client sees, as `gateway` of a configuration says it.
 *
 * @module
 */

import type { Exposure, HybridOptions } from "../core/exposure.ts";
import { defined, quoted } from "../core/json.ts";
import { parsePattern } from "../core/pattern.ts";
import { VERSION } from "../core/version.ts";
import { keyOf } from "./limits.ts";

export type { Exposure, HybridOptions } from "../core/exposure.ts";

/** Every exposure, the smallest first. */
export const EXPOSURES: readonly Exposure[] = ["meta_only", "semantic", "hybrid", "full_proxy"];

/** A tool of the gateway itself. */
export type MetaTool = "search" | "schema" | "call" | "batch";

/** What the gateway shows of itself and of the servers behind it. */
export interface GatewayOptions {
  /** What clients are told as the name of this server. */
  readonly name: string;
  /** What clients are told as its version. */
  readonly version: string;
  /** What `tools/list` shows. */
  readonly exposure: Exposure;
  /** What it shows where the exposure is `hybrid`. */
  readonly hybrid: HybridOptions;
  /** The meta-tools that are served. */
  readonly metaTools: readonly MetaTool[];
  /** Whether listed tools bear the name of their server. */
  readonly prefix: boolean;
}

/** What one file says of the gateway; nothing for what it leaves open. */
export interface SaidOfGateway extends Partial<Omit<GatewayOptions, "hybrid">> {
  readonly hybrid?: Partial<HybridOptions>;
}

/** The meta-tools that are served. */
export const META_TOOLS: readonly MetaTool[] = ["search", "schema", "call", "batch"];

/** What `semantic` lists beside the meta-tools: so many tools, that fit so well. */
export const SEMANTIC = { most: 20, threshold: 0.7 };

/** What holds where nobody says otherwise. */
export const DEFAULT_GATEWAY: GatewayOptions = {
  name: "pml",
  version: VERSION,
  exposure: "meta_only",
  hybrid: {
    exposeMetaTools: true,
    exposeUnderlyingTools: true,
    applySemanticFilter: true,
    maxUnderlyingTools: 50,
    semanticThreshold: 0.6,
    maxTokens: undefined,
    whitelistedTools: [],
    blacklistedTools: [],
  },
  metaTools: META_TOOLS,
  prefix: true,
};

/** What `gateway` of a file looks like once its grammar was checked. */
export interface GatewaySection {
  readonly name?: string;
  readonly version?: string;
  readonly tools_exposure?: string;
  readonly meta_tools?: readonly string[];
  readonly prefix?: boolean;
  readonly hybrid?: {
    readonly expose_meta_tools?: boolean;
    readonly expose_underlying_tools?: boolean;
    readonly apply_semantic_filter?: boolean;
    readonly max_underlying_tools?: number;
    readonly semantic_threshold?: number;
    readonly max_tokens?: number;
    readonly whitelisted_tools?: readonly string[];
    readonly blacklisted_tools?: readonly string[];
  };
}

/** Reads what a file says of the gateway; nothing for what it leaves open. */
export function gatewayOf(
  { tools_exposure: said, meta_tools: names, hybrid, name, version, prefix }: GatewaySection,
  warn: (said: string) => void,
): SaidOfGateway {
  const exposure = EXPOSURES.find((one) => one === said);
  // An unknown exposure is the one mistake that only warns: the narrowest is served instead.
  if (said !== undefined && exposure === undefined) {
    warn(`the exposure ${quoted(said)} is none of ${EXPOSURES.join(", ")}: "meta_only" is served`);
  }
  if (names?.some((name) => name.startsWith("execute_"))) {
    warn("execute_workflow and execute_code are not served yet");
  }
  return {
    ...(said !== undefined && { exposure: exposure ?? "meta_only" }),
    ...(names && { metaTools: META_TOOLS.filter((name) => names.includes(name)) }),
    ...defined({ name, version, prefix }),
    ...(hybrid && { hybrid: hybridOf(hybrid) }),
  };
}

/** Puts what files say over what holds otherwise, the last one last. */
export function gatewayFrom(...said: readonly (SaidOfGateway | undefined)[]): GatewayOptions {
  const options = said.reduce<Omit<GatewayOptions, "hybrid">>(
    (all, one) => ({ ...all, ...one }),
    DEFAULT_GATEWAY,
  );
  const hybrid = said.reduce<HybridOptions>(
    (all, one) => ({ ...all, ...one?.hybrid }),
    DEFAULT_GATEWAY.hybrid,
  );
  return { ...options, hybrid };
}

/** Takes every option of `hybrid` that is set, with patterns that were read. */
function hybridOf(said: NonNullable<GatewaySection["hybrid"]>): Partial<HybridOptions> {
  const options = Object.keys(DEFAULT_GATEWAY.hybrid).map((name) => {
    const value = Reflect.get(said, keyOf(name));
    return [name, Array.isArray(value) ? value.map(parsePattern) : value];
  });
  return defined(Object.fromEntries(options));
}

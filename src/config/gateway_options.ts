/**
 * The options of `gateway` in a configuration: which tools a client sees.
 *
 * @module
 */

import {
  type Exposure,
  EXPOSURES,
  type HybridOptions,
  META_TOOLS,
  type MetaTool,
} from "./exposure.ts";
import { quoted, withoutUndefined } from "../core/json.ts";
import { parsePattern } from "../core/pattern.ts";
import { VERSION } from "../core/version.ts";
import { defaultsOf } from "../core/value_schema.ts";
import { nameOf } from "./limits.ts";
import { GATEWAY, HYBRID, type UserConfigValues } from "./settings.ts";

export type { Exposure, HybridOptions, MetaTool } from "./exposure.ts";

/** The tools that the gateway shows: its meta-tools, and tools of servers. */
export interface GatewayOptions {
  /** The name of this server for clients. */
  readonly name: string;
  /** The version of this server for clients. */
  readonly version: string;
  /** What `tools/list` shows. */
  readonly exposure: Exposure;
  /** The options of the exposure `hybrid`. */
  readonly hybrid: HybridOptions;
  /** The meta-tools that the gateway serves. */
  readonly metaTools: readonly MetaTool[];
  /** Whether the names of listed tools begin with the name of their server. */
  readonly prefix: boolean;
  /** Whether these names may have dots and 128 characters, as in MCP, which models' APIs refuse. */
  readonly longNames: boolean;
  /** The name of the set of the tools that clients may use; undefined if they may use all. */
  readonly toolset?: string | undefined;
}

/** The gateway options that one file sets. */
export interface GatewayOverrides extends Partial<Omit<GatewayOptions, "hybrid">> {
  readonly hybrid?: Partial<HybridOptions>;
}

/** The limits of the exposure `semantic`: how many tools it lists, and how well they must fit. */
export const SEMANTIC = { most: 20, threshold: 0.7 };

/** The `gateway` section of a file, after the schema checked it. */
export type GatewaySection = NonNullable<UserConfigValues["gateway"]>;

/**
 * Converts the `gateway` section of a file. Options that it does not set are missing in the result.
 */
export function gatewayOptions(
  { tools_exposure: value, meta_tools: names, long_names: longNames, hybrid, ...same }:
    GatewaySection,
  warn: (message: string) => void,
): GatewayOverrides {
  const exposure = EXPOSURES.find((name) => name === value);
  // An unknown exposure is the only mistake that is not an error: PML warns, and uses the narrowest
  // exposure.
  if (value !== undefined && exposure === undefined) {
    const names = EXPOSURES.join(", ");
    warn(`the exposure ${quoted(value)} is none of ${names}; such a value means "meta_only"`);
  }
  return {
    ...(value !== undefined && { exposure: exposure ?? "meta_only" }),
    ...(names && { metaTools: META_TOOLS.filter((name) => names.includes(name)) }),
    ...withoutUndefined({ longNames, ...same }),
    ...(hybrid && { hybrid: hybridOf(hybrid) }),
  };
}

/** Merges the options of files over the defaults. Later files win. */
export function gatewayFrom(
  ...sections: readonly (GatewayOverrides | undefined)[]
): GatewayOptions {
  const options = sections.reduce<Omit<GatewayOptions, "hybrid">>(
    (merged, section) => ({ ...merged, ...section }),
    DEFAULT_GATEWAY,
  );
  const hybrid = sections.reduce<HybridOptions>(
    (merged, section) => ({ ...merged, ...section?.hybrid }),
    DEFAULT_GATEWAY.hybrid,
  );
  return { ...options, hybrid };
}

/** Converts the options of `hybrid` that are set, and parses their patterns. */
function hybridOf(section: NonNullable<GatewaySection["hybrid"]>): Partial<HybridOptions> {
  const options = Object.entries(section).map(([key, value]) => [
    nameOf(key),
    Array.isArray(value) ? value.map((text) => parsePattern(text)) : value,
  ]);
  return withoutUndefined(Object.fromEntries(options));
}

/** The default options. */
export const DEFAULT_GATEWAY: GatewayOptions = {
  version: VERSION,
  ...gatewayOptions({ ...defaultsOf(GATEWAY), hybrid: defaultsOf(HYBRID) }, () => {}),
} as GatewayOptions; // the tables have a default for each other option

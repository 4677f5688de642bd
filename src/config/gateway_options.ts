/**
 * Which tools a client sees, as `gateway` of a configuration says it.
 *
 * @module
 */

import { quoted } from "../core/json.ts";

/** What `tools/list` shows. */
export type Exposure = "meta_only" | "full_proxy";

/** A tool of the gateway itself. */
export type MetaTool = "search" | "schema" | "call" | "batch";

/** What the gateway shows of itself and of the servers behind it. */
export interface GatewayOptions {
  /** What `tools/list` shows. */
  readonly exposure: Exposure;
  /** The meta-tools that are served. */
  readonly metaTools: readonly MetaTool[];
  /** Whether listed tools bear the name of their server. */
  readonly prefix: boolean;
}

/** The meta-tools that are served. */
export const META_TOOLS: readonly MetaTool[] = ["search", "schema", "call", "batch"];

/** What holds where nobody says otherwise. */
export const DEFAULT_GATEWAY: GatewayOptions = {
  exposure: "meta_only",
  metaTools: META_TOOLS,
  prefix: true,
};

/** Reads what a file says of the gateway; nothing for what it leaves open. */
export function gatewayOf(
  said: {
    readonly tools_exposure?: string;
    readonly meta_tools?: readonly string[];
    readonly prefix?: boolean;
  },
  warn: (said: string) => void,
): Partial<GatewayOptions> {
  const { tools_exposure: exposure, meta_tools: names, prefix } = said;
  // An unknown exposure is the one mistake that only warns: the narrowest is served instead.
  const full = exposure === "full_proxy";
  if (exposure !== undefined && !full && exposure !== "meta_only") {
    warn(`the exposure ${quoted(exposure)} is not served: "meta_only" is`);
  }
  if (names?.some((name) => name.startsWith("execute_"))) {
    warn("execute_workflow and execute_code are not served yet");
  }
  return {
    ...(exposure !== undefined && { exposure: full ? "full_proxy" : "meta_only" }),
    ...(names && { metaTools: META_TOOLS.filter((name) => names.includes(name)) }),
    ...(prefix !== undefined && { prefix }),
  };
}

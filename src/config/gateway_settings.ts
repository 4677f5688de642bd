/**
 * What the face to clients is told of the configuration.
 *
 * @module
 */

import type { Config } from "./config.ts";
import { SEMANTIC } from "./gateway_options.ts";

/** Gives what lists of tools and questions to the person depend on. */
export function gatewaySettings({ gateway, intent, limits, channel }: Config) {
  return {
    ...gateway,
    semantic: SEMANTIC,
    intent,
    batchMax: limits.batch,
    approvalMs: limits.approvalMs,
    asksClient: channel === undefined || channel === "client",
  };
}

/**
 * The part of the configuration that the gateway needs.
 *
 * @module
 */

import type { Config } from "./config.ts";
import { SEMANTIC } from "./gateway_options.ts";

/** Returns the settings on which lists of tools and questions to the person depend. */
export function gatewaySettings({ gateway, intent, limits, channel }: Config) {
  return {
    ...gateway,
    semantic: SEMANTIC,
    intent,
    batchMax: limits.batch,
    planMax: limits.planTasks,
    inlineBytes: limits.inlineBytes,
    approvalMs: limits.approvalMs,
    asksClient: channel === undefined || channel === "client",
  };
}

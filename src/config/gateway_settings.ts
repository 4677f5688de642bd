/**
 * The settings of the gateway, as the current configuration has them.
 *
 * @module
 */

import { memoized } from "../core/memo.ts";
import type { Config } from "./current_config.ts";
import { SEMANTIC } from "./gateway_options.ts";

/** Returns the settings on which lists of tools and questions to the user depend. */
export const gatewaySettings = memoized((
  { gateway, intent, limits, channel, restrictions, clientMeta }: Config,
) => {
  const identity = restrictions?.identity;
  return {
    ...gateway,
    semantic: SEMANTIC,
    intent,
    batchMax: limits.batch,
    planMax: limits.planTasks,
    inlineBytes: limits.inlineBytes,
    resultBytes: limits.resultBytes,
    approvalMs: limits.approvalMs,
    // Questions about the calls of another identity go to the user.
    asksClient: identity === undefined && (channel === undefined || channel === "client"),
    asksPage: identity === undefined && channel === "page",
    actor: identity?.name ?? "local",
    clientMeta,
    toolsetFor: restrictions?.toolsetFor,
  };
});

/**
 * Answers calls of tools that run in the cloud.
 *
 * @module
 */

import type { CallTool } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import type { ToolId } from "../core/tool_id.ts";

/** Makes the call of cloud tools. Nothing of a call leaves this machine yet. */
export function cloudCall(apiKey: () => string | undefined): CallTool {
  return ({ id }) => Promise.reject(apiKey() ? notReachable(id) : keyRequired(id));
}

function keyRequired(id: ToolId): PmlError {
  return new PmlError("CLOUD_KEY_REQUIRED", "Cloud mode requires PML_API_KEY", {
    hint: `${quoted(id)} runs in the cloud: set PML_API_KEY in the environment that starts pml`,
    detail: { tool: id },
  });
}

function notReachable(id: ToolId): PmlError {
  return new PmlError("UPSTREAM_DOWN", `Cannot call ${quoted(id)}: cloud tools do not work yet`, {
    hint: "Nothing was sent; define its server in .pml.json to run it from this machine",
    detail: { tool: id, may_have_run: false },
  });
}

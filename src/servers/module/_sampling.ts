/**
 * Sends the sampling requests that a module makes during a call to a model.
 *
 * @module
 */

import type { Call, ServerRequest } from "../../protocol/call.ts";
import { asPmlError, PmlError, withHint } from "../../core/errors.ts";
import { isObject, type Json, quoted } from "../../core/json.ts";
import { splitToolId } from "../../core/tool_id.ts";
import type { SandboxCall } from "../../sandbox/sandbox.ts";

const NO_MODEL = "Set `sampling` in config.yaml, or use a client that can sample";

/** Answers a request of a module. Throws if modules may not make such a request. */
export async function sampleForModule(
  { id, client: { onServerRequest } }: Call,
  [name, params, signal]: Parameters<NonNullable<SandboxCall["onRequest"]>>,
): Promise<Json> {
  const { server } = splitToolId(id);
  // guard: sampling-module
  if (name !== "sample" || !isObject(params)) {
    throw new PmlError("SANDBOX_DENIED", "Cannot make this request: the call has no such right");
  }
  if (onServerRequest === undefined) {
    throw new PmlError(
      "BAD_REQUEST",
      `Cannot sample for ${quoted(server)}: there is no model. ${NO_MODEL}`,
    );
  }
  try {
    // The params are plain JSON.
    const request = { server, method: "sampling/createMessage", params, signal } as const;
    return await onServerRequest(request as ServerRequest);
  } catch (error) {
    // A module gets no separate hint, so the message contains it.
    const { code, message, hint } = asPmlError(error);
    throw new PmlError(code, withHint(message, hint));
  }
}

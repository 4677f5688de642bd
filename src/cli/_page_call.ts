/**
 * Calls a tool for the page, through the same checks as every other call.
 *
 * @module
 */

import type { CallAnswer } from "../control/api.ts";
import { Cancellation } from "../core/cancellation.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { isObject, type JsonObject, quoted, textOf, withoutUndefined } from "../core/json.ts";
import type { ToolId } from "../core/tool_id.ts";
import { pause } from "../io/waiting.ts";
import type { Approvals } from "../policy/approvals.ts";
import { NO_CLIENT, type ToolResult } from "../protocol/call.ts";
import { parseId } from "./_arguments.ts";
import type { CommandContext } from "./_command_context.ts";

/** How often the files of a question are read, in milliseconds. */
const POLL_MS = 200;

/**
 * Calls a tool. A question waits in the PML home, where the page shows it; the call goes on after a
 * yes. Failures are part of the answer.
 */
export async function pageCall(
  context: CommandContext,
  { tool, arguments: args, signal }: {
    readonly tool: string;
    readonly arguments: JsonObject;
    /** Aborts when the browser no longer waits. */
    readonly signal: AbortSignal;
  },
): Promise<CallAnswer> {
  const since = performance.now();
  const ids: string[] = [];
  const end = () => ({
    ms: Math.round(performance.now() - since),
    ...withoutUndefined({ id: ids.at(-1) }),
  });
  try {
    const id = parseId(tool, context.app.servers);
    const result = await callUntilAnswered(context, { id, arguments: args, signal, ids });
    const { content, structuredContent, isError = false } = result;
    return {
      ...end(),
      isError,
      content: content.map(toTextBlock),
      ...structuredContent !== undefined && { structuredContent },
    };
  } catch (error) {
    const { code, message, hint } = asPmlError(error);
    return {
      ...end(),
      isError: true,
      content: [],
      error: { code, message, ...withoutUndefined({ hint }) },
    };
  }
}

async function callUntilAnswered(
  { app }: CommandContext,
  { ids, signal, ...call }: {
    readonly id: ToolId;
    readonly arguments: JsonObject;
    readonly signal: AbortSignal;
    /** Receives the id of each attempt. */
    readonly ids: string[];
  },
): Promise<ToolResult> {
  const callPath = await app.callPath();
  using cancellation = Cancellation.of(signal);
  for (;;) {
    const callId = crypto.randomUUID();
    ids.push(callId);
    const outcome = await callPath.callTool({
      ...call,
      via: "page",
      actor: "local",
      cancellation,
      client: NO_CLIENT,
      callId,
    });
    if (outcome.kind === "result") return outcome.result;
    const { handle, otherwise } = outcome.question;
    const pending = await callPath.approvals.saveForTerminal(handle, otherwise);
    const isApproved = pending !== undefined &&
      await waitForGrant(callPath.approvals, pending.id, signal);
    if (isApproved) continue;
    const why = "its question was refused, or has expired";
    throw new PmlError("APPROVAL_DECLINED", `Cannot run ${quoted(call.id, 200)}: ${why}`, {
      hint: "Nothing was run",
    });
  }
}

/** Waits for the answer to a question. Withdraws the question if the browser disconnects. */
async function waitForGrant(
  approvals: Approvals,
  id: string,
  signal: AbortSignal,
): Promise<boolean> {
  while (!signal.aborted) {
    const waiting = await approvals.pendingApprovals();
    if (!waiting.some((one) => one.id === id)) return approvals.isGranted(id);
    await pause(POLL_MS, signal);
  }
  await approvals.withdraw(id);
  return false;
}

/** Returns a block of a result as text. The page shows no images of servers. */
function toTextBlock(block: unknown): CallAnswer["content"][number] {
  const { type, text, ...rest } = isObject(block) ? block : { type: "unknown", text: undefined };
  const isText = typeof text === "string";
  return {
    type: textOf(type) || "unknown",
    text: isText ? text : JSON.stringify(rest, shortenText),
  };
}

/** The maximum length of a string in a block that is not text, in characters. */
const TEXT_MAX = 2_000;

function shortenText(_key: string, value: unknown): unknown {
  return typeof value === "string" && value.length > TEXT_MAX
    ? `${value.slice(0, TEXT_MAX)}… (${value.length} characters)`
    : value;
}

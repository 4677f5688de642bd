/**
 * Calls a tool for a program. A program cannot answer questions, so they are left for `pml
 * approve`.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import type { Progress, ToolResult } from "../protocol/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { PmlError } from "../core/errors.ts";
import { asPlatformValue, withExactIntegers, withRoundedNumbers } from "../core/exact_number.ts";
import { type JsonObject, quoted } from "../core/json.ts";
import { outputOf } from "../protocol/output.ts";
import { type ProgressListener, withRisingValues } from "../protocol/progress.ts";
import { ToolError } from "../workflow/tool_error.ts";

export { shownId as named } from "../core/tool_id.ts";

/** The tool to call, and the options of the call. */
export interface LibraryCall {
  readonly name: string;
  readonly args: JsonObject;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
}

/** Runs a call through all checks and returns its result. Throws if the call needs approval. */
export async function callForProgram(app: App, call: LibraryCall): Promise<ToolResult> {
  const { name, args, signal = new AbortController().signal, onProgress } = call;
  const id = app.servers.idOf(name);
  if (id === undefined) {
    throw new PmlError("UNKNOWN_TOOL", `Cannot find the tool ${quoted(name)}`, {
      hint: "Write it as server:tool; listTools() returns the names",
    });
  }
  const callPath = await app.callPath();
  using cancellation = Cancellation.of(signal);
  const outcome = await callPath.callTool({
    id,
    arguments: withExactIntegers(args),
    via: "library",
    actor: "local",
    cancellation,
    callId: crypto.randomUUID(),
    client: { onProgress: onProgress && withRisingValues(withPlainNumbers(onProgress)) },
  });
  if (outcome.kind === "result") return asPlatformValue(outcome.result) as ToolResult;
  throw await callPath.storeQuestion(outcome.question);
}

/** Returns a listener that passes numbers on as JavaScript numbers. */
function withPlainNumbers(listener: (progress: Progress) => void): ProgressListener {
  return ({ members, ...report }) =>
    listener(withRoundedNumbers({ ...members?.params, ...report }) as Progress);
}

/** Returns an object with `server.tool(args)` for each tool. A call passes all checks, and returns output. */
export function toolsFor<T extends object>(app: App): T {
  const call = async (name: string, args: JsonObject = {}) => {
    const result = await callForProgram(app, { name, args });
    if (result.isError === true) throw new ToolError(name, result);
    return outputOf(result);
  };
  // The caller names the type, which describes the servers' declarations.
  return byName((server) =>
    byName((tool) => (args?: JsonObject) => call(`${server}:${tool}`, args))
  ) as T;
}

/** Returns an object with a value for each name except `then`, so that `await` does not call it. */
function byName(valueOf: (name: string) => unknown): object {
  return new Proxy({}, {
    get: (_, name) => typeof name === "symbol" || name === "then" ? undefined : valueOf(name),
  });
}

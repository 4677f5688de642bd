/**
 * Runs code that calls tools. Each piece of code has its own sandbox child without permissions.
 * Each call of the code is a call of its run.
 *
 * @module
 */

import type { CallClient, ToolResult } from "../protocol/call.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { defined, isObject, type Json, type JsonObject, objectOf, textOf } from "../core/json.ts";
import { outputOf } from "../protocol/output.ts";
import { ownOnly } from "../protocol/progress.ts";
import { ToolError } from "./tool_error.ts";
import type { CodeStart } from "../sandbox/code_module.ts";
import { ModuleFailure, type OnRequest, type Sandbox } from "../sandbox/sandbox.ts";
import type { CheckedCall } from "../servers/server.ts";
import type { Run } from "./run.ts";
import type { ToolNames } from "./tool_names.ts";

/** The collaborators of `runCode`. */
export interface CodeParts {
  /** Starts a sandbox child for each piece of code. */
  readonly children: {
    use<T>(
      use: { readonly depth: number; readonly signal: AbortSignal },
      work: (child: Sandbox) => Promise<T>,
    ): Promise<T>;
    /** Starts a child soon, or at once. */
    ahead(options?: { readonly now: true }): void;
  };
  readonly tools: ToolNames;
}

/** Code to run. */
export interface CodeRun {
  readonly code: string;
  /** The value of its global `args`. */
  readonly arguments?: JsonObject;
  /** Makes its calls. The code ends when the signal of the run aborts. */
  readonly run: Run;
  /** Receives the console output of the code, line by line. */
  readonly onLine?: (line: string) => void;
  /** The call of the capability that contains the code. It may be outdated before the code runs. */
  readonly within?: Pick<CheckedCall, "assertCurrent">;
}

/** The result of code. `runCode` throws errors of PML itself. */
export type CodeResult =
  | { readonly kind: "value"; readonly value: Json; readonly open: number }
  | { readonly kind: "failed"; readonly failure: CodeFailure; readonly open: number };

/** The error of code, with its position if that is known. */
export interface CodeFailure {
  readonly name: string;
  readonly message: string;
  /** The error code of a failed call. */
  readonly code?: string;
  readonly hint?: string;
  /** The tool that failed. */
  readonly tool?: string;
  readonly line?: number;
  readonly column?: number;
}

/** The most characters of console output that are kept. */
const CONSOLE_MAX = 64 * 1024;
/** The most characters that are shown of a tool name, which the code may have invented. */
const NAME_MAX = 200;

/** Runs code to its end. */
export async function runCode(asked: CodeRun, { children, tools }: CodeParts): Promise<CodeResult> {
  const { code, run, arguments: args = {}, onLine } = asked;
  const { signal, depth } = run.options;
  const calls = new CodeRequests(run, tools, onLine);
  const start: CodeStart = { code, args, consoleBytes: CONSOLE_MAX };
  try {
    const said = await children.use({ depth, signal }, (child) => {
      // guard: late-capability
      asked.within?.assertCurrent();
      return child.call({
        ...{ fn: "run", arguments: start as unknown as JsonObject, signal, graceMs: 0 },
        onRequest: calls.answer,
        onProgress: calls.progress,
      });
    });
    return endOf(objectOf(said));
  } catch (error) {
    // The sandbox returns its errors as results. This error comes from the code itself.
    if (error instanceof ModuleFailure) return endOf({ kind: "thrown", message: error.message });
    throw crashed(error);
  }
}

/** Answers the requests of code. */
class CodeRequests {
  readonly #run: Run;
  readonly #tools: ToolNames;
  readonly #onLine: CodeRun["onLine"] | undefined;
  #room = CONSOLE_MAX * 2;
  #done = 0;
  #tellsItself = false;

  constructor(run: Run, tools: ToolNames, onLine: CodeRun["onLine"] | undefined) {
    this.#run = run;
    this.#tools = tools;
    this.#onLine = onLine;
  }

  readonly answer: OnRequest = async (name, args, signal) => {
    if (name === "call" && isObject(args)) return await this.#call(args, signal);
    if (name === "log" && Array.isArray(args)) this.#log(args);
    return null;
  };

  readonly progress: NonNullable<CallClient["onProgress"]> = (progress) => {
    this.#tellsItself = true;
    this.#run.options.client.onProgress?.(progress);
  };

  async #call({ tool, arguments: args }: JsonObject, signal: AbortSignal): Promise<Json> {
    try {
      if (typeof tool !== "string" || !isObject(args)) throw noArguments(tool);
      const id = this.#tools.idOf(tool);
      // The progress of a tool has another scale than the run's.
      const onProgress = ownOnly(this.#run.options.client.onProgress);
      const result = await this.#run.call({ id, arguments: args, signal, onProgress });
      if (result.isError === true) return { error: toolFailure(tool, result) };
      return { output: outputOf(result) };
    } catch (error) {
      const { code, message, hint } = asPmlError(error);
      return { error: defined({ code, message, hint }) as JsonObject };
    } finally {
      this.#done++;
      if (!this.#tellsItself) {
        const message = typeof tool === "string" ? tool.slice(0, NAME_MAX) : "";
        this.#run.options.client.onProgress?.({ progress: this.#done, message });
      }
    }
  }

  #log(lines: readonly Json[]): void {
    for (const line of lines) {
      if (typeof line !== "string" || line.length > this.#room) continue;
      // guard: code-console
      this.#room -= line.length + 1;
      this.#onLine?.(line);
    }
  }
}

function noArguments(tool: Json | undefined): PmlError {
  const message = `Cannot call "${textOf(tool)}": its arguments are not an object`;
  return new PmlError("BAD_ARGUMENTS", message, { hint: "Pass one object" });
}

function toolFailure(tool: string, result: ToolResult): JsonObject {
  const error = objectOf(objectOf(result.structuredContent).error);
  return {
    message: new ToolError(tool, result).message,
    ...(typeof error.code === "string" && { code: error.code }),
    // A result is plain JSON.
    result: result as unknown as Json,
  };
}

/** Parses the result of code. The code itself may have written it, so it is untrusted. */
function endOf({ kind, value = null, open: count, ...result }: JsonObject): CodeResult {
  const open = typeof count === "number" ? count : 0;
  if (kind === "value") return { kind, value, open };
  if (kind === "output") {
    const message = `Cannot return the result: ${shortOf(result.message)}`;
    throw new PmlError("OUTPUT_INVALID", message, { hint: "Return plain JSON" });
  }
  const { line, column } = objectOf(result.place);
  const failure = defined({
    name: shortOf(result.name),
    message: shortOf(result.message),
    code: textOf(result.code) || undefined,
    hint: textOf(result.hint) || undefined,
    tool: textOf(result.tool).slice(0, NAME_MAX) || undefined,
    line: typeof line === "number" ? line : undefined,
    column: typeof column === "number" ? column : undefined,
  });
  return { kind: "failed", failure: failure as unknown as CodeFailure, open };
}

function shortOf(field: Json | undefined): string {
  return textOf(field).slice(0, 16_000);
}

/** Returns the error of a child with a message for the author of the code. */
function crashed(error: unknown): unknown {
  if (!(error instanceof PmlError)) return error;
  const { code, message, detail } = error;
  if (code === "RESULT_TOO_LARGE") return new PmlError(code, message, { hint: "Return less" });
  if (code !== "SANDBOX_CRASHED" || typeof detail?.reason !== "string") return error;
  const { reason } = detail;
  const why = message.slice(message.lastIndexOf(": ") + 2).replace("the module", "the code");
  const hint = ["memory", "frames"].includes(reason)
    ? "Process less at once: the memory, the messages and the output of code are limited"
    : "End the code with `return` or `throw`";
  return new PmlError(code, `Cannot finish the code: ${why}`, { hint, detail: { reason } });
}

/**
 * Runs code that calls tools. Each run of code uses its own sandbox child without permissions. The
 * calls of the code belong to the same `Run`, so its limits and its approvals apply to them.
 *
 * @module
 */

import type { CallClient, ToolResult } from "../protocol/call.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import {
  isObject,
  type Json,
  type JsonObject,
  objectOf,
  textOf,
  withoutUndefined,
} from "../core/json.ts";
import { outputOf } from "../protocol/output.ts";
import { keepOwnReports } from "../protocol/progress.ts";
import { ToolError } from "./tool_error.ts";
import type { CodeStart } from "../sandbox/code_module.ts";
import { ModuleFailure, type OnRequest, type Sandbox } from "../sandbox/sandbox.ts";
import type { CheckedCall } from "../servers/server.ts";
import type { Run } from "./run.ts";
import type { ToolNames } from "./tool_names.ts";

/** The collaborators of `runCode`. */
export interface CodeParts {
  /** Starts sandbox children. */
  readonly children: {
    /** Starts a child, passes it to `work`, and ends it. */
    use<T>(
      options: { readonly depth: number; readonly signal: AbortSignal },
      work: (child: Sandbox) => Promise<T>,
    ): Promise<T>;
    /** Starts a child for the next code, after a short delay or, with `now`, immediately. */
    prepareNext(options?: { readonly now: true }): void;
  };
  readonly tools: ToolNames;
}

/** Code to run. */
export interface CodeRun {
  readonly code: string;
  /** The value of the global `args` in the code. */
  readonly arguments?: JsonObject;
  /** Makes the calls of the code. The code ends when the signal of the run aborts. */
  readonly run: Run;
  /** Receives the console output of the code, line by line. */
  readonly onLine?: (line: string) => void;
  /**
   * The call of the capability that contains the code. `assertCurrent` throws if the rules changed
   * since the checks of that call.
   */
  readonly capabilityCall?: Pick<CheckedCall, "assertCurrent">;
}

/**
 * The result of code. `pendingCount` is the number of calls that had no answer when the code ended.
 * `runCode` throws errors of PML itself.
 */
export type CodeResult =
  | { readonly kind: "value"; readonly value: Json; readonly pendingCount: number }
  | { readonly kind: "failed"; readonly failure: CodeFailure; readonly pendingCount: number };

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

/** The maximum number of characters of console output that a child sends. */
const CONSOLE_MAX = 64 * 1024;
/**
 * The maximum number of characters of a tool name in messages, because the code chooses the name.
 */
const NAME_MAX = 200;

/**
 * Runs code and returns its value or its error. Throws `PmlError` if the child cannot start,
 * crashes, or exceeds a limit.
 */
export async function runCode(
  codeRun: CodeRun,
  { children, tools }: CodeParts,
): Promise<CodeResult> {
  const { code, run, arguments: args = {}, onLine } = codeRun;
  const { signal, depth } = run.options;
  const calls = new CodeRequests(run, tools, onLine);
  const start: CodeStart = { code, args, consoleBytes: CONSOLE_MAX };
  try {
    const result = await children.use({ depth, signal }, (child) => {
      // guard: late-capability
      codeRun.capabilityCall?.assertCurrent();
      return child.call({
        fn: "run",
        arguments: start as unknown as JsonObject,
        signal,
        graceMs: 0,
        onRequest: calls.answer,
        onProgress: calls.progress,
      });
    });
    return withMistakeHint(parseCodeResult(objectOf(result)), code);
  } catch (error) {
    // The module in the child returns errors of the code as results. Only code that sends messages
    // itself can cause this error.
    if (error instanceof ModuleFailure) {
      return parseCodeResult({ kind: "thrown", message: error.message });
    }
    throw toAuthorError(error);
  }
}

/** Adds a hint to an error of code if a common mistake explains it. */
function withMistakeHint(result: CodeResult, code: string): CodeResult {
  if (result.kind === "value" || result.failure.hint !== undefined) return result;
  const hint = mistakeHint(result.failure, code);
  return hint === undefined ? result : { ...result, failure: { ...result.failure, hint } };
}

function mistakeHint({ name, message }: CodeFailure, code: string): string | undefined {
  const [, undeclared] = /^([A-Za-z_$][\w$]{0,60}) is not defined$/.exec(message) ?? [];
  if (name === "ReferenceError" && undeclared === "require") {
    return "Code has no files and packages. Call a tool: mcp.server.tool(args)";
  }
  if (name === "ReferenceError" && undeclared !== undefined) {
    const isCalled = code.includes(`await ${undeclared}.`);
    return isCalled ? `Call a tool of a server as mcp.${undeclared}.tool(args)` : undefined;
  }
  const isContentRead = /\.content\s*(?:\?\.)?\[/.test(code);
  if (message === "Cannot read properties of undefined (reading '0')" && isContentRead) {
    return "A call returns the output of its tool, such as a text, and not { content: […] }";
  }
  if (name === "SyntaxError" && message === '"[object Object]" is not valid JSON') {
    return "The value is an object already: use it without JSON.parse";
  }
  return undefined;
}

/** Answers the requests of code. */
class CodeRequests {
  readonly #run: Run;
  readonly #tools: ToolNames;
  readonly #onLine: CodeRun["onLine"] | undefined;
  /** The child limits its output. This limit is for code that bypasses the console of the child. */
  #remainingConsole = CONSOLE_MAX * 2;
  #doneCalls = 0;
  #reportsProgress = false;

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
    this.#reportsProgress = true;
    this.#run.options.client.onProgress?.(progress);
  };

  async #call({ tool, arguments: args }: JsonObject, signal: AbortSignal): Promise<Json> {
    try {
      if (typeof tool !== "string" || !isObject(args)) throw badCall(tool);
      const id = this.#tools.idOf(tool);
      // Drops the progress of the tool, because it counts something else than the progress of the
      // run.
      const onProgress = keepOwnReports(this.#run.options.client.onProgress);
      const result = await this.#run.call({ id, arguments: args, signal, onProgress });
      if (result.isError === true) return { error: toolFailure(tool, result) };
      return { output: outputOf(result) };
    } catch (error) {
      const { code, message, hint } = asPmlError(error);
      return { error: withoutUndefined({ code, message, hint }) as JsonObject };
    } finally {
      this.#doneCalls++;
      if (!this.#reportsProgress) {
        const message = typeof tool === "string" ? tool.slice(0, NAME_MAX) : "";
        this.#run.options.client.onProgress?.({ progress: this.#doneCalls, message });
      }
    }
  }

  #log(lines: readonly Json[]): void {
    for (const line of lines) {
      if (typeof line !== "string" || line.length > this.#remainingConsole) continue;
      // guard: code-console
      this.#remainingConsole -= line.length + 1;
      this.#onLine?.(line);
    }
  }
}

function badCall(tool: Json | undefined): PmlError {
  const message = typeof tool === "string"
    ? `Cannot call "${tool}": its arguments are not an object`
    : "Cannot call a tool: its name is not a string";
  return new PmlError("BAD_ARGUMENTS", message, { hint: "Write mcp.server.tool({ … })" });
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

/**
 * Parses the result of a child. The result is untrusted, because the code can send messages itself.
 */
function parseCodeResult({ kind, value = null, open: count, ...result }: JsonObject): CodeResult {
  const pendingCount = typeof count === "number" ? count : 0;
  if (kind === "value") return { kind, value, pendingCount };
  if (kind === "output") {
    const message = `Cannot return the result: ${limitText(result.message)}`;
    throw new PmlError("OUTPUT_INVALID", message, { hint: "Return plain JSON" });
  }
  const { line, column } = objectOf(result.place);
  const failure = withoutUndefined({
    name: limitText(result.name),
    message: limitText(result.message),
    code: textOf(result.code) || undefined,
    hint: textOf(result.hint) || undefined,
    tool: textOf(result.tool).slice(0, NAME_MAX) || undefined,
    line: typeof line === "number" ? line : undefined,
    column: typeof column === "number" ? column : undefined,
  });
  return { kind: "failed", failure: failure as unknown as CodeFailure, pendingCount };
}

function limitText(field: Json | undefined): string {
  return textOf(field).slice(0, 16_000);
}

/** Returns an error of the child with a message for the author of the code. */
function toAuthorError(error: unknown): unknown {
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

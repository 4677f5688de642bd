/**
 * The meta-tool `execute_code`: checks the types of code, runs the code and builds the result.
 *
 * @module
 */

import { type Outcome, textResult, type ToolResult } from "../protocol/call.ts";
import { asPmlError, type PmlError, shownPlace } from "../core/errors.ts";
import { numberOf } from "../core/exact_number.ts";
import { sha256 } from "../core/hash.ts";
import { type Json, type JsonObject, withoutUndefined } from "../core/json.ts";
import type { ConfigOwner } from "../config/current_config.ts";
import type { CapabilitySaving } from "./capability_saving.ts";
import { type CodeFailure, type CodeParts, type CodeResult, runCode } from "./code.ts";
import { type RunParts, withRun } from "./run_scope.ts";
import type { CodeToCheck, TypeCheck, TypeCheckResult } from "./checked_code.ts";
import type { WorkflowRequest } from "./workflow_request.ts";

/** Opens the service that saves code and plans. `App` implements it. */
export interface SavingOpener {
  /** Opens the capabilities of the user. */
  capabilities(): Promise<{ readonly saving: CapabilitySaving }>;
}

/** The collaborators of `execute_code`. */
export interface CodeToolParts extends CodeParts, RunParts {
  readonly policy: ConfigOwner<"limits">;
  /** Checks the types of code before it runs. */
  readonly types?: TypeCheck;
  readonly opener: SavingOpener;
}

interface CodeArguments {
  readonly code: string;
  readonly timeout_ms?: Json;
  readonly save_as?: Json;
}

/** Facts about a run of code, which are added to its result. */
interface RunNotes {
  readonly id: string;
  readonly lines: string[];
  readonly types: TypeCheckResult;
  tools: readonly string[];
}

/** The outcome of `save_as` if the run failed. */
export const UNSAVED = {
  saved: false,
  error: { message: "Nothing was saved because the run failed" },
};

/** Runs the code of a request. */
export async function executeCode(
  { arguments: args, ...request }: WorkflowRequest,
  parts: CodeToolParts,
): Promise<Outcome> {
  // The arguments were checked against the schema.
  const { code, timeout_ms, save_as: saveAs } = args as unknown as CodeArguments;
  const { codeMs, callMaxMs: totalMs, codeCalls: maxCalls } = parts.policy.config.limits;
  const ms = Math.min(numberOf(timeout_ms) ?? codeMs, totalMs);
  const about: JsonObject = { code: sha256(code), characters: code.length };
  const saving = saveAs === undefined ? undefined : (await parts.opener.capabilities()).saving;
  // Throws before the run if the code cannot be saved.
  const prepared = saveAs && saving?.prepare(saveAs, { kind: "code", text: code });
  // Starts a child during the type check. Code that calls no tool is not checked.
  if (/\bmcp\b/.test(code)) parts.children.prepareNext({ now: true });
  // The time limit of the code starts with its run, not with the type check.
  const types = await checkTypes({ code, actor: request.actor, signal: request.signal }, parts);
  if (types.kind === "problems") return { kind: "result", result: problemsAnswer(types) };
  const runNotes: RunNotes = { id: crypto.randomUUID(), lines: [], types, tools: [] };
  const start = { ...request, id: runNotes.id, via: "code", maxCalls, ms, totalMs, about } as const;
  try {
    const onLine = (line: string) => void runNotes.lines.push(line);
    const result = await withRun(start, parts, async (run) => {
      const codeResult = await runCode({ code, run, onLine }, parts);
      runNotes.tools = run.tools;
      return codeResult;
    });
    const toolResult = answerOf(result, runNotes);
    if (!prepared || saving === undefined) return { kind: "result", result: toolResult };
    if (result.kind !== "value") return { kind: "result", result: withSaved(toolResult, UNSAVED) };
    const saved = await saving.save(prepared, runNotes.tools, request);
    return { kind: "result", result: withSaved(toolResult, saved) };
  } catch (error) {
    // The console output helps to find the cause of a timeout or a crash.
    if (runNotes.lines.length === 0 || request.signal.aborted) throw error;
    return { kind: "result", result: errorAnswer(asPmlError(error), runNotes) };
  }
}

/** Adds the outcome of saving to a result. */
export function withSaved(result: ToolResult, saved: JsonObject): ToolResult {
  const text = JSON.stringify({ save_as: saved });
  return { ...result, content: [...result.content, { type: "text", text }] };
}

async function checkTypes(code: CodeToCheck, parts: CodeToolParts): Promise<TypeCheckResult> {
  try {
    return await parts.types?.check(code) ?? { kind: "unchecked", why: "no checker" };
  } catch (error) {
    code.signal.throwIfAborted();
    return { kind: "unchecked", why: asPmlError(error).message };
  }
}

function answerOf(result: CodeResult, runNotes: RunNotes): ToolResult {
  const { pendingCount } = result;
  if (result.kind === "value") {
    const { value } = result;
    return toResult(typeof value === "string" ? value : JSON.stringify(value), {
      runNotes,
      pendingCount,
    });
  }
  const { failure } = result;
  return toError(toResult(failureText(failure), { runNotes, pendingCount }), failure);
}

function problemsAnswer({ problems }: TypeCheckResult & { readonly kind: "problems" }): ToolResult {
  const lines = problems.map(({ line, message, hint }) =>
    `${shownPlace("code", { line })}: ${message}${hint === undefined ? "" : `\n  ${hint}`}`
  );
  const text = ["The code did not run: it has type errors", ...lines].join("\n");
  return { ...textResult(text), isError: true };
}

/** Formats an error with its position for a model. */
export function failureText({ name, message, code, hint, tool, ...place }: CodeFailure): string {
  const reason = [tool, place.line && shownPlace("code", place)].filter(Boolean).join(", ");
  const what = code === undefined ? name : `${name} ${code}`;
  return `${what}: ${message}${reason && ` (${reason})`}${hint === undefined ? "" : `\n${hint}`}`;
}

function errorAnswer({ code, message, hint }: PmlError, runNotes: RunNotes): ToolResult {
  const text = failureText({ name: code, message, ...withoutUndefined({ hint }) });
  return toError(toResult(text, { runNotes, pendingCount: 0 }), { code, message, hint });
}

/** Marks a result as an error. Adds the code of the error if it has a code. */
function toError(
  toolResult: ToolResult,
  { code, message, hint }: Pick<CodeFailure, "code" | "message"> & Partial<Pick<PmlError, "hint">>,
): ToolResult {
  const error = code === undefined ? undefined : withoutUndefined({ code, message, hint });
  return { ...toolResult, ...error && { structuredContent: { error } }, isError: true };
}

/** Returns the text, and the notes of PML about the run in a separate block. */
function toResult(
  text: string,
  { runNotes: { id, lines, types }, pendingCount }: {
    readonly runNotes: RunNotes;
    readonly pendingCount: number;
  },
): ToolResult {
  const notes = [
    ...(lines.length > 0 ? ["console:", ...lines] : []),
    ...(types.kind === "unchecked" ? [`types: unchecked (${types.why})`] : []),
    ...(pendingCount > 0 ? [`Cancelled calls that the code did not await: ${pendingCount}`] : []),
  ];
  const blocks = [text, ...(notes.length > 0 ? [notes.join("\n")] : [])];
  return {
    content: blocks.map((block) => ({ type: "text", text: block })),
    _meta: { "pml/run": id },
  };
}

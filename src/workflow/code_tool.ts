/**
 * The meta-tool `execute_code`: checks the types of code, runs it and builds the answer.
 *
 * @module
 */

import { type Outcome, textResult, type ToolResult } from "../protocol/call.ts";
import { asPmlError, type PmlError, shownPlace } from "../core/errors.ts";
import { numberOf } from "../core/exact_number.ts";
import { sha256 } from "../core/hash.ts";
import { defined, type Json, type JsonObject } from "../core/json.ts";
import type { ConfigOwner } from "../config/current_config.ts";
import type { CapabilitySaving } from "./capability_saving.ts";
import { type CodeFailure, type CodeParts, type CodeResult, runCode } from "./code.ts";
import { inRun, type RunParts } from "./run_scope.ts";
import type { CodeToCheck, TypeCheck, TypesChecked } from "./checked_code.ts";
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

/** Facts about the run of code, for the answer. */
interface Noticed {
  readonly id: string;
  readonly lines: string[];
  readonly types: TypesChecked;
  tools: readonly string[];
}

/** The outcome of saving after a failure. */
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
  const { codeMs, callMaxMs: mostMs, codeCalls: calls } = parts.policy.config.limits;
  const ms = Math.min(numberOf(timeout_ms) ?? codeMs, mostMs);
  const about: JsonObject = { code: sha256(code), characters: code.length };
  const saving = saveAs === undefined ? undefined : (await parts.opener.capabilities()).saving;
  // Throws before the run if the code cannot be saved.
  const prepared = saveAs && saving?.prepare(saveAs, { kind: "code", text: code });
  // Starts a child during the type check. Code that calls no tool is not checked.
  if (/\bmcp\b/.test(code)) parts.children.ahead({ now: true });
  // The time limit of the code starts with its run, not with the type check.
  const types = await typesOf({ code, actor: request.actor, signal: request.signal }, parts);
  if (types.kind === "problems") return { kind: "result", result: problemsAnswer(types) };
  const noticed: Noticed = { id: crypto.randomUUID(), lines: [], types, tools: [] };
  const start = { ...request, id: noticed.id, via: "code", calls, ms, mostMs, about } as const;
  try {
    const onLine = (line: string) => void noticed.lines.push(line);
    const result = await inRun(start, parts, async (run) => {
      const ran = await runCode({ code, run, onLine }, parts);
      noticed.tools = run.tools;
      return ran;
    });
    const answered = answerOf(result, noticed);
    if (!prepared || saving === undefined) return { kind: "result", result: answered };
    if (result.kind !== "value") return { kind: "result", result: withSaved(answered, UNSAVED) };
    const saved = await saving.save(prepared, noticed.tools, request);
    return { kind: "result", result: withSaved(answered, saved) };
  } catch (error) {
    // The console output helps to find the cause of a timeout or a crash.
    if (noticed.lines.length === 0 || request.signal.aborted) throw error;
    return { kind: "result", result: errorAnswer(asPmlError(error), noticed) };
  }
}

/** Adds the outcome of saving to a result. */
export function withSaved(result: ToolResult, saved: JsonObject): ToolResult {
  const text = JSON.stringify({ save_as: saved });
  return { ...result, content: [...result.content, { type: "text", text }] };
}

async function typesOf(code: CodeToCheck, parts: CodeToolParts): Promise<TypesChecked> {
  try {
    return await parts.types?.check(code) ?? { kind: "unchecked", why: "no checker" };
  } catch (error) {
    code.signal.throwIfAborted();
    return { kind: "unchecked", why: asPmlError(error).message };
  }
}

function answerOf(result: CodeResult, noticed: Noticed): ToolResult {
  const { open } = result;
  if (result.kind === "value") {
    const { value } = result;
    return answer(typeof value === "string" ? value : JSON.stringify(value), { noticed, open });
  }
  const { failure } = result;
  return failed(answer(failureText(failure), { noticed, open }), failure);
}

function problemsAnswer({ problems }: TypesChecked & { readonly kind: "problems" }): ToolResult {
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

function errorAnswer({ code, message, hint }: PmlError, noticed: Noticed): ToolResult {
  const text = failureText({ name: code, message, ...defined({ hint }) });
  return failed(answer(text, { noticed, open: 0 }), { code, message, hint });
}

/** Marks an answer as failed, with the code of the error if there is one. */
function failed(
  answered: ToolResult,
  { code, message, hint }: Pick<CodeFailure, "code" | "message"> & Partial<Pick<PmlError, "hint">>,
): ToolResult {
  const error = code === undefined ? undefined : defined({ code, message, hint });
  return { ...answered, ...error && { structuredContent: { error } }, isError: true };
}

/** Returns the text, and the notes of PML about the run in a separate block. */
function answer(
  text: string,
  { noticed: { id, lines, types }, open }: { readonly noticed: Noticed; readonly open: number },
): ToolResult {
  const notes = [
    ...(lines.length > 0 ? ["console:", ...lines] : []),
    ...(types.kind === "unchecked" ? [`types: unchecked (${types.why})`] : []),
    ...(open > 0 ? [`Cancelled calls that the code did not await: ${open}`] : []),
  ];
  const blocks = [text, ...(notes.length > 0 ? [notes.join("\n")] : [])];
  return { content: blocks.map((one) => ({ type: "text", text: one })), _meta: { "pml/run": id } };
}

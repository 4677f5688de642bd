/**
 * The journal records of the start and the end of a call.
 *
 * @module
 */

import type { EndRecord, StartRecord } from "../audit/journal.ts";
import { argumentShape, argumentSize } from "../audit/shape.ts";
import type { Call, Outcome } from "../protocol/call.ts";
import type { Verdict } from "../protocol/verdict.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { defined, objectOf } from "../core/json.ts";

/** With at most this many arguments, the shape is never too large: `argumentShape()` limits each. */
const FEW_ARGUMENTS = 3;
/** The maximum length of the shape of more arguments, in characters of JSON. */
const LONGEST_SHAPE = 12_000;

/**
 * Adds a text block that says that the call was not recorded. The structured result stays
 * unchanged.
 */
export function withUnrecordedNote(outcome: Outcome, recordError: PmlError): Outcome {
  if (outcome.kind === "ask") return outcome;
  const { content, _meta, ...rest } = outcome.result;
  const note = { type: "text", text: textOf(recordError) };
  const meta = { ...objectOf(_meta), "pml/journal": "not recorded" };
  return { kind: "result", result: { ...rest, content: [...content, note], _meta: meta } };
}

/** Returns the error with a hint that the call was not recorded. */
export function withRecordError(
  { code, message, hint, detail, cause }: PmlError,
  recordError: PmlError,
) {
  const hints = [...(hint === undefined ? [] : [hint]), textOf(recordError)].join("\n");
  return new PmlError(code, message, { ...defined({ detail }), hint: hints, cause });
}

function textOf({ message }: PmlError): string {
  return `PML: this call was not recorded. ${message}`;
}

/** The members of a call that its records use. */
type RecordedCall = Omit<Call, "client" | "cancellation"> & {
  /** The id of the client's request, as JSON. */
  readonly requestId: string | undefined;
};

/** Returns the record of the start of a call. */
export function startOf(call: RecordedCall): StartRecord {
  const { verdict, requestId: request } = call;
  return {
    kind: "start",
    callId: call.callId,
    actor: call.actor,
    via: call.via,
    tool: call.id,
    ...(call.run !== undefined && { run: call.run }),
    ...(request !== undefined && { request }),
    ...(verdict && { verdict: verdict.kind, rule: ruleOf(verdict), source: verdict.source }),
    ...(call.answer && { answer: call.answer.reply }),
    ...argumentsOf(call.arguments),
  };
}

/** Returns the shape of arguments, or how large they are if their shape is too large. */
function argumentsOf(
  values: Call["arguments"],
): Pick<StartRecord, "arguments" | "argumentsOmitted" | "argumentsBytes"> {
  const shape = argumentShape(values);
  const isSmall = Object.keys(objectOf(shape)).length <= FEW_ARGUMENTS ||
    JSON.stringify(shape).length <= LONGEST_SHAPE;
  if (isSmall) return { arguments: shape };
  const { length: argumentsBytes } = new TextEncoder().encode(JSON.stringify(values));
  return { arguments: null, argumentsOmitted: true, argumentsBytes };
}

/** Returns the rule without exact arguments: the journal contains no arguments of calls. */
function ruleOf({ rule }: Verdict): string {
  return rule.replace(/\(\{.*/s, "({...})");
}

/** Returns the record of the end of a call that took `ms` and has an outcome. */
export function endOfOutcome(
  { callId }: Pick<Call, "callId">,
  ms: number,
  outcome: Outcome,
): EndRecord {
  if (outcome.kind === "ask") return { kind: "end", callId, outcome: "ask", ms: rounded(ms) };
  const { result, task, code } = outcome;
  return {
    kind: "end",
    callId,
    outcome: result.isError === true ? "tool error" : "result",
    size: argumentSize(result),
    ...(task !== undefined && { task }),
    ...(code !== undefined && { code }),
    ms: rounded(ms),
  };
}

/** Returns the record of a call that failed. Its message is left out: it may quote arguments. */
export function endOfError(
  { callId }: Pick<Call, "callId">,
  ms: number,
  error: unknown,
): EndRecord {
  const { code } = asPmlError(error);
  return { kind: "end", callId, outcome: "failed", code, ms: rounded(ms) };
}

function rounded(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}

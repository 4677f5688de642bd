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
import { objectOf, withoutUndefined } from "../core/json.ts";

/**
 * Up to this number of arguments, the shape is never too large, because `argumentShape()` limits the
 * shape of each argument.
 */
const FEW_ARGUMENTS = 3;
/** The maximum length of the shape of all arguments together, in characters of JSON. */
const SHAPE_LENGTH_MAX = 12_000;

/**
 * Adds a text block that reports that the call was not recorded. Does not change the structured
 * result.
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
  return new PmlError(code, message, { ...withoutUndefined({ detail }), hint: hints, cause });
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
    // JSON leaves out undefined members.
    run: call.run,
    request,
    verdict: verdict?.kind,
    rule: verdict && ruleOf(verdict),
    source: verdict?.source,
    answer: call.answer?.reply,
    ...argumentsOf(call.arguments),
  };
}

/** Returns the shape of arguments, or their size in bytes if the shape is too large. */
function argumentsOf(
  values: Call["arguments"],
): Pick<StartRecord, "arguments" | "argumentsOmitted" | "argumentsBytes"> {
  const shape = argumentShape(values);
  const isSmall = Object.keys(objectOf(shape)).length <= FEW_ARGUMENTS ||
    JSON.stringify(shape).length <= SHAPE_LENGTH_MAX;
  if (isSmall) return { arguments: shape };
  const { length: argumentsBytes } = new TextEncoder().encode(JSON.stringify(values));
  return { arguments: null, argumentsOmitted: true, argumentsBytes };
}

/** Returns the rule without its exact arguments, because the journal must not contain arguments. */
function ruleOf({ rule }: Verdict): string {
  return rule.replace(/\(\{.*/s, "({...})");
}

/** Returns the record of the end of a call that took `ms` milliseconds. */
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

/** Returns the record of a call that failed, without the message, which may quote arguments. */
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

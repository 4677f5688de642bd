/**
 * Puts the journal round every call: one record before it is dispatched, one when it is over.
 *
 * @module
 */

import type { Call, Gate, Outcome, Verdict } from "../core/call.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { defined, objectOf } from "../core/json.ts";
import type { EndRecord, StartRecord } from "./journal.ts";
import type { Records } from "./records.ts";
import { shapeOf, sizeOf } from "./shape.ts";

/**
 * Lets no call pass whose start could not be written, and writes an end for each that passed. One
 * that may go on without a record says so in its answer.
 */
export function auditGate<C extends Call>(
  journal: Pick<Records, "write" | "note">,
  mayGoOn: (call: C) => Promise<boolean> = () => Promise.resolve(false),
): Gate<C> {
  return (next) => async (call) => {
    const lost = await journal.write(startOf(call)).catch(asPmlError);
    const isLost = lost !== undefined;
    if (isLost && !await mayGoOn(call)) throw lost;
    const since = performance.now();
    try {
      const outcome = await next({ ...call, isLost });
      journal.note(endOf(call, { since, ...whatCame(outcome) }), isLost);
      return isLost ? unrecorded(outcome, lost) : outcome;
    } catch (error) {
      journal.note(endOf(call, { since, ...whatFailed(error) }), isLost);
      throw isLost ? failedUnrecorded(asPmlError(error), lost) : error;
    }
  };
}

/** Says in a block of its own that a call was not recorded: what is structured stays as it is. */
function unrecorded(outcome: Outcome, lost: PmlError): Outcome {
  if (outcome.kind === "ask") return outcome;
  const { content, _meta, ...rest } = outcome.result;
  const said = { type: "text", text: textOf(lost) };
  const meta = { ...objectOf(_meta), "pml/journal": "not recorded" };
  return { kind: "result", result: { ...rest, content: [...content, said], _meta: meta } };
}

function failedUnrecorded({ code, message, hint, detail, cause }: PmlError, lost: PmlError) {
  const hints = [...(hint === undefined ? [] : [hint]), textOf(lost)].join("\n");
  return new PmlError(code, message, { ...defined({ detail }), hint: hints, cause });
}

function textOf({ message }: PmlError): string {
  return `PML: this call was not recorded. ${message}`;
}

type Ending = Omit<EndRecord, "kind" | "callId" | "ms">;

function startOf(call: Call): StartRecord {
  const { verdict } = call;
  return {
    kind: "start",
    callId: call.callId,
    actor: call.actor,
    via: call.via,
    tool: call.id,
    ...(call.request !== undefined && { request: call.request }),
    ...(verdict && { verdict: verdict.kind, rule: ruleOf(verdict), source: verdict.source }),
    ...(call.answer && { answer: call.answer.reply }),
    arguments: shapeOf(call.arguments),
  };
}

/** A rule with exact arguments holds those of the call. */
function ruleOf({ rule }: Verdict): string {
  return rule.replace(/\(\{.*/s, "({...})");
}

function endOf(call: Call, ended: Ending & { readonly since: number }): EndRecord {
  const { since, ...ending } = ended;
  const ms = Math.round((performance.now() - since) * 1_000) / 1_000;
  return { kind: "end", callId: call.callId, ...ending, ms };
}

function whatCame(outcome: Outcome): Ending {
  if (outcome.kind === "ask") return { outcome: "ask" };
  const size = sizeOf(outcome.result);
  return {
    outcome: outcome.result.isError === true ? "tool error" : "result",
    size,
    ...(outcome.task !== undefined && { task: outcome.task }),
    ...(outcome.isUnchecked === true && { unchecked: true }),
    ...(outcome.code !== undefined && { code: outcome.code }),
  };
}

// The message stays out: it may quote arguments.
function whatFailed(error: unknown): Ending {
  return { outcome: "failed", code: asPmlError(error).code };
}

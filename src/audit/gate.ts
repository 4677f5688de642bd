/**
 * Puts the journal round every call: one record before it is dispatched, one when it is over.
 *
 * @module
 */

import type { Call, Gate, Outcome, Verdict } from "../core/call.ts";
import { asPmlError } from "../core/errors.ts";
import type { EndRecord, Journal, StartRecord } from "./journal.ts";
import { shapeOf, sizeOf } from "./shape.ts";

/** Lets no call pass whose start could not be written, and writes an end for each that passed. */
export function auditGate(journal: Pick<Journal, "write" | "note">): Gate {
  return (next) => async (call) => {
    await journal.write(startOf(call));
    const since = performance.now();
    try {
      const outcome = await next(call);
      journal.note(endOf(call, { since, ...whatCame(outcome) }));
      return outcome;
    } catch (error) {
      journal.note(endOf(call, { since, ...whatFailed(error) }));
      throw error;
    }
  };
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
    ...(outcome.isUnchecked === true && { unchecked: true }),
  };
}

// The message stays out: it may quote arguments.
function whatFailed(error: unknown): Ending {
  return { outcome: "failed", code: asPmlError(error).code };
}

/**
 * One question for several calls, so that a batch asks at most once.
 *
 * @module
 */

import type { Answer, Question } from "../core/call.ts";
import type { PassCall } from "../core/server.ts";
import { askAbout, type AskGateOptions } from "./gate.ts";

/** One question for all, or the answer that each call carries on, by its `callId`. */
export type AskedAll =
  | { readonly kind: "ask"; readonly question: Question }
  | { readonly kind: "answers"; readonly answers: ReadonlyMap<string, Answer> };

/**
 * Asks about several calls at once. They share one answer; where it says yes, each gets a
 * single-use ticket for exactly itself, and still goes through the one door.
 */
export async function askForAll(
  calls: readonly PassCall[],
  options: Pick<AskGateOptions, "approvals" | "subjectOf" | "record">,
): Promise<AskedAll> {
  const asked = await Promise.all(
    calls.map(async (call) => ({ call, subject: await options.subjectOf(call) })),
  );
  const subjects = asked.map(({ subject }) => subject);
  const came = await askAbout(calls, { ...options, subjects });
  if (came.kind === "ask") return came;
  const answers = asked.map(({ call, subject }) =>
    [call.callId, options.approvals.ticket(subject)] as const
  );
  return { kind: "answers", answers: new Map(answers) };
}

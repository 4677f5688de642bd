/**
 * Asks one question for several calls, so that a batch asks at most once.
 *
 * @module
 */

import type { Answer, Question } from "../core/call.ts";
import type { PassCall } from "../core/server.ts";
import { askAbout, type AskGateOptions } from "./gate.ts";

/** One question for all calls, or the answer for each call by its `callId`. */
export type AskedAll =
  | { readonly kind: "ask"; readonly question: Question }
  | { readonly kind: "answers"; readonly answers: ReadonlyMap<string, Answer> };

/**
 * Asks about several calls at once. After a yes each call gets a ticket that is valid once for
 * exactly this call. The calls still pass all gates.
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

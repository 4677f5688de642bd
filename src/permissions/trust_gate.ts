/**
 * Asks the person about a server that nobody has approved yet, before anything of it runs.
 *
 * @module
 */

import { type Call, type Gate, type Outcome, shownArguments } from "../core/call.ts";
import { askAbout, type AskGateOptions } from "./gate.ts";
import { denied, type Judge } from "./rules.ts";

export { unhidden } from "./_question.ts";

/** What has to be shown, and what a yes then means. */
export interface Unapproved {
  /** What a call fails with where nobody can be asked. */
  readonly code:
    | "WORKSPACE_UNTRUSTED"
    | "APPROVAL_REQUIRED"
    | "APPROVAL_STALE"
    | "NAME_CONFLICT";
  /** Everything that a yes covers, one line each. */
  readonly facts: readonly string[];
  /** Whether a yes covers no more than to find out: then the call itself is asked about anew. */
  readonly isLook?: boolean;
  /** Keeps the yes, if what was shown is still so. */
  readonly accept: () => Promise<void>;
}

/** What the trust gate needs. */
export interface TrustGateOptions
  extends Pick<AskGateOptions, "approvals" | "subjectOf" | "record"> {
  /** What nobody has approved yet of what this call needs; nothing if all of it is. */
  readonly unapproved: (call: Call) => Promise<Unapproved | undefined>;
  readonly judge: () => Judge;
  readonly workspace: () => string;
}

/**
 * Lets a call pass whose server is approved. For another it asks; a yes is kept, the call is
 * judged again by the rules that now hold, and since the question showed the call itself, it is
 * not asked about twice.
 */
export function trustGate(options: TrustGateOptions): Gate {
  const { approvals, subjectOf, record, judge, workspace } = options;
  return (next) => {
    /** Asks until nothing is left to ask about; `isSaid` tells that the call itself was shown. */
    const pass = async (call: Call, isSaid: boolean): Promise<Outcome> => {
      const unapproved = await options.unapproved(call);
      if (unapproved === undefined) {
        if (!isSaid || call.verdict?.kind === "allow") return await next(call);
        return await next({ ...call, answer: approvals.ticket(await subjectOf(call)) });
      }
      const { code, facts, isLook = false, accept } = unapproved;
      const asked = await askAbout([call], {
        ...options,
        subjects: [{
          tool: call.id,
          arguments: shownArguments(call),
          definition: "not read yet",
          rules: "trust",
          actor: call.actor,
          workspace: workspace(),
          facts,
        }],
      });
      if (asked.kind === "ask") {
        return { kind: "ask", question: { ...asked.question, otherwise: code } };
      }
      await accept();
      await record({ event: "approved", call, detail: { trusted: facts } });
      const verdict = judge()(call.id, call.arguments);
      if (verdict.kind === "deny") throw denied(call.id, verdict);
      const { answer: _, ...rest } = { ...call, verdict };
      return await pass(rest, isSaid || !isLook);
    };
    return (call) => pass(call, false);
  };
}

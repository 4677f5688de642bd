/**
 * Asks the person about a server that nobody has approved yet, before anything of it runs.
 *
 * @module
 */

import { type Call, shownArguments } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { defined } from "../core/json.ts";
import type { PassCall, PassGate } from "../core/server.ts";
import type { Unapproved } from "../core/server_identity.ts";
import type { Approvals } from "./approvals.ts";
import { askAbout, type AskGateOptions } from "./gate.ts";
import type { Subject } from "./subject.ts";

export { unhidden } from "./_question.ts";

/** The options of `trustGate`. */
export interface TrustGateOptions
  extends Pick<AskGateOptions, "approvals" | "subjectOf" | "record"> {
  /** Begins a new pass: finds the server and judges the call again. Throws if a rule denies it. */
  readonly again: (call: PassCall) => Promise<PassCall>;
  /** Returns whether the rules and the configuration are those that the pass began with. */
  readonly isCurrent: (call: PassCall) => boolean;
  /** Returns what was read: the same object as long as no file changes. */
  readonly read: () => object;
  readonly workspace: () => string;
}

/** After so many questions and changes within one call it is given up. */
export const MOST_PASSES = 20;

/**
 * Lets a call pass if its server is approved; otherwise asks. After a yes it saves the approval,
 * finds the server and judges the call again. The question showed the call itself, so the person is
 * not asked about it a second time.
 */
export function trustGate(options: TrustGateOptions): PassGate {
  const { approvals, subjectOf, record, workspace, again, isCurrent, read } = options;
  return (next) => async (first) => {
    let call = first;
    // What held when the person said yes to the call itself: the yes covers nothing that came later.
    let said: object | undefined;
    for (let pass = 0; pass < MOST_PASSES; pass++) {
      const unapproved = await call.pass.server.unapproved(call);
      if (unapproved === undefined && isCurrent(call)) {
        if (said !== read() || call.verdict?.kind === "allow") return await next(call);
        const subject = await subjectOf(call);
        // The question about the server did not show the texts of the tool.
        if (subject.definitionLines !== undefined) return await next(call);
        return await next({ ...call, answer: approvals.ticket(subject) });
      }
      if (unapproved !== undefined) {
        const { code, isLook = false, facts, accept } = unapproved;
        const asked = await askAbout([call], {
          ...options,
          subjects: [trustSubject(call, { ...unapproved, workspace: workspace() })],
        });
        if (asked.kind === "ask") {
          return { kind: "ask", question: { ...asked.question, otherwise: code } };
        }
        await accept();
        await approvals.markRead(readIn(unapproved, approvals));
        if (!isLook) said = read();
        await record({ event: "approved", call, detail: { trusted: facts } });
        // The handle is used up.
        const { answer: _, ...rest } = call;
        call = rest;
      }
      // The approval may have brought another server with this name, and other rules.
      // guard: trust-again
      call = await again(call);
    }
    throw restless(first);
  };
}

/** Returns what a person is shown of a call whose server is not approved. */
export function trustSubject(
  call: Call,
  { facts, workspace, definition = "not read yet", definitionLines }:
    & Pick<Subject, "workspace">
    & Pick<Unapproved, "facts" | "definition" | "definitionLines">,
): Subject {
  return {
    tool: call.id,
    arguments: shownArguments(call),
    ...defined({ members: call.members }),
    definition,
    rules: "trust",
    actor: call.actor,
    workspace,
    facts,
    ...definitionLines !== undefined && { definitionLines },
  };
}

/** Returns the hashes of the definitions whose whole texts the user has read after a yes. */
export function readIn(
  { definition, changedFrom }: Unapproved,
  approvals: Pick<Approvals, "hasRead">,
): readonly string[] {
  // What did not change was not shown.
  const isWhole = changedFrom === undefined || approvals.hasRead(changedFrom);
  return definition !== undefined && isWhole ? [definition] : [];
}

/** Makes the error of a call that is given up. */
export function restless({ id }: Call): PmlError {
  return new PmlError("OVERLOADED", `Cannot run "${id}": what it needs keeps changing`, {
    hint: "Call it again when the configuration is at rest",
  });
}

/**
 * Puts the person's rules, and the person, in front of every call.
 *
 * @module
 */

import type { Call, Outcome, Verdict } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { type JsonObject, quoted } from "../core/json.ts";
import type { PassCall, PassGate } from "../core/server.ts";
import type { Approvals } from "./approvals.ts";
import { denied, type Judge } from "./rules.ts";
import { digestOf, type Subject } from "./subject.ts";

/** What happened at the gate that asks. */
export interface GateEvent {
  readonly event: "asked" | "approved" | "always" | "always_not_kept" | "declined";
  readonly call: Call;
  readonly detail?: JsonObject;
}

/** What asking needs. */
export interface AskOptions {
  readonly approvals: Approvals;
  /** Writes to the journal; a call goes on only after it. */
  readonly record: (event: GateEvent) => Promise<void>;
}

/** What the gate that asks needs. */
export interface AskGateOptions extends AskOptions {
  /** What the person is asked about; everything in it is bound to the answer. */
  readonly subjectOf: (call: PassCall) => Promise<Subject>;
  /** The rule that "Always" would add, where it can win for this call and may be offered. */
  readonly alwaysOffered: (call: Call) => string | undefined;
  /** Keeps the rule that "Always" makes. */
  readonly always: (call: Call) => Promise<void>;
}

/** A question to the person. */
export type Asking = Extract<Outcome, { readonly kind: "ask" }>;

/** A question, or the yes that was said to it: to the client, for good, or on a terminal. */
export type Asked =
  | Asking
  | { readonly kind: "Yes" | "Always" | "terminal" };

/** Returns what the rules say of a call; what the call brings along says nothing. */
export function judged(judge: Judge, { id, method, arguments: args }: Call): Verdict {
  const isOfTask = method?.startsWith("tasks/") === true;
  const verdict = judge(id, isOfTask ? undefined : args);
  const isBegun = isOfTask && (verdict.kind !== "deny" || method === "tasks/cancel");
  return isBegun ? BEGUN : verdict;
}

/** The rules judged the call that began a task; what follows it adds nothing. */
const BEGUN: Verdict = { kind: "allow", rule: "the call that began its task", source: "defaults" };

/** Throws for a call that a deny rule matches. */
export function refuse({ id, verdict }: Call): void {
  if (verdict?.kind === "deny") throw denied(id, verdict);
}

/** Lets pass what is allowed, and asks the person about the rest. */
export function askGate(options: AskGateOptions): PassGate {
  return (next) => async (call) => {
    // It may be the only gate.
    refuse(call);
    if (call.verdict?.kind === "allow") return await next(call);
    const subject = await options.subjectOf(call);
    const asked = await askAbout([call], {
      ...options,
      subjects: [subject],
      rule: options.alwaysOffered(call),
    });
    if (asked.kind === "ask") return asked;
    if (asked.kind === "Always") await keepRule(call, options);
    else {await options.record({
        event: "approved",
        call,
        detail: { channel: asked.kind === "Yes" ? "client" : asked.kind },
      });}
    // The handle is used up, and is nobody's business further in.
    const { answer: _, ...rest } = call;
    const outcome = await next(rest);
    if (outcome.kind !== "changed") return outcome;
    // The yes holds for exactly what was shown.
    return { ...outcome, answer: options.approvals.ticket(subject) };
  };
}

/** Asks about calls in one question, or tells the yes that was said to it; a no is thrown. */
export async function askAbout(
  calls: readonly Call[],
  { subjects, rule, approvals, record }: AskOptions & {
    readonly subjects: readonly Subject[];
    /** What "Always" would add; not called `always`, as what keeps it is. */
    readonly rule?: string | undefined;
  },
): Promise<Asked> {
  const tell = (event: GateEvent["event"], detail: JsonObject) =>
    Promise.all(calls.map((call) => record({ event, call, detail })));
  const said = await approvals.said(calls[0]?.answer, digestOf(subjects));
  switch (said) {
    case "Yes":
    case "Always":
    case "terminal":
      return { kind: said };
    case "No":
    case "cancelled":
      await tell("declined", { reply: said });
      throw declined(
        calls,
        said === "No" ? "the person said no" : "the person dismissed the question",
      );
    case "no-channel":
    case undefined: {
      const question = approvals.open(subjects, {
        always: rule,
        terminalOnly: said !== undefined,
      });
      await tell("asked", { of: calls.length, terminalOnly: question.terminalOnly });
      return { kind: "ask", question };
    }
  }
}

/** Keeps the rule before the call runs. Where that fails the person's yes still holds, once. */
async function keepRule(call: Call, { always, record }: AskGateOptions): Promise<void> {
  try {
    await always(call);
  } catch (error) {
    await record({ event: "always_not_kept", call, detail: { why: `${error}` } });
    return;
  }
  await record({ event: "always", call });
}

function declined(calls: readonly Call[], how: string): PmlError {
  const names = calls.map(({ id }) => quoted(id, 200)).join(", ");
  return new PmlError("APPROVAL_DECLINED", `Cannot run ${names}: ${how}`, {
    hint: "Do not call it again unless they ask for it",
  });
}

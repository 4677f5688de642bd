/**
 * Puts the person's rules, and the person, in front of every call.
 *
 * @module
 */

import type { Call, Gate, Question, Verdict } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { type JsonObject, quoted } from "../core/json.ts";
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
  readonly subjectOf: (call: Call) => Subject | Promise<Subject>;
  /** The rule that "Always" would add, where it can win for this call and may be offered. */
  readonly alwaysOffered: (call: Call) => string | undefined;
  /** Keeps the rule that "Always" makes. */
  readonly always: (call: Call) => Promise<void>;
}

/** A question, or the yes that was said to it: to the client, for good, or on a terminal. */
export type Asked =
  | { readonly kind: "ask"; readonly question: Question }
  | { readonly kind: "Yes" | "Always" | "terminal" };

/** Attaches what the rules of this moment say; what a call brings along says nothing. */
export function judgeGate(judge: () => Judge): Gate {
  return (next) => async (call) => {
    const isOfTask = call.method?.startsWith("tasks/") === true;
    const verdict = judge()(call.id, isOfTask ? undefined : call.arguments);
    const isBegun = isOfTask && (verdict.kind !== "deny" || call.method === "tasks/cancel");
    return await next({ ...call, verdict: isBegun ? BEGUN : verdict });
  };
}

/** The rules judged the call that began a task; what follows it adds nothing. */
const BEGUN: Verdict = { kind: "allow", rule: "the call that began its task", source: "defaults" };

/** Refuses what a deny rule matches. */
export function refuseGate(): Gate {
  return (next) => async (call) => {
    if (call.verdict?.kind === "deny") throw denied(call.id, call.verdict);
    return await next(call);
  };
}

/** Lets pass what is allowed, and asks the person about the rest. */
export function askGate(options: AskGateOptions): Gate {
  return (next) =>
    refuseGate()(async (call) => {
      if (call.verdict?.kind === "allow") return await next(call);
      const asked = await askAbout([call], {
        ...options,
        subjects: [await options.subjectOf(call)],
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
      return await next(rest);
    });
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

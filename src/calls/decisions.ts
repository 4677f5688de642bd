/**
 * Applies the user's rules to calls, and asks the user.
 *
 * @module
 */

import type { ApprovalReply } from "../protocol/answers.ts";
import type { ApprovalAnswer, Call, Outcome } from "../protocol/call.ts";
import type { Verdict } from "../protocol/verdict.ts";
import { messageOf, PmlError } from "../core/errors.ts";
import { type JsonObject, quoted } from "../core/json.ts";
import { isMethodRuleName } from "../core/pattern.ts";
import type { ResolvedCall } from "../servers/server.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { missingVerdict, type Toolset } from "../protocol/toolset.ts";
import type { AlwaysRules } from "../policy/always_rule.ts";
import type { AnswerMeaning, Approvals, LastingAnswers } from "../policy/approvals.ts";
import { deniedByRule, type Judge } from "../policy/rules.ts";
import { digestOf, type Subject } from "../policy/subject.ts";
import { type ToolSet, unreadIn } from "../policy/tool_set.ts";
import type { SessionAnswers } from "./session_answers.ts";

/** An event of an approval request, for the journal. */
export interface ApprovalEvent {
  readonly event:
    | "asked"
    | "approved"
    | "session"
    | "session_not_kept"
    | "always"
    | "always_not_kept"
    | "never"
    | "never_not_kept"
    | "declined";
  readonly call: Call;
  readonly detail?: JsonObject;
}

/** Finds the answers that a question may offer. `AnswerOffers` implements it. */
export interface OfferFinder {
  /** Returns the answers with an effect on later calls, besides "Always". */
  of(call: ResolvedCall): Promise<LastingAnswers>;
}

/** The approvals, and the facts that they bind to. `CallApprovals` implements it. */
export interface ApprovalHost {
  readonly approvals: Approvals;
  /** The other answers that a question may offer. */
  readonly offers: OfferFinder;
  /** The answers that are valid until a client disconnects. */
  readonly sessions: Pick<SessionAnswers, "covers" | "keep">;
  /** Offers and saves the rules of "Always" and "Never", and those for the tools of a set. */
  readonly rules: Pick<AlwaysRules, "offered" | "reach" | "add" | "addTools" | "deny">;
  readonly workspace: string;
  /** Returns the present configuration: the same object until one of its files changes. */
  currentConfig(): object;
  /** Returns the subject of the question about a call. The answer is bound to everything in it. */
  subjectOf(call: ResolvedCall): Promise<Subject>;
  /** Writes to the journal. The call waits for it. */
  record(event: ApprovalEvent): Promise<void>;
}

/** A question to the user. */
export type AskOutcome = Extract<Outcome, { readonly kind: "ask" }>;

/** An answer that is more than a yes or no to one call. */
export type LastingReply = "Session" | "Always" | "Reads" | "All" | "Never";

/**
 * The result of `askUser()`: a question that is still open, or the kind of the user's answer. "Yes"
 * came from the client and "terminal" from `pml approve`; both allow this call. The others also have
 * an effect on later calls.
 */
export type AskResult =
  | AskOutcome
  | { readonly kind: "Yes" | "terminal" | LastingReply };

/**
 * Returns the decision of the rules about a call. Denies a tool that is not in the toolset. Ignores
 * the `verdict` of the call.
 */
export function decisionOf(
  judge: Judge,
  { id, method, arguments: args, fixed, members, isNotification, via }:
    & Pick<Call, "id" | "method" | "arguments" | "fixed" | "members">
    & Partial<Pick<Call, "isNotification" | "via">>,
  toolset: Toolset | undefined,
): Verdict {
  const isOfTask = isTaskRequest(id, method);
  const own = isOfTask ? undefined : args;
  const verdict = (toolset && missingVerdict([toolset], id)) ??
    (fixed === undefined ? judge(id, own) : judge(id, own, fixed.given));
  // The condition was only compared with the arguments, and other members can change the effect.
  if (verdict.kind === "allow" && verdict.isConditional && members !== undefined) return judge(id);
  const isUnruled = verdict.kind === "ask" && verdict.source === "defaults";
  if (isUnruled && isNotification === true && via === "server") return OF_SERVER;
  const mayFollow = isOfTask && (verdict.kind !== "deny" || method === "tasks/cancel");
  return mayFollow ? OF_TASK : verdict;
}

/**
 * Returns whether a request is about a task. A method that MCP does not define has its own rule name,
 * even if it begins with `tasks/`.
 */
function isTaskRequest(id: ToolId, method = ""): boolean {
  if (!method.startsWith("tasks/")) return false;
  // guard: task-methods
  if (isMethodRuleName(splitToolId(id).tool)) return false;
  return true;
}

/** The verdict for notifications of servers to clients that no rule names. */
const OF_SERVER: Verdict = { kind: "allow", rule: "approved with its server", source: "defaults" };

/** The verdict for later requests about a task. The rules decided about the call that created it. */
const OF_TASK: Verdict = {
  kind: "allow",
  rule: "approved with the call of its task",
  source: "defaults",
};

/**
 * Returns the judge for calls of a draft. It allows calls that no rule of the user matches: a draft
 * has no grants, or asks for each use of a grant itself.
 */
export function allowingUnruled(judge: Judge): Judge {
  return (...args) => {
    const verdict = judge(...args);
    const isUnruled = verdict.kind === "ask" && verdict.source === "defaults";
    return isUnruled ? { ...verdict, kind: "allow" } : verdict;
  };
}

/** Throws PERMISSION_DENIED if a deny rule matches the call. */
export function assertNotDenied({ id, verdict }: Pick<Call, "id" | "verdict">): void {
  // guard: refuse-rule
  if (verdict?.kind === "deny") throw deniedByRule(id, verdict);
}

/**
 * Asks about calls in one question. Returns the open question, or the kind of an answer that allows
 * the calls, or "Never". Throws APPROVAL_DECLINED for "No".
 */
export async function askUser(
  calls: readonly Call[],
  host: Pick<ApprovalHost, "approvals" | "record">,
  { subjects, rule, reach, lasting, isShared, answer }: {
    readonly subjects: readonly Subject[];
    /** The answer that the user gave to an earlier question about them. */
    readonly answer: ApprovalAnswer | undefined;
    /** The rule that "Always" would add. */
    readonly rule?: string | undefined;
    /** Where "Always" would write that rule, and where the rule would apply. */
    readonly reach?: string | undefined;
    /** The other answers that the question may offer. */
    readonly lasting?: LastingAnswers | undefined;
    /** Whether one answer covers all equal questions that are open at the same time. */
    readonly isShared?: boolean;
  },
): Promise<AskResult> {
  const { approvals } = host;
  const record = (event: ApprovalEvent["event"], detail: JsonObject) =>
    Promise.all(calls.map((call) => host.record({ event, call, detail })));
  const meaning = await meaningFor(approvals, { subjects, lasting, answer });
  switch (meaning) {
    case "Never":
      return { kind: meaning };
    case "Yes":
    case "Session":
    case "Always":
    case "Reads":
    case "All":
    case "terminal":
      if (meaning === "Yes" && answer !== undefined && answer.reply !== "Yes") {
        await record("always_not_kept", { why: WHY_ONCE[answer.reply] ?? WHY_SOON });
      }
      await approvals.markRead(
        subjects.filter(({ definitionLines }) => definitionLines !== undefined)
          .flatMap(({ definition, otherTexts = [] }) => [definition, ...otherTexts]),
      );
      return { kind: meaning };
    case "No":
    case "cancelled":
      await record("declined", { reply: meaning });
      throw declined(
        calls,
        meaning === "No" ? "the user answered no" : "the user dismissed the question",
      );
    case "no-channel":
    case undefined: {
      const question = approvals.open(subjects, {
        ...lasting,
        always: rule,
        reach,
        terminalOnly: meaning !== undefined,
        isShared,
      });
      await record("asked", { of: calls.length, terminalOnly: question.terminalOnly });
      return { kind: "ask", question };
    }
  }
}

/** Meanings without an answer of the user to the call. */
const NO_ANSWERS: readonly (AnswerMeaning | "terminal")[] = [undefined, "no-channel", "cancelled"];

/** Returns the meaning of an answer. After an answer, the same calls wait for no other one. */
async function meaningFor(
  approvals: Approvals,
  { subjects, lasting, answer }: {
    readonly subjects: readonly Subject[];
    readonly lasting: LastingAnswers | undefined;
    readonly answer: ApprovalAnswer | undefined;
  },
): Promise<AnswerMeaning | "terminal"> {
  const meaning = await approvals.meaningOf(answer, digestOf(subjects), lasting);
  if (!NO_ANSWERS.includes(meaning)) await approvals.withdrawAnswered(subjects);
  return meaning;
}

const WHY_SOON = "the answer came within 300 ms";
const WHY_SET = `${WHY_SOON}, or the tools changed since the question`;
/** Why an answer allows only this call, by the reply. All others: `WHY_SOON`. */
const WHY_ONCE: Partial<Record<ApprovalReply, string>> = { Reads: WHY_SET, All: WHY_SET };

/** The events of replies, if they are not those of "Always". */
const EVENTS: Partial<Record<LastingReply, "never" | "session">> = {
  Never: "never",
  Session: "session",
};

/**
 * Saves an answer before the call runs. If this fails, it records why; the answer then allows only
 * this call. Throws APPROVAL_DECLINED for "Never".
 */
export async function keepAnswer(
  call: ResolvedCall,
  { reply, sets = [] }: { readonly reply: LastingReply; readonly sets?: readonly ToolSet[] },
  host: ApprovalHost,
): Promise<void> {
  const set = sets.find((one) => one.reply === reply);
  const event = EVENTS[reply] ?? "always";
  try {
    if (reply === "Never") await host.rules.deny(call);
    else if (reply === "Session") await host.sessions.keep(call);
    else if (set === undefined) await host.rules.add(call);
    else {
      await host.rules.addTools(set.tools);
      await host.approvals.markRead(unreadIn(set));
    }
    const tools = set?.tools.map(({ id }) => id);
    await host.record({ event, call, ...tools !== undefined && { detail: { tools } } });
  } catch (error) {
    await host.record({ event: `${event}_not_kept`, call, detail: { why: messageOf(error) } });
  }
  if (reply === "Never") throw declined([call], "the user answered never");
}

function declined(calls: readonly Call[], how: string): PmlError {
  const names = calls.map(({ id }) => quoted(id, 200)).join(", ");
  return new PmlError("APPROVAL_DECLINED", `Cannot run ${names}: ${how}`, {
    hint: "Call it again only if the user asks for it",
  });
}

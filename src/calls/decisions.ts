/**
 * Applies the user's rules to calls, and asks the user.
 *
 * @module
 */

import type { ApprovalReply } from "../protocol/answers.ts";
import type { ApprovalAnswer, Call, Outcome } from "../protocol/call.ts";
import type { Verdict } from "../protocol/verdict.ts";
import { messageOf, PmlError } from "../core/errors.ts";
import { type JsonObject, quoted, withoutUndefined } from "../core/json.ts";
import { isMethodRuleName } from "../core/pattern.ts";
import type { ResolvedCall } from "../servers/server.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { type Toolset, toolsetDenial } from "../protocol/toolset.ts";
import type { AlwaysRules } from "../policy/always_rule.ts";
import type { AlwaysOffer, AnswerMeaning, Approvals, LastingAnswers } from "../policy/approvals.ts";
import { deniedByRule, type Judge } from "../policy/rules.ts";
import type { PolicySnapshot } from "../policy/snapshot.ts";
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
  findAnswers(call: ResolvedCall): Promise<LastingAnswers>;
}

/** The approvals, and the facts that they bind to. `CallApprovals` implements it. */
export interface ApprovalHost {
  readonly approvals: Approvals;
  /** The other answers that a question may offer. */
  readonly offers: OfferFinder;
  /** The answers that are valid until a client disconnects. */
  readonly sessions: Pick<SessionAnswers, "covers" | "keep">;
  /** Offers and saves the rules of "Always" and "Never", and those for the tools of a set. */
  readonly rules: Pick<AlwaysRules, "offeredRule" | "reachOf" | "add" | "addTools" | "deny">;
  readonly workspace: string;
  /** Returns the configuration, which is the same object until one of its files changes. */
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
 * The result of `askUser()`: an open question, or the kind of the user's answer. "Yes" (from the
 * client) and "terminal" (from `pml approve`) allow only this call. All other answers also decide
 * later calls.
 */
export type AskResult =
  | AskOutcome
  | { readonly kind: "Yes" | "terminal" | LastingReply };

/** Throws the error of a call that its server refuses in any case, before the user is asked. */
export async function assertNotRefused(call: ResolvedCall): Promise<void> {
  const refusal = await call.server.whyRefused?.(call);
  if (refusal !== undefined) throw refusal;
}

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
  const judgedArguments = isOfTask ? undefined : args;
  const verdict = (toolset && toolsetDenial([toolset], id)) ??
    (fixed === undefined
      ? judge(id, judgedArguments)
      : judge(id, judgedArguments, fixed.callerArguments));
  // The rule has a condition for the arguments only, but other members can change the effect.
  if (verdict.kind === "allow" && verdict.isConditional && members !== undefined) return judge(id);
  const isUnruled = verdict.kind === "ask" && verdict.source === "defaults";
  if (isUnruled && isNotification === true && via === "server") return SERVER_NOTIFICATION_VERDICT;
  const followsItsCall = isOfTask && (verdict.kind !== "deny" || method === "tasks/cancel");
  return followsItsCall ? TASK_VERDICT : verdict;
}

/**
 * Returns the text that represents the decision of the rules in the subject of a question. An answer
 * is valid only while this text is the same. Rules that decide equally about the call have the same
 * text.
 */
export function boundDecision(
  { judge, config, loaded }: Pick<PolicySnapshot, "judge" | "config" | "loaded">,
  { tool: id, arguments: args, members }: Pick<Subject, "tool" | "arguments" | "members">,
): string {
  const { kind } = decisionOf(
    judge,
    { id, arguments: args, ...withoutUndefined({ members }) },
    undefined,
  );
  // An answer is not valid for another token, because that is another user.
  const token = config.restrictions?.identity?.token ?? "";
  const isUntrusted = loaded.file !== undefined && !config.trusted;
  return [kind, isUntrusted ? "untrusted" : "", token].join(" ");
}

/**
 * Returns whether a request is about a task. Methods that MCP does not define are not, even if they
 * begin with `tasks/`: rules name them `@method(...)`.
 */
function isTaskRequest(id: ToolId, method = ""): boolean {
  if (!method.startsWith("tasks/")) return false;
  // guard: task-methods
  if (isMethodRuleName(splitToolId(id).tool)) return false;
  return true;
}

/** The verdict for a server's notification to the client if no rule names it. */
const SERVER_NOTIFICATION_VERDICT: Verdict = {
  kind: "allow",
  rule: "approved with its server",
  source: "defaults",
};

/**
 * The verdict for later requests about a task. The rules decided about the call that created it.
 */
const TASK_VERDICT: Verdict = {
  kind: "allow",
  rule: "approved with the call of its task",
  source: "defaults",
};

/**
 * Returns the judge for calls of a draft, which allows calls that no rule of the user matches. This
 * is safe because a draft either has no grants, or asks the user for each use of a grant.
 */
export function allowUnruled(judge: Judge): Judge {
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
    /** The user's answer to an earlier question about the same calls. */
    readonly answer: ApprovalAnswer | undefined;
    /** The rule that "Always" would add. */
    readonly rule?: string | undefined;
    /** The file of the rule that "Always" would add, and the calls that the rule would cover. */
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
  const meaning = await meaningFor(approvals, {
    subjects,
    lasting: { ...lasting, ...withoutUndefined({ always: rule, reach }) },
    answer,
  });
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
        await record("always_not_kept", { why: NOT_KEPT_REASONS[answer.reply] ?? TOO_SOON });
      }
      await approvals.markRead(
        subjects.filter(({ definitionLines }) => definitionLines !== undefined)
          .flatMap(({ definition, otherTexts = [] }) => [definition, ...otherTexts]),
      );
      return { kind: meaning };
    case "No":
    case "cancelled":
      await record("declined", { reply: meaning, ...channelOf(answer) });
      throw declined(calls, refusalText(meaning, answer));
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

/** Meanings that are not a decision of the user about the call. */
const NO_DECISIONS: readonly (AnswerMeaning | "terminal")[] = [
  undefined,
  "no-channel",
  "cancelled",
];

/**
 * Returns the meaning of an answer. After a decision, withdraws open questions about the same
 * calls.
 */
async function meaningFor(
  approvals: Approvals,
  { subjects, lasting, answer }: {
    readonly subjects: readonly Subject[];
    readonly lasting: LastingAnswers & AlwaysOffer;
    readonly answer: ApprovalAnswer | undefined;
  },
): Promise<AnswerMeaning | "terminal"> {
  const meaning = await approvals.meaningOf(answer, digestOf(subjects), lasting);
  if (!NO_DECISIONS.includes(meaning)) await approvals.withdrawAnswered(subjects);
  return meaning;
}

const TOO_SOON = "the answer came within 300 ms";
const TOO_SOON_OR_CHANGED = `${TOO_SOON}, or the tools changed since the question`;
/** Why an answer was kept for this call only, by the reply; by default `TOO_SOON`. */
const NOT_KEPT_REASONS: Partial<Record<ApprovalReply, string>> = {
  Reads: TOO_SOON_OR_CHANGED,
  All: TOO_SOON_OR_CHANGED,
  Always: `${TOO_SOON}, or the rules changed since the question`,
};

/** The journal events of replies; by default `always`. */
const REPLY_EVENTS: Partial<Record<LastingReply, "never" | "session">> = {
  Never: "never",
  Session: "session",
};

/**
 * Saves an answer before the call runs. If saving fails, records why, and the answer allows only
 * this call. Throws APPROVAL_DECLINED for "Never".
 */
export async function keepAnswer(
  call: ResolvedCall,
  { reply, sets = [], channel }: {
    readonly reply: LastingReply;
    readonly sets?: readonly ToolSet[];
    readonly channel?: ApprovalAnswer["channel"];
  },
  host: ApprovalHost,
): Promise<void> {
  const set = sets.find((candidate) => candidate.reply === reply);
  const event = REPLY_EVENTS[reply] ?? "always";
  try {
    if (reply === "Never") await host.rules.deny(call);
    else if (reply === "Session") await host.sessions.keep(call);
    else if (set === undefined) await host.rules.add(call);
    else {
      await host.rules.addTools(set.tools);
      await host.approvals.markRead(unreadIn(set));
    }
    const tools = set?.tools.map(({ id }) => id);
    const detail = { ...tools !== undefined && { tools }, ...channelOf({ channel }) };
    await host.record({ event, call, ...Object.keys(detail).length > 0 && { detail } });
  } catch (error) {
    await host.record({ event: `${event}_not_kept`, call, detail: { why: messageOf(error) } });
  }
  if (reply === "Never") throw declined([call], "the user answered never");
}

function refusalText(meaning: "No" | "cancelled", answer: ApprovalAnswer | undefined): string {
  if (meaning === "cancelled") return "the user dismissed the question";
  return `the user answered no${answer?.channel === undefined ? "" : " on the page"}`;
}

/** Returns where the user answered, for the journal; empty if the user answered in the client. */
function channelOf(answer: Pick<ApprovalAnswer, "channel"> | undefined): JsonObject {
  return answer?.channel === undefined ? {} : { channel: answer.channel };
}

function declined(calls: readonly Call[], how: string): PmlError {
  const names = calls.map(({ id }) => quoted(id, 200)).join(", ");
  return new PmlError("APPROVAL_DECLINED", `Cannot run ${names}: ${how}`, {
    hint: "Call it again only if the user asks for it",
  });
}

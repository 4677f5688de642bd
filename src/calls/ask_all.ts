/**
 * Asks one question about several calls before they run: about calls that no rule allows, and about
 * servers without an approval.
 *
 * @module
 */

import type { ApprovalAnswer, Call, Question } from "../protocol/call.ts";
import { withoutUndefined } from "../core/json.ts";
import type { ResolvedCall } from "../servers/server.ts";
import type { Unapproved } from "../policy/server_identity.ts";
import { mapInTurns } from "../io/map_in_turns.ts";
import { settlesWithin } from "../io/waiting.ts";
import { type ApprovalHost, askUser, assertNotRefused } from "./decisions.ts";
import { configChangesError, MAX_PASSES } from "./restart.ts";
import { digestOf, type Subject } from "../policy/subject.ts";
import { trustSubject, wholeDefinitionsOf } from "../policy/trust_subject.ts";

/**
 * The maximum number of questions in a row. After a yes, PML can ask again: about the code that it
 * has read now, and about the package that it has installed now.
 */
const ROUNDS_MAX = 4;

/** How long the preflight of one call may delay the question about all calls, in milliseconds. */
const PREFLIGHT_MS = 3_000;

/** Checks calls before they run, and asks the user about them. `CallChecker` implements it. */
export interface CallPreflight {
  /** Resolves a call. Throws if a rule denies it. */
  preflight(call: Call): Promise<ResolvedCall>;
  /** Throws if the arguments of a call do not fit its tool. */
  assertFits(call: ResolvedCall): Promise<void>;
  /** Asks the user. Returns the answer; undefined if the question waits in the PML home. */
  ask(question: Question, first: Call): Promise<ApprovalAnswer | undefined>;
}

/** An open question about a call, with its text. */
interface CallQuestion {
  readonly call: ResolvedCall;
  readonly subject: Subject;
  /** Set if the server of the call is not approved. */
  readonly unapproved?: Unapproved;
}

/** The questions that the user answered with yes, and the configuration at that time. */
interface ApprovedCalls {
  readonly config: object;
  readonly questions: ReadonlyMap<string, CallQuestion>;
}

/**
 * Asks once about all calls that need an answer. After a yes, saves the approvals, and returns an
 * answer ("ticket") for each call by its `callId`. A ticket is valid once, for exactly the call that
 * the question showed. The calls still pass all checks. Asks nothing about a call that PML will
 * refuse anyway.
 */
export async function askForAll(
  calls: readonly Call[],
  host: ApprovalHost,
  checker: CallPreflight,
): Promise<ReadonlyMap<string, ApprovalAnswer>> {
  const tickets = new Map<string, ApprovalAnswer>();
  let approvedCalls: ApprovedCalls | undefined;
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const unanswered = calls.filter(({ callId }) => !tickets.has(callId));
    const searches = await mapInTurns(unanswered, (call) => {
      const search = findQuestion(call, host, checker);
      // Approved code may have to be installed first.
      return approvedCalls === undefined ? waitForPreflight(search) : search;
    });
    const openQuestions = (await Promise.all(searches)).filter((open) => open !== undefined).filter(
      (open) => {
        if (!isCovered(open, { approvedCalls, host })) return true;
        tickets.set(open.call.callId, host.approvals.answerYes(open.subject));
        return false;
      },
    );
    if (openQuestions.length === 0) break;
    const before = host.currentConfig();
    // guard: ask-all-yes
    await askUntilYes(openQuestions, host, checker);
    // The question did not show changes that were made while the user read it.
    const isSame = host.currentConfig() === before;
    await saveApprovals(openQuestions, host);
    const shownQuestions = new Map(
      (isSame ? openQuestions : []).map((open) => [open.call.callId, open]),
    );
    approvedCalls = { config: host.currentConfig(), questions: shownQuestions };
  }
  return tickets;
}

/**
 * Waits for the preflight of a call. Returns undefined after a timeout, for example if a server
 * hangs: such a call asks the user later, when it runs.
 */
export async function waitForPreflight<T>(search: Promise<T>): Promise<T | undefined> {
  return await settlesWithin(search, PREFLIGHT_MS) ? await search : undefined;
}

/**
 * Returns the open question about a call; undefined if there is none, or if the call cannot run.
 */
export async function findQuestion(
  call: Call,
  host: ApprovalHost,
  checker: CallPreflight,
): Promise<CallQuestion | undefined> {
  try {
    return await preflightCall(call, host, checker);
  } catch {
    // The call path refuses the call again, with the reason and a journal record.
    return undefined;
  }
}

async function preflightCall(
  request: Call,
  host: ApprovalHost,
  checker: CallPreflight,
): Promise<CallQuestion | undefined> {
  for (let pass = 0; pass < MAX_PASSES; pass++) {
    const call = await checker.preflight(request);
    const unapproved = await call.server.findUnapproved(call);
    if (unapproved !== undefined) {
      const subject = trustSubject(call, { ...unapproved, workspace: host.workspace });
      return { call, subject, unapproved };
    }
    // Finding the server may have changed the rules.
    if (!call.isCurrent()) continue;
    if (call.verdict?.kind === "allow") return undefined;
    if (await host.sessions.covers(call)) return undefined;
    await checker.assertFits(call);
    await assertNotRefused(call);
    return { call, subject: await host.subjectOf(call) };
  }
  throw configChangesError(request);
}

/**
 * Returns whether an earlier yes of the user covers this call. The question about a server also
 * showed the call, as in the checks. A yes does not cover changes after it.
 */
function isCovered(
  { call, subject, unapproved }: CallQuestion,
  { approvedCalls: approved, host }: {
    readonly approvedCalls: ApprovedCalls | undefined;
    readonly host: Pick<ApprovalHost, "currentConfig">;
  },
): boolean {
  const shown = approved?.questions.get(call.callId);
  // guard: ask-all-read
  if (
    unapproved !== undefined || shown === undefined || approved?.config !== host.currentConfig()
  ) {
    return false;
  }
  if (shown.unapproved !== undefined) {
    // The question about a server did not show the texts of its tools.
    // guard: ask-all-look
    return shown.unapproved.isOnlyForReading !== true && subject.definitionLines === undefined;
  }
  // Another approval in the same question may have changed the rules, so `rules` may differ. The
  // preflight has applied the changed rules.
  // guard: ask-all-same
  return digestOf([{ ...shown.subject, rules: subject.rules }]) === digestOf([subject]);
}

/** Asks until the user answers yes. Throws APPROVAL_DECLINED for a no. */
export async function askUntilYes(
  openQuestions:
    readonly (Pick<CallQuestion, "subject" | "unapproved"> & { readonly call: Call })[],
  host: Pick<ApprovalHost, "approvals" | "record">,
  checker: Pick<CallPreflight, "ask">,
): Promise<void> {
  const subjects = openQuestions.map(({ subject }) => subject);
  const calls = openQuestions.map(({ call }) => call);
  const [first] = calls;
  let answer = first?.answer;
  for (let round = 0; first !== undefined && round < ROUNDS_MAX; round++) {
    const result = await askUser(calls, host, { subjects, answer });
    if (result.kind !== "ask") return;
    const otherwise = openQuestions.find(({ unapproved }) => unapproved !== undefined)?.unapproved
      ?.code;
    answer = await checker.ask(withoutUndefined({ ...result.question, otherwise }), first);
  }
  if (first !== undefined) throw configChangesError(first);
}

/** Saves the approvals of servers. Saves an approval that several calls need only once. */
async function saveApprovals(
  openQuestions: readonly CallQuestion[],
  host: ApprovalHost,
): Promise<void> {
  const accepted = new Set<string>();
  for (const { call, unapproved } of openQuestions) {
    if (unapproved === undefined) continue;
    const { code, facts, accept } = unapproved;
    const key = JSON.stringify([code, facts]);
    if (!accepted.has(key)) await accept();
    await host.approvals.markRead(wholeDefinitionsOf(unapproved, host.approvals));
    accepted.add(key);
    await host.record({ event: "approved", call, detail: { trusted: facts } });
  }
}

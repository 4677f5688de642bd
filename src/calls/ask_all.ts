/**
 * Asks about several calls before their run, in one question for all of them: calls that no rule
 * allows, and servers without an approval.
 *
 * @module
 */

import type { ApprovalAnswer, Call, Question } from "../protocol/call.ts";
import { defined } from "../core/json.ts";
import type { ResolvedCall } from "../servers/server.ts";
import type { Unapproved } from "../policy/server_identity.ts";
import { paced } from "../io/paced.ts";
import { soon } from "../io/waiting.ts";
import { type ApprovalHost, askUser } from "./decisions.ts";
import { keepsChanging, MAX_PASSES } from "./restart.ts";
import { digestOf, type Subject } from "../policy/subject.ts";
import { readIn, trustSubject } from "../policy/trust_subject.ts";

/** How many rounds an approval may take after a yes: reading the code, and installing it. */
const MOST_ROUNDS = 4;

/** How long the others wait for a look at one call, in milliseconds. */
const LOOK_MS = 3_000;

/** Looks at calls, and asks about them. `Ahead` implements it. */
export interface CallLooker {
  /** Resolves a call. Throws if a rule denies it. */
  look(call: Call): Promise<ResolvedCall>;
  /** Throws if the arguments of a call do not fit its tool. */
  assertFits(call: ResolvedCall): Promise<void>;
  /** Asks the user, and returns the answer; undefined if it waits in the PML home. */
  ask(question: Question, first: Call): Promise<ApprovalAnswer | undefined>;
}

/** An open question about a call, with its text. */
interface CallQuestion {
  readonly call: ResolvedCall;
  readonly subject: Subject;
  /** Set if the server of the call is not approved. */
  readonly unapproved?: Unapproved;
}

/** The texts of the calls that the user approved, and the configuration at that time. */
interface ApprovedCalls {
  readonly config: object;
  readonly questions: ReadonlyMap<string, CallQuestion>;
}

/**
 * Asks once about all calls that need an answer. After a yes it saves the approvals, and returns a
 * ticket for each call by its `callId`. A ticket is valid once, for exactly the call that was
 * shown. The calls still pass all checks. A call that will be refused anyway is not asked about.
 */
export async function askForAll(
  calls: readonly Call[],
  host: ApprovalHost,
  looker: CallLooker,
): Promise<ReadonlyMap<string, ApprovalAnswer>> {
  const tickets = new Map<string, ApprovalAnswer>();
  let approvedCalls: ApprovedCalls | undefined;
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const unanswered = calls.filter(({ callId }) => !tickets.has(callId));
    const looks = await paced(unanswered, (call) => {
      const look = openOf(call, host, looker);
      // Approved code may have to be installed first.
      return approvedCalls === undefined ? inTime(look) : look;
    });
    const opens = (await Promise.all(looks)).filter((open) => open !== undefined).filter((open) => {
      if (!isCovered(open, { said: approvedCalls, host })) return true;
      tickets.set(open.call.callId, host.approvals.ticket(open.subject));
      return false;
    });
    if (opens.length === 0) break;
    const before = host.currentConfig();
    // guard: ask-all-yes
    await askPerson(opens, host, looker);
    // Changes while the user read were not shown.
    const isSame = host.currentConfig() === before;
    await acceptAll(opens, host);
    const shownQuestions = new Map((isSame ? opens : []).map((open) => [open.call.callId, open]));
    approvedCalls = { config: host.currentConfig(), questions: shownQuestions };
  }
  return tickets;
}

/** Waits for the preflight of a call. After a timeout (a server that hangs) the call asks itself. */
async function inTime<T>(look: Promise<T>): Promise<T | undefined> {
  return await soon(look, LOOK_MS) ? await look : undefined;
}

/** Returns the open question about a call; undefined if there is none, or if the call cannot run. */
async function openOf(
  call: Call,
  host: ApprovalHost,
  looker: CallLooker,
): Promise<CallQuestion | undefined> {
  try {
    return await lookedAt(call, host, looker);
  } catch {
    // The call path refuses the call again, with the reason and a journal record.
    return undefined;
  }
}

async function lookedAt(
  request: Call,
  host: ApprovalHost,
  looker: CallLooker,
): Promise<CallQuestion | undefined> {
  for (let pass = 0; pass < MAX_PASSES; pass++) {
    const call = await looker.look(request);
    const unapproved = await call.server.unapproved(call);
    if (unapproved !== undefined) {
      const subject = trustSubject(call, { ...unapproved, workspace: host.workspace });
      return { call, subject, unapproved };
    }
    // To look may have found the server, and other rules with it.
    if (!call.isCurrent()) continue;
    if (call.verdict?.kind === "allow") return undefined;
    if (await host.sessions.covers(call)) return undefined;
    await looker.assertFits(call);
    return { call, subject: await host.subjectOf(call) };
  }
  throw keepsChanging(request);
}

/**
 * Returns whether the user has approved this call already. As in the checks, the question about a
 * server showed the call itself, and the yes covers no later change.
 */
function isCovered(
  { call, subject, unapproved }: CallQuestion,
  { said, host }: {
    readonly said: ApprovedCalls | undefined;
    readonly host: Pick<ApprovalHost, "currentConfig">;
  },
): boolean {
  const before = said?.questions.get(call.callId);
  // guard: ask-all-read
  if (unapproved !== undefined || before === undefined || said?.config !== host.currentConfig()) {
    return false;
  }
  if (before.unapproved !== undefined) {
    // The question about a server did not show the texts of its tools.
    // guard: ask-all-look
    return before.unapproved.isLook !== true && subject.definitionLines === undefined;
  }
  // An approval that was in the same question may have brought other rules, which judged again.
  // guard: ask-all-same
  return digestOf([{ ...before.subject, rules: subject.rules }]) === digestOf([subject]);
}

/** Asks until there is a yes. Throws APPROVAL_DECLINED for a no. */
export async function askPerson(
  opens: readonly (Pick<CallQuestion, "subject" | "unapproved"> & { readonly call: Call })[],
  host: Pick<ApprovalHost, "approvals" | "record">,
  looker: Pick<CallLooker, "ask">,
): Promise<void> {
  const subjects = opens.map(({ subject }) => subject);
  const calls = opens.map(({ call }) => call);
  const [first] = calls;
  let answer = first?.answer;
  for (let round = 0; first !== undefined && round < MOST_ROUNDS; round++) {
    const result = await askUser(calls, host, { subjects, answer });
    if (result.kind !== "ask") return;
    const otherwise = opens.find(({ unapproved }) => unapproved !== undefined)?.unapproved?.code;
    answer = await looker.ask(defined({ ...result.question, otherwise }), first);
  }
  if (first !== undefined) throw keepsChanging(first);
}

/** Stores the approvals: once where several calls of a question need the same. */
async function acceptAll(
  opens: readonly CallQuestion[],
  host: ApprovalHost,
): Promise<void> {
  const accepted = new Set<string>();
  for (const { call, unapproved } of opens) {
    if (unapproved === undefined) continue;
    const { code, facts, accept } = unapproved;
    const key = JSON.stringify([code, facts]);
    if (!accepted.has(key)) await accept();
    await host.approvals.markRead(readIn(unapproved, host.approvals));
    accepted.add(key);
    await host.record({ event: "approved", call, detail: { trusted: facts } });
  }
}

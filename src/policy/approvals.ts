/**
 * Approval requests: questions to the user, and answers that allow one call to run once.
 *
 * @module
 */

import { randomHex, randomToken } from "../core/random.ts";
import { type ApprovalReply, type OfferedAnswer, YES_OR_NO } from "../protocol/answers.ts";
import type { ApprovalAnswer, Question } from "../protocol/call.ts";
import { PmlError } from "../core/errors.ts";
import { withoutUndefined } from "../core/json.ts";
import { containsKnownKey } from "../core/key_kinds.ts";
import { dropOldest } from "../core/memo.ts";
import type { WarningLog } from "../io/private_files.ts";
import type { Clock } from "../io/waiting.ts";
import {
  ApprovalFiles,
  type ApprovalLifetime,
  type GrantedApproval,
  type PendingApproval,
} from "./_approval_files.ts";
import { AskedMembers, metaKeysIn, shownMembers } from "./_members.ts";
import {
  alwaysText,
  fullText,
  LONGEST_QUESTION,
  sessionText,
  shortText,
  toolSetText,
} from "./_question.ts";
import { ReadDefinitions } from "./_read_definitions.ts";
import { digestOf, type Subject } from "./subject.ts";
import { keyOfSet, type ToolSet } from "./tool_set.ts";

export type { PendingApproval } from "./_approval_files.ts";
export { toolSetText } from "./_question.ts";

/**
 * The meaning of an answer: the reply that counts; "no-channel" if the client probably answers
 * without the user, so that only a terminal can ask; undefined if the answer does not belong to an
 * open question about exactly these subjects.
 */
export type AnswerMeaning = Exclude<ApprovalReply, "unoffered"> | "no-channel" | undefined;

/** An answer that covers calls until a client disconnects. */
export interface SessionOffer {
  /** The calls that it covers, as a rule. */
  readonly rule: string;
  readonly connection: AbortSignal;
  /** Whether pages in the client may make calls, too. */
  readonly hasPages: boolean;
}

/** The answers with an effect on later calls, besides "Always". */
export interface LastingAnswers {
  /** The answer until the client disconnects; undefined if it is not offered. */
  readonly session?: SessionOffer | undefined;
  /** The tools that one answer would cover: first those that read, then all. */
  readonly sets?: readonly ToolSet[];
  /** The deny rule that "Never" would add; undefined if it is not offered. */
  readonly never?: string | undefined;
}

/** The effect of "Always". */
export interface AlwaysOffer {
  /** The rule that "Always" would add; undefined if it is not offered. */
  readonly always?: string | undefined;
  /** Where "Always" would write that rule, and where the rule would apply. */
  readonly reach?: string | undefined;
}

/** The options of one question. */
export interface QuestionOptions extends LastingAnswers, AlwaysOffer {
  /** Whether only an answer at a terminal counts, because the client answers without the user. */
  readonly terminalOnly?: boolean;
  /** Whether an answer also covers equal questions that are open at the same time. */
  readonly isShared?: boolean | undefined;
}

/**
 * The shortest time, in milliseconds, in which a user can read a question. A faster refusal counts
 * as one of the client's program, and a faster answer that covers more than this call counts as
 * "Yes".
 */
export const SOONEST_ANSWER = 300;
/** The maximum number of calls of one question in a client. */
const MOST_CALLS = 10;
const MOST_CALLS_IN_TERMINAL = 1_000;
/** The maximum number of remembered connections whose questions wait for a terminal. */
const CONNECTIONS_MAX = 1_000;
/** The maximum number of questions for which PML remembers a reply that was not offered. */
const UNOFFERED_MAX = 100;
/** The maximum number of characters that all open questions together may keep in memory. */
const MOST_TEXT = 64_000_000;
/** The minimum size that a question counts as, so that at most 1,000 questions are open. */
const LEAST_TEXT = 64_000;

interface OpenQuestion {
  readonly digest: string;
  readonly subjects: readonly Subject[];
  readonly question: Pick<Question, "answers" | "terminalOnly">;
  readonly session?: SessionOffer | undefined;
  /** The sets of tools that were shown, or would be shown on a terminal. */
  readonly sets: readonly ToolSet[];
  readonly setKeys: SetKeys;
  /** For each call, the names of the members that are its only difference from an earlier call. */
  readonly differing: readonly (readonly string[])[];
  /** The time of the question, in milliseconds since 1970. */
  readonly at: number;
  /** The effects of answers on later calls, by their replies. */
  readonly effects?: AnswerEffects | undefined;
  /** The time at which an earlier question with the same text was shown, if there was one. */
  readonly shownAt?: number | undefined;
  readonly size: number;
  /** Throws if the question was answered before, in this or another process. */
  readonly claim?: (() => Promise<void>) | undefined;
}

/** The effects of answers on later calls, by their replies. */
export type AnswerEffects = Readonly<Partial<Record<ApprovalReply, string>>>;

/** The keys of "Always" and of the sets of tools that a question offers, by their replies. */
type SetKeys = Readonly<Partial<Record<ApprovalReply, string>>>;

/** A question that the client stores instead of this process. */
export interface SentQuestion {
  /** The digest of the subjects. */
  readonly digest: string;
  readonly answers: readonly OfferedAnswer[];
  readonly setKeys: SetKeys;
  /** The time of the question, in milliseconds since 1970. */
  readonly at: number;
}

/** The open questions of this process, and the pending approvals in the PML home. */
export class Approvals {
  readonly #open = new Map<string, OpenQuestion>();
  #size = 0;
  readonly #files: ApprovalFiles;
  readonly #definitions: ReadDefinitions;
  readonly #members = new AskedMembers();
  /**
   * The connections of questions that wait for a terminal, by nonces that only this process knows.
   */
  readonly #terminalConnections = new Map<string, AbortSignal>();
  /** When a reply came that a question did not offer, by the digest of the question. */
  readonly #unofferedAt = new Map<string, number>();
  readonly #clock: Clock;
  readonly #ttl: number;
  #remark = "";

  /** Starts without questions. Opens nothing in the home yet. */
  constructor(home: string, log: WarningLog, lifetime: ApprovalLifetime) {
    this.#files = new ApprovalFiles(home, log, lifetime);
    this.#definitions = new ReadDefinitions(home, log);
    this.#clock = lifetime.clock ?? Date;
    this.#ttl = lifetime.ttl;
  }

  /** Sets a text that is appended to the next question. */
  addRemark(remark: string): void {
    this.#remark = `\n${remark}\n`;
  }

  /** Opens a question about one or more calls, with an unguessable handle. */
  open(subjects: readonly Subject[], options: QuestionOptions = {}): Question {
    if (subjects.length > MOST_CALLS_IN_TERMINAL) throw tooManyError(subjects.length);
    this.#files.sweep();
    const [subject] = subjects;
    // An "Always" for several calls would allow more than the user expects.
    const offers: QuestionOptions = subjects.length === 1 ? options : {};
    const { always, session, sets = [], never } = offers;
    const differing = subjects.map((each) => this.#members.rememberAndCompare(each));
    const sessionEffect = session && sessionText(session, subject);
    const alwaysEffect = always && `${alwaysText(always, subject, options.reach)}\n`;
    const effects = [sessionEffect, alwaysEffect].filter((effect) => effect !== undefined);
    const plain = [fullText(subjects, differing), ...effects.length > 0 ? ["\n"] : [], ...effects]
      .join("");
    const remark = this.#takeRemark();
    // A client offers one set, and only if all definitions that it covers fit into the question.
    const [set] = sets.filter((candidate) =>
      plain.length + toolSetText(candidate).length + remark.length <= LONGEST_QUESTION
    );
    const text = plain + (set === undefined ? "" : toolSetText(set)) + remark;
    const tooLong = text.length > LONGEST_QUESTION || subjects.length > MOST_CALLS;
    const question = {
      text: tooLong ? shortText(subjects, text.length) : text,
      answers: answersOf({ session, always, sets: set === undefined ? [] : [set], never }),
      suggested: suggestedFor(subjects),
      terminalOnly: options.terminalOnly === true || tooLong,
    };
    const memory = {
      ...{ length: text.length, differing, session, sets, always, reach: options.reach },
      effects: {
        ...withoutUndefined({ Session: sessionEffect, Always: alwaysEffect }),
        ...never !== undefined && { Never: `The rule ${never} denies this tool from now on` },
      },
    };
    if (options.isShared !== true) {
      return { handle: this.#keep(subjects, question, memory), ...question };
    }
    const shared = digestOf(subjects);
    const first = [...this.#open.values()].find(({ digest }) => digest === shared);
    const handle = this.#keep(subjects, question, {
      ...memory,
      shownAt: first?.shownAt ?? first?.at,
    });
    return { handle, ...question, shared };
  }

  #takeRemark(): string {
    const remark = this.#remark;
    this.#remark = "";
    return remark;
  }

  /** Returns the calls and the answers' effects of a question; undefined if it is not open. */
  openQuestion(handle: string): Pick<OpenQuestion, "subjects" | "effects"> | undefined {
    return this.#open.get(handle);
  }

  /** Returns whether the user has read the texts of a definition with this hash. */
  hasRead(definition: string): boolean {
    return this.#definitions.has(definition);
  }

  /** Records which definitions the user has read and approved. */
  async markRead(definitions: readonly string[]): Promise<void> {
    for (const definition of new Set(definitions)) await this.#definitions.add(definition);
  }

  /** Returns an answer for a call that the user has just approved, alone or in a batch. */
  answerYes(subject: Subject): ApprovalAnswer {
    const question = { answers: YES_OR_NO, terminalOnly: false };
    return { handle: this.#keep([subject], question), reply: "Yes" };
  }

  /**
   * Returns the meaning of an answer. Compares the digest of the subjects, the connection, the rule
   * of "Always" and the sets of tools at the question with the present ones. The handle can be used
   * only once, whatever the result.
   */
  settle(
    { handle, reply }: ApprovalAnswer,
    digest: string,
    { session, sets = [], ...offer }: LastingAnswers & AlwaysOffer = {},
  ): AnswerMeaning {
    const open = this.#take(handle);
    // guard: digest
    if (open?.digest !== digest || open.question.terminalOnly) return undefined;
    const isTooSoon = this.#clock.now() - (open.shownAt ?? open.at) < SOONEST_ANSWER;
    if (reply === "cancelled") return isTooSoon ? "no-channel" : reply;
    if (reply === "unoffered") return this.#meaningOfUnoffered(digest);
    // guard: offered-answer
    if (!open.question.answers.some((offered) => offered.reply === reply)) {
      return this.#meaningOfUnoffered(digest);
    }
    switch (reply) {
      case "Yes":
        return "Yes";
      case "No":
      case "Never":
        return isTooSoon ? "no-channel" : reply;
      case "Session":
        // guard: session-asked
        if (session === undefined || session.connection !== open.session?.connection) return "Yes";
        return isTooSoon ? "Yes" : reply;
      case "Always":
        // Since the question the rules may have changed, so that "Always" would write another rule.
        // guard: shown-always
        if (keyOfAlways(offer) !== open.setKeys.Always) return "Yes";
        return isTooSoon ? "Yes" : reply;
      case "Reads":
      case "All": {
        const set = sets.find((candidate) => candidate.reply === reply);
        const isSame = set !== undefined && keyOfSet(set) === open.setKeys[reply];
        // guard: shown-set
        if (!isSame) return "Yes";
        return isTooSoon ? "Yes" : reply;
      }
    }
  }

  /**
   * Returns the meaning of a reply that was not offered. After the first such reply PML asks the
   * client once more. After the second it asks the user on a terminal, because the client may
   * always reply like this.
   */
  #meaningOfUnoffered(digest: string): AnswerMeaning {
    const now = this.#clock.now();
    const isSecond = now - (this.#unofferedAt.get(digest) ?? -Infinity) < this.#ttl;
    this.#unofferedAt.set(digest, now);
    dropOldest(this.#unofferedAt, UNOFFERED_MAX);
    return isSecond ? "no-channel" : undefined;
  }

  /**
   * Returns the meaning of the user's answer to the question with a digest. The answer comes from
   * the client or, if the client has none that counts, from a terminal.
   */
  async meaningOf(
    answer: ApprovalAnswer | undefined,
    digest: string,
    lasting: LastingAnswers & AlwaysOffer = {},
  ): Promise<AnswerMeaning | "terminal"> {
    const claim = answer && this.#open.get(answer.handle)?.claim;
    const settled = answer && this.settle(answer, digest, lasting);
    // guard: sealed-once
    if (settled !== undefined) await claim?.();
    if (settled !== undefined && settled !== "no-channel") return settled;
    const approved = await this.#files.take(digest);
    if (approved === undefined) return settled;
    return this.#isForSession(approved, lasting) ? "Session" : "terminal";
  }

  /** Returns whether an approval at a terminal is for the session that asked, in this process. */
  #isForSession({ session: nonce = "" }: GrantedApproval, { session }: LastingAnswers): boolean {
    const connection = this.#terminalConnections.get(nonce);
    this.#terminalConnections.delete(nonce);
    // guard: session-terminal
    if (connection !== session?.connection) return false;
    return connection !== undefined;
  }

  /**
   * Saves a question in the PML home for `pml approve`, if the client cannot ask. Returns undefined
   * if the handle is unknown or expired.
   */
  async saveForTerminal(
    handle: string,
    otherwise?: Question["otherwise"],
  ): Promise<PendingApproval | undefined> {
    const open = this.#take(handle);
    if (open === undefined) return undefined;
    const offers = (reply: ApprovalReply) =>
      open.question.answers.some((offered) => offered.reply === reply);
    const [always, never] = [offers("Always"), offers("Never")];
    const nonce = open.session && randomHex(32);
    if (nonce !== undefined && open.session !== undefined) {
      this.#terminalConnections.set(nonce, open.session.connection);
      dropOldest(this.#terminalConnections, CONNECTIONS_MAX);
    }
    const { digest, subjects, differing, sets } = open;
    return await this.#files.write(digest, {
      ...withoutUndefined({ session: nonce, otherwise }),
      subjects,
      differing,
      sets,
      always,
      never,
    });
  }

  /** Removes a question from memory for the client to store; undefined if the handle is unknown. */
  send(handle: string): SentQuestion | undefined {
    const open = this.#take(handle);
    if (open === undefined) return undefined;
    const { digest, question: { answers }, setKeys, at } = open;
    return { digest, answers, setKeys, at };
  }

  /** Restores a question that the client stored, and returns its handle. */
  restore(
    { digest, answers = YES_OR_NO, setKeys = {}, at }: SentQuestion,
    claim: () => Promise<void>,
  ): string {
    // The clock of another machine may be ahead.
    const restored = { digest, at: Math.min(at, this.#clock.now()), claim, setKeys };
    const question = { answers, terminalOnly: false };
    return this.#add({ ...restored, subjects: [], differing: [], sets: [], question });
  }

  /** Returns the pending questions for `pml approve`, the oldest first, with their full texts. */
  async pendingApprovals(): Promise<PendingApproval[]> {
    return await this.#files.list();
  }

  /**
   * Approves the question with this id. The same call can then run once, or the session that asked
   * keeps the answer.
   */
  async grant(id: string, isForSession = false): Promise<void> {
    await this.#files.grant(id, isForSession);
  }

  /** Returns whether the question with this id was approved, and its call did not run yet. */
  isGranted(id: string): boolean {
    return this.#files.isGranted(id);
  }

  /** Returns the `_meta` keys that are the only difference of the calls from earlier ones. */
  listableKeys({ subjects, differing = [] }: PendingApproval): readonly string[] {
    const names = subjects.flatMap((subject, index) =>
      shownMembers(subject).map(([name]) => name)
        .filter((name) => differing[index]?.includes(name))
    );
    return [...new Set(metaKeysIn(names))];
  }

  /**
   * Approves the question with this id without the `_meta` keys that the user just listed: the same
   * call can then run once with any values of these keys.
   */
  async grantWithout(id: string, keys: readonly string[]): Promise<void> {
    await this.#files.grantWithout(id, keys);
  }

  /** Removes the pending question with this id. Returns whether there was one. */
  async withdraw(id: string): Promise<boolean> {
    return await this.#files.withdraw(id);
  }

  /** Removes the pending questions about calls that the user answered elsewhere. */
  async withdrawAnswered(subjects: readonly Subject[]): Promise<void> {
    await this.#files.withdrawAnswered(subjects);
  }

  /** Removes the question with this id and its approval. Returns whether there was one. */
  async refuse(id: string): Promise<boolean> {
    return await this.#files.refuse(id);
  }

  #keep(
    subjects: readonly Subject[],
    question: OpenQuestion["question"],
    { length = 0, differing = [], session, sets = [], always, reach, effects, shownAt }:
      & { readonly length?: number }
      & AlwaysOffer
      & Partial<
        Pick<OpenQuestion, "differing" | "session" | "sets" | "effects" | "shownAt">
      > = {},
  ): string {
    const digest = digestOf(subjects);
    const setKeys = {
      ...Object.fromEntries(sets.map((set) => [set.reply, keyOfSet(set)])),
      ...always !== undefined && { Always: keyOfAlways({ always, reach }) },
    };
    const offers = { question, session, sets, setKeys, effects };
    const open = { digest, subjects, ...offers, differing, at: this.#clock.now(), shownAt };
    const size = length + sets.reduce((sum, set) => sum + toolSetText(set).length, 0);
    return this.#add(open, Math.max(size, LEAST_TEXT));
  }

  #add(question: Omit<OpenQuestion, "size">, size = LEAST_TEXT): string {
    const handle = randomToken(32);
    for (const oldest of this.#open.keys()) {
      if (this.#size + size <= MOST_TEXT) break;
      this.#drop(oldest);
    }
    this.#open.set(handle, { ...question, size });
    this.#size += size;
    return handle;
  }

  #drop(handle: string): OpenQuestion | undefined {
    const open = this.#open.get(handle);
    // guard: handle-once
    this.#open.delete(handle);
    this.#size -= open?.size ?? 0;
    return open;
  }

  #take(handle: string): OpenQuestion | undefined {
    const open = this.#drop(handle);
    const age = this.#clock.now() - (open?.at ?? Infinity);
    // guard: handle-age
    return age >= 0 && age < this.#ttl ? open : undefined;
  }
}

/**
 * Returns a key that is the same as long as "Always" would write the same rule to the same file.
 */
function keyOfAlways({ always = "", reach = "" }: AlwaysOffer): string {
  return JSON.stringify([always, reach]);
}

/** Returns the answers of a question, in the order in which a form and a terminal show them. */
export function answersOf(
  { session, always, sets = [], never }: Pick<QuestionOptions, "always" | "sets" | "never"> & {
    readonly session?: unknown;
  },
): readonly OfferedAnswer[] {
  return [
    { reply: "Yes" },
    ...session === undefined ? [] : [{ reply: "Session" } as const],
    ...always === undefined ? [] : [{ reply: "Always" } as const],
    ...sets.map(({ reply, tools }) => ({ reply, tools: tools.length })),
    { reply: "No" },
    ...never === undefined ? [] : [{ reply: "Never" } as const],
  ];
}

/** Returns the answer that a form shows as chosen. */
function suggestedFor(subjects: readonly Subject[]): Question["suggested"] {
  const isHarmful = (subject: Subject) =>
    subject.isRisky === true || containsKnownKey([subject.arguments, subject.members]);
  // guard: suggested-no
  if (subjects.some(isHarmful)) return "No";
  return "Yes";
}

function tooManyError(count: number): PmlError {
  return new PmlError("BAD_ARGUMENTS", `Cannot ask about ${count} calls in one question`, {
    hint: `Send at most ${MOST_CALLS_IN_TERMINAL} calls that need an answer at a time`,
    detail: { most: MOST_CALLS_IN_TERMINAL },
  });
}

/**
 * Approval requests: questions to the user, and answers that allow one call to run once.
 *
 * @module
 */

import { randomBytes } from "node:crypto";
import type { ApprovalAnswer, ApprovalReply, Question } from "../protocol/call.ts";
import { PmlError } from "../core/errors.ts";
import type { WarningLog } from "../io/private_files.ts";
import type { Clock } from "../io/waiting.ts";
import { type ApprovalLifetime, type PendingApproval, PendingFiles } from "./_pending.ts";
import { AskedMembers, metaKeysIn, shownMembers } from "./_members.ts";
import { alwaysText, fullText, LONGEST_QUESTION, shortText } from "./_question.ts";
import { ReadDefinitions } from "./_read_definitions.ts";
import { digestOf, type Subject } from "./subject.ts";

export type { PendingApproval } from "./_pending.ts";

/**
 * The meaning of an answer; undefined if it does not belong to an open question about exactly these
 * subjects.
 */
export type AnswerMeaning = ApprovalReply | "no-channel" | undefined;

/** The options of one question. */
export interface QuestionOptions {
  /** The rule that "Always" would add; undefined if it is not offered. */
  readonly always?: string | undefined;
  /** Whether only an answer at a terminal counts, because the client answers without the user. */
  readonly terminalOnly?: boolean;
  /** Whether an answer also covers equal questions that are open at the same time. */
  readonly isShared?: boolean | undefined;
}

/**
 * The shortest time, in milliseconds, in which a user can read a question. A faster refusal came
 * from a program, and a faster "Always" counts as "Yes".
 */
const SOONEST_ANSWER = 300;
/** The maximum number of calls of one question in a client. */
const MOST_CALLS = 10;
const MOST_CALLS_IN_TERMINAL = 1_000;
/** The maximum number of characters that all open questions together may keep in memory. */
const MOST_TEXT = 64_000_000;
/** The size that a small question counts as, so that at most a thousand are open. */
const LEAST_TEXT = 64_000;

interface OpenQuestion {
  readonly digest: string;
  readonly subjects: readonly Subject[];
  readonly question: Pick<Question, "always" | "terminalOnly">;
  /** The members in which each call alone differs from an earlier one. */
  readonly differing: readonly (readonly string[])[];
  readonly at: number;
  /** The time at which an earlier question with the same text was shown, if there was one. */
  readonly shownAt?: number | undefined;
  readonly size: number;
  /** Throws if the question was answered before, in this or another process. */
  readonly claim?: (() => Promise<void>) | undefined;
}

/** A question that the client stores instead of this process. */
export interface SentQuestion {
  /** The digest of the subjects. */
  readonly digest: string;
  readonly always: boolean;
  /** The time of the question, in milliseconds since 1970. */
  readonly at: number;
}

/** The open questions of this process, and the pending approvals in the PML home. */
export class Approvals {
  readonly #open = new Map<string, OpenQuestion>();
  #size = 0;
  readonly #files: PendingFiles;
  readonly #definitions: ReadDefinitions;
  readonly #members = new AskedMembers();
  readonly #clock: Clock;
  readonly #ttl: number;
  #remark = "";

  /** Starts without questions. Opens nothing in the home yet. */
  constructor(home: string, log: WarningLog, lifetime: ApprovalLifetime) {
    this.#files = new PendingFiles(home, log, lifetime);
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
    if (subjects.length > MOST_CALLS_IN_TERMINAL) throw tooMany(subjects.length);
    this.#files.sweep();
    const [subject] = subjects;
    // An "Always" for several tools would allow more than the user expects.
    const always = subjects.length === 1 ? options.always : undefined;
    const differing = subjects.map((each) => this.#members.differing(each));
    const text = fullText(subjects, differing) +
      (always ? `\n${alwaysText(always, subject)}\n` : "") +
      this.#takeRemark();
    const tooLong = text.length > LONGEST_QUESTION || subjects.length > MOST_CALLS;
    const question = {
      text: tooLong ? shortText(subjects, text.length) : text,
      always: always !== undefined,
      terminalOnly: options.terminalOnly === true || tooLong,
    };
    const kept = { length: text.length, differing };
    if (options.isShared !== true) {
      return { handle: this.#keep(subjects, question, kept), ...question };
    }
    const shared = digestOf(subjects);
    const first = [...this.#open.values()].find(({ digest }) => digest === shared);
    const handle = this.#keep(subjects, question, {
      ...kept,
      shownAt: first?.shownAt ?? first?.at,
    });
    return { handle, ...question, shared };
  }

  #takeRemark(): string {
    const remark = this.#remark;
    this.#remark = "";
    return remark;
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
  ticket(subject: Subject): ApprovalAnswer {
    const question = { always: false, terminalOnly: false };
    return { handle: this.#keep([subject], question), reply: "Yes" };
  }

  /**
   * Checks an answer against the digest of the subjects. The handle can be used only once, whatever
   * the result.
   */
  settle({ handle, reply }: ApprovalAnswer, digest: string): AnswerMeaning {
    const open = this.#take(handle);
    // guard: digest
    if (open?.digest !== digest || open.question.terminalOnly) return undefined;
    const isTooSoon = this.#clock.now() - (open.shownAt ?? open.at) < SOONEST_ANSWER;
    switch (reply) {
      case "Yes":
        return "Yes";
      case "Always":
        return !open.question.always ? undefined : isTooSoon ? "Yes" : "Always";
      case "No":
      case "cancelled":
        return isTooSoon ? "no-channel" : reply;
    }
  }

  /** Returns the meaning of the user's answer for a digest, from the client or a terminal. */
  async meaningOf(
    answer: ApprovalAnswer | undefined,
    digest: string,
  ): Promise<AnswerMeaning | "terminal"> {
    const claim = answer && this.#open.get(answer.handle)?.claim;
    const settled = answer && this.settle(answer, digest);
    // guard: sealed-once
    if (settled !== undefined) await claim?.();
    const open = settled === undefined || settled === "no-channel";
    return open && await this.#files.take(digest) ? "terminal" : settled;
  }

  /**
   * Saves a question in the PML home for `pml approve`, if the client cannot ask. Returns undefined
   * if the handle is unknown or expired.
   */
  async leave(handle: string): Promise<PendingApproval | undefined> {
    const open = this.#take(handle);
    const { always } = open?.question ?? {};
    return open && await this.#files.leave(open.digest, { ...open, always: always === true });
  }

  /** Removes a question from memory for the client to store; undefined if the handle is unknown. */
  send(handle: string): SentQuestion | undefined {
    const open = this.#take(handle);
    return open && { digest: open.digest, always: open.question.always, at: open.at };
  }

  /** Restores a question that the client stored, and returns its handle. */
  takeBack({ digest, always, at }: SentQuestion, claim: () => Promise<void>): string {
    // The clock of another machine may be ahead.
    const kept = { digest, at: Math.min(at, this.#clock.now()), claim };
    const question = { always, terminalOnly: false };
    return this.#add({ ...kept, subjects: [], differing: [], question });
  }

  /** Returns the pending questions for `pml approve`, the oldest first, with their full texts. */
  async pendingApprovals(): Promise<PendingApproval[]> {
    return await this.#files.list();
  }

  /** Approves the question with this id. The same call can then run once. */
  async grant(id: string): Promise<void> {
    await this.#files.grant(id);
  }

  /** Returns the `_meta` keys that are the only difference of the calls from earlier ones. */
  listableKeys({ subjects, differing = [] }: PendingApproval): readonly string[] {
    const names = subjects.flatMap((subject, at) =>
      shownMembers(subject).map(([name]) => name).filter((name) => differing[at]?.includes(name))
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

  /** Removes the question with this id and its approval. Returns whether there was one. */
  async refuse(id: string): Promise<boolean> {
    return await this.#files.refuse(id);
  }

  #keep(
    subjects: readonly Subject[],
    question: OpenQuestion["question"],
    { length = 0, differing = [], shownAt }:
      & { readonly length?: number }
      & Partial<Pick<OpenQuestion, "differing" | "shownAt">> = {},
  ): string {
    const digest = digestOf(subjects);
    const kept = { digest, subjects, question, differing, at: this.#clock.now(), shownAt };
    return this.#add(kept, Math.max(length, LEAST_TEXT));
  }

  #add(question: Omit<OpenQuestion, "size">, size = LEAST_TEXT): string {
    const handle = randomBytes(32).toString("base64url");
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

function tooMany(count: number): PmlError {
  return new PmlError("BAD_ARGUMENTS", `Cannot ask about ${count} calls in one question`, {
    hint: `Send at most ${MOST_CALLS_IN_TERMINAL} calls that need an answer at a time`,
    detail: { most: MOST_CALLS_IN_TERMINAL },
  });
}

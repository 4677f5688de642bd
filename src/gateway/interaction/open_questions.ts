/**
 * The questions that wait in forms of clients. The user can also answer them on the page; the first
 * answer counts.
 *
 * @module
 */

import type { ApprovalReply } from "../../protocol/answers.ts";
import type { ApprovalAnswer, Question } from "../../protocol/call.ts";
import type { JsonObject } from "../../core/json.ts";
import { dropOldest } from "../../core/memo.ts";
import type { Clock } from "../../io/waiting.ts";
import { CancelReason } from "../../protocol/rpc_peer.ts";

/** A question that waits in a form of a client. */
export interface ClientQuestion {
  /** The id of the question on the page. The page never gets the handle, which the client uses. */
  readonly id: string;
  readonly question: Question;
  /** The name and the version of the client. */
  readonly info: JsonObject | undefined;
  /** When PML asked, in milliseconds since 1970. */
  readonly askedAt: number;
  /** When the question expires, in milliseconds since 1970. */
  readonly expires: number;
}

/** The reason why an answer has no effect. */
export type AnswerRefusal = "over" | "not offered" | "too soon";

/** A question, and who gets its answer. */
interface QuestionEntry extends ClientQuestion {
  /** The work that waits for the answer; undefined if the client sends it with a new request. */
  readonly work?: PromiseWithResolvers<ApprovalAnswer>;
  /** The answer on the page, until the client sends its own. */
  answer?: ApprovalAnswer;
}

/** The part of the gateway that asks the questions. */
interface QuestionsHost {
  /** Returns how long a question waits, in milliseconds. */
  waitMs(): number;
  /** Is called when the user answered a question on the page for which no request waits. */
  onAnswer(answer: ApprovalAnswer): void;
}

/** The shortest time in which a user can read a question, in milliseconds. */
const READING_MS = 300;
/** The maximum number of open questions. */
const QUESTIONS_MAX = 1_000;

/** The questions that wait in forms of clients. */
export class OpenQuestions {
  /** Is called after each change; undefined if no page follows the questions. */
  onChange: (() => void) | undefined;
  readonly #host: QuestionsHost;
  readonly #clock: Clock;
  /** The questions by their handles. */
  readonly #all = new Map<string, QuestionEntry>();

  /** Takes the part of the gateway that asks, and a clock. */
  constructor(host: QuestionsHost, clock: Clock = Date) {
    this.#host = host;
    this.#clock = clock;
  }

  /** Whether a page follows the questions. */
  get isFollowed(): boolean {
    return this.onChange !== undefined;
  }

  /** Returns the questions without an answer, the oldest first. */
  listOpen(): readonly ClientQuestion[] {
    this.#dropExpired();
    return [...this.#all.values()].filter(({ answer }) => answer === undefined);
  }

  /**
   * Asks in the client with `ask()` and on the page at the same time, and returns the first answer.
   * The signal that `ask()` gets aborts after an answer on the page, or if `signal` aborts.
   */
  async askBoth(
    question: Question,
    { info, signal, ask, waitMs }: {
      readonly info: JsonObject | undefined;
      /** How long `ask` waits, in milliseconds; by default as long as the host states. */
      readonly waitMs?: number | undefined;
      readonly signal: AbortSignal;
      readonly ask: (signal: AbortSignal) => Promise<ApprovalAnswer | undefined>;
    },
  ): Promise<ApprovalAnswer | undefined> {
    const work = Promise.withResolvers<ApprovalAnswer>();
    const withdrawal = new AbortController();
    const entry = this.#add(question, { info, work }, waitMs);
    try {
      return await Promise.race([work.promise, ask(AbortSignal.any([signal, withdrawal.signal]))]);
    } finally {
      this.#remove(question.handle, entry);
      withdrawal.abort(new CancelReason("The user answered on the page"));
    }
  }

  /** Adds a question that the result of a request contains. The client answers in a new request. */
  addSent(question: Question, info: JsonObject | undefined): void {
    this.#add(question, { info });
  }

  /**
   * Answers a question on the page. Returns why the answer does not count; undefined if it counts.
   */
  answer(id: string, reply: ApprovalReply): AnswerRefusal | undefined {
    this.#dropExpired();
    const entry = [...this.#all.values()].find((one) => one.id === id);
    // guard: page-first
    if (entry === undefined || entry.answer !== undefined) return "over";
    // guard: page-offered
    if (!entry.question.answers.some((offered) => offered.reply === reply)) return "not offered";
    // guard: page-soon
    if (this.#clock.now() - entry.askedAt < READING_MS) return "too soon";
    const { handle } = entry.question;
    const answer: ApprovalAnswer = { handle, reply, channel: "page" };
    entry.answer = answer;
    if (entry.work === undefined) this.#host.onAnswer(answer);
    else entry.work.resolve(answer);
    this.onChange?.();
    return undefined;
  }

  /**
   * Takes an answer of a client. Returns the answer that counts: the first one. But a refusal by the
   * client also counts after an answer on the page, because nothing has run yet.
   */
  take(answer: ApprovalAnswer): ApprovalAnswer {
    const entry = this.#all.get(answer.handle);
    if (entry === undefined) return answer;
    this.#remove(answer.handle, entry);
    if (entry.answer === undefined) return answer;
    // guard: page-refused
    if (answer.reply === "No" || answer.reply === "Never") return answer;
    return entry.answer;
  }

  #add(
    question: Question,
    entryParts: Pick<QuestionEntry, "info" | "work">,
    waitMs = this.#host.waitMs(),
  ): QuestionEntry {
    const askedAt = this.#clock.now();
    const expires = askedAt + waitMs;
    const entry: QuestionEntry = {
      id: crypto.randomUUID(),
      question,
      askedAt,
      expires,
      ...entryParts,
    };
    this.#all.set(question.handle, entry);
    dropOldest(this.#all, QUESTIONS_MAX);
    this.onChange?.();
    return entry;
  }

  #remove(handle: string, entry: QuestionEntry): void {
    if (this.#all.get(handle) !== entry) return;
    this.#all.delete(handle);
    this.onChange?.();
  }

  /** Drops questions that clients have not answered in time. */
  #dropExpired(): void {
    const now = this.#clock.now();
    for (const [handle, { expires, work }] of this.#all) {
      if (work === undefined && expires < now) this.#all.delete(handle);
    }
  }
}

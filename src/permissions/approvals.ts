/**
 * Questions to the person, and the answers that let one call pass once.
 *
 * @module
 */

import { randomBytes } from "node:crypto";
import type { Answer, Question, Reply } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { type PendingApproval, PendingFiles } from "./_pending.ts";
import { alwaysText, fullText, LONGEST_QUESTION, shortText } from "./_question.ts";
import { digestOf, type Subject } from "./subject.ts";

export type { PendingApproval } from "./_pending.ts";

/** What an answer comes to; nothing where it answers no open question about exactly this. */
export type Settled = Reply | "no-channel" | undefined;

/** What approvals need beside the PML home. */
export interface ApprovalsOptions {
  /** Told of files in the PML home that cannot be read, and that therefore approve nothing. */
  readonly warn: (message: string) => void;
  readonly now?: () => number;
  /** For how long an approval can be given and used, in milliseconds. */
  readonly ttl: number;
}

/** How a question is asked. */
export interface AskOptions {
  /** The rule that "Always" would add, where it is offered. */
  readonly always?: string | undefined;
  /** Set where the client turned out not to ask the person. */
  readonly terminalOnly?: boolean;
}

/** An answer that comes sooner than this was given by no person. */
const SOONEST_REFUSAL = 300;
const MOST_CALLS = 10;
/** How many characters all open questions together may keep alive. */
const MOST_TEXT = 64_000_000;
/** What a question counts at least, so that a thousand can be open. */
const LEAST_TEXT = 64_000;

interface Open {
  readonly digest: string;
  readonly subjects: readonly Subject[];
  readonly question: Omit<Question, "handle">;
  readonly at: number;
  readonly size: number;
}

/** The open questions of this process, and the approvals that wait in the PML home. */
export class Approvals {
  readonly #open = new Map<string, Open>();
  #size = 0;
  readonly #files: PendingFiles;
  readonly #now: () => number;
  readonly #ttl: number;

  /** Makes an empty set of questions; nothing is opened in the home before it is used. */
  constructor(home: string, { warn, ttl, now = Date.now }: ApprovalsOptions) {
    this.#files = new PendingFiles(home, { warn, now, ttl });
    this.#now = now;
    this.#ttl = ttl;
  }

  /** Asks about one call, or about several at once, under a handle that nobody can guess. */
  open(subjects: readonly Subject[], options: AskOptions = {}): Question {
    if (subjects.length > MOST_CALLS) throw tooMany(subjects.length);
    const [subject] = subjects;
    // One word for several tools would allow more than a person reads from it.
    const always = subjects.length === 1 ? options.always : undefined;
    const text = fullText(subjects) + (always ? `\n${alwaysText(always, subject?.tool)}\n` : "");
    const tooLong = text.length > LONGEST_QUESTION;
    const question = {
      text: tooLong ? shortText(subjects, text.length) : text,
      always: always !== undefined,
      terminalOnly: options.terminalOnly === true || tooLong,
    };
    return { handle: this.#keep(subjects, question, text.length), ...question };
  }

  /** Makes the answer that one call of an approved batch carries. */
  ticket(subject: Subject): Answer {
    const question = { text: "", always: false, terminalOnly: false };
    return { handle: this.#keep([subject], question), reply: "Yes" };
  }

  /** Takes an answer to what `digest` stands for. Its handle is used up, whatever comes of it. */
  settle({ handle, reply }: Answer, digest: string): Settled {
    const asked = this.#take(handle);
    if (asked?.digest !== digest || asked.question.terminalOnly) return undefined;
    switch (reply) {
      case "Yes":
        return "Yes";
      case "Always":
        return asked.question.always ? "Always" : undefined;
      case "No":
      case "cancelled":
        return this.#now() - asked.at < SOONEST_REFUSAL ? "no-channel" : reply;
    }
  }

  /** Tells what the person said of what `digest` stands for: to the client, or on a terminal. */
  async said(answer: Answer | undefined, digest: string): Promise<Settled | "terminal"> {
    const settled = answer && this.settle(answer, digest);
    const open = settled === undefined || settled === "no-channel";
    return open && await this.#files.take(digest) ? "terminal" : settled;
  }

  /**
   * Leaves a question in the PML home for `pml approve`, where the client cannot ask; gives
   * nothing where the handle is unknown or expired.
   */
  async leave(handle: string): Promise<PendingApproval | undefined> {
    const asked = this.#take(handle);
    return asked && await this.#files.leave(asked.digest, asked.subjects);
  }

  /** Lists what waits for `pml approve`, the oldest first, with the text in full. */
  async pendingApprovals(): Promise<PendingApproval[]> {
    return await this.#files.list();
  }

  /** Approves what waits under this id: the same call then passes once. */
  async grant(id: string): Promise<void> {
    await this.#files.grant(id);
  }

  /** Takes what waits under this id away, unapproved. */
  async refuse(id: string): Promise<void> {
    await this.#files.refuse(id);
  }

  #keep(subjects: readonly Subject[], question: Open["question"], length = 0): string {
    const handle = randomBytes(32).toString("base64url");
    const size = Math.max(length, LEAST_TEXT);
    for (const oldest of this.#open.keys()) {
      if (this.#size + size <= MOST_TEXT) break;
      this.#drop(oldest);
    }
    const digest = digestOf(subjects);
    this.#open.set(handle, { digest, subjects, question, at: this.#now(), size });
    this.#size += size;
    return handle;
  }

  #drop(handle: string): Open | undefined {
    const asked = this.#open.get(handle);
    this.#open.delete(handle);
    this.#size -= asked?.size ?? 0;
    return asked;
  }

  #take(handle: string): Open | undefined {
    const asked = this.#drop(handle);
    const age = this.#now() - (asked?.at ?? Infinity);
    return age >= 0 && age < this.#ttl ? asked : undefined;
  }
}

function tooMany(count: number): PmlError {
  return new PmlError("BAD_ARGUMENTS", `Cannot ask about ${count} calls in one question`, {
    hint: `Send at most ${MOST_CALLS} calls that need an answer at a time`,
    detail: { most: MOST_CALLS },
  });
}

/**
 * The work on a client's request: what it is told and asked meanwhile, and the questions that come
 * of it, whichever revision it speaks.
 *
 * @module
 */

import type { Answer, Call, CallClient, CallTool, Outcome, Question } from "../core/call.ts";
import type { PmlError } from "../core/errors.ts";
import type { Toolset } from "../core/toolset.ts";
import { type JsonObject, sorted } from "../core/json.ts";
import type { Client, Party } from "./_clients.ts";
import type { FaceSettings } from "./options.ts";
import { type ClientAsking, RequestWork } from "./_request_work.ts";
import { type AskClient, type Pause, Runs } from "./_runs.ts";
import {
  answerOf,
  ask,
  askMeanwhile,
  askNow,
  canAsk,
  canOpen,
  openPage,
  relay,
  type RelayOptions,
} from "./asking.ts";
import { SharedQuestions } from "./_shared_questions.ts";
import type { RequestContext } from "../protocol/connection.ts";
import { dropOldest } from "../core/memo.ts";

/** A request of a client. */
export interface ClientRequest {
  readonly client: Client;
  readonly context: RequestContext;
  readonly params: JsonObject;
  /** What the client says with it that it can do. */
  readonly capabilities: JsonObject;
  /** Returns the tools that exist for it now; undefined for all. */
  readonly toolset: () => Toolset | undefined;
}

/** The work on a request, as the calls that it makes see it. */
export type Working = Pick<Call, "cancellation" | "client"> & {
  /** The answer that the request brought. */
  readonly answer: Answer | undefined;
};

/** Has questions kept by clients, so that their answers can come to any process. */
export interface Replica {
  /** The name of this process, as the states begin that stand for work which was begun here. */
  readonly prefix: string;
  /** Returns the state that stands for a question about a request. */
  seal(handle: string, request: string): Promise<string>;
  /** Returns the handle of the question. Throws BAD_REQUEST if it was about another request. */
  open(state: string, request: string): Promise<string>;
}

/** What an exchange needs of the house. */
export interface ExchangeOptions {
  readonly callTool: CallTool;
  readonly settings: () => Pick<FaceSettings, "asksClient" | "approvalMs">;
  /** Leaves a question for the terminal, and gives the error that says so. */
  readonly leave: (question: Question) => Promise<PmlError>;
  /** Where one PML has several processes; undefined where it has one. */
  readonly replica: () => Replica | undefined;
}

/** One request has one question, or more where its server has to be looked up and trusted first. */
const MOST_ROUNDS = 4;
/** How many questions are remembered. More cannot wait. */
const MOST_ASKED = 1_000;

/** Works on the requests of clients. */
export class Exchange implements ClientAsking, Disposable {
  readonly #options: ExchangeOptions;
  readonly #runs: Runs<RequestContext>;
  /** The parties that were asked, by the handles of their questions. */
  readonly #parties = new Map<string, Party>();
  readonly #shared = new SharedQuestions();

  /** Makes an exchange without any request. */
  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.#runs = new Runs(
      () => options.settings().approvalMs,
      () => options.replica()?.prefix ?? "",
    );
  }

  /** Works on a request; one that has to ask goes on when its client comes again. */
  serve(
    request: ClientRequest,
    run: (working: Working) => Promise<Outcome>,
  ): Promise<JsonObject> {
    const { client, context } = request;
    const { cancellation, inputResponses = {}, requestState } = context;
    if (!client.isModern) {
      // Less than the question lives: what nobody answered can still be left for the terminal.
      const ask = askNow(context, () => this.#options.settings().approvalMs - 500);
      const reach = { ask, cancellation, latest: () => context };
      return this.#answered(new RequestWork(request, reach, this), run);
    }
    return this.#runs.visit({
      ...{ party: client.party, context, cancellation, responses: inputResponses },
      of: () => sameOf(request),
      state: typeof requestState === "string" ? requestState : undefined,
    }, (begun) => this.#answered(new RequestWork(request, begun, this), run));
  }

  /** Gives up what waits for clients. */
  [Symbol.dispose](): void {
    this.#runs[Symbol.dispose]();
    this.#shared[Symbol.dispose]();
  }

  /** Returns the functions that ask the client of a request. */
  questions(
    { capabilities }: Pick<ClientRequest, "capabilities">,
    askClient: AskClient,
  ): ReturnType<Exchange["asking"]> {
    return this.asking({ askClient, capabilities });
  }

  /** Returns the function that has a client open a page; undefined if it cannot. */
  opening(
    { capabilities, client }: Pick<ClientRequest, "capabilities" | "client">,
    askClient: AskClient,
  ): CallClient["onOpen"] {
    if (!canOpen(capabilities) || !this.#options.settings().asksClient) return undefined;
    return (page, signal) => openPage(page, { client, askClient, signal });
  }

  /** Returns the functions that ask a client: questions of servers, and PML's own. */
  asking(
    { askClient, capabilities }: Pick<RelayOptions, "askClient" | "capabilities">,
  ): Required<Pick<CallClient, "onAsk" | "onQuestion">> {
    const onQuestion: CallClient["onQuestion"] = async (question, until) => {
      const asks = () => this.#asks(question, capabilities);
      const said = asks() && await askMeanwhile(question, { askClient, signal: until });
      // The client may be nobody to ask any more.
      if (said && asks()) return said;
      throw await this.#options.leave(question);
    };
    return { onQuestion, onAsk: relay({ ...this.#options, askClient, capabilities, onQuestion }) };
  }

  /** Tells whether a question is put to the client. */
  #asks({ terminalOnly }: Question, capabilities: JsonObject): boolean {
    return this.#options.settings().asksClient && !terminalOnly && canAsk(capabilities);
  }

  #answered(
    work: RequestWork,
    run: (working: Working) => Promise<Outcome>,
  ): Promise<JsonObject | Pause> {
    const answer = answerOf(work.of.context);
    if (answer !== undefined) return this.#continued(work, { run, answer });
    return run(work).then((outcome) => {
      // A result is plain JSON.
      if (outcome.kind === "result") return outcome.result as unknown as JsonObject;
      return this.#asked(work, { run, question: outcome.question });
    });
  }

  /** Works on a request that brought an answer. */
  async #continued(
    work: RequestWork,
    { run, answer }: {
      readonly run: (working: Working) => Promise<Outcome>;
      readonly answer: Answer;
    },
  ): Promise<JsonObject | Pause> {
    const { isModern, party } = work.of.client;
    const replica = isModern ? this.#options.replica() : undefined;
    if (this.#isOf(answer.handle, party)) this.#shared.end(answer.handle, answer.reply);
    const own = replica
      ? { ...answer, handle: await replica.open(answer.handle, sameOf(work.of)) }
      : this.#own(answer, party);
    work.answer = own;
    // guard: late-channel
    if (!this.#options.settings().asksClient) work.answer = undefined;
    const outcome = await run(work);
    if (outcome.kind === "result") return outcome.result as unknown as JsonObject; // plain JSON
    return await this.#asked(work, { run, question: outcome.question });
  }

  /** Asks the question, and continues with the answer. */
  async #asked(
    work: RequestWork,
    { run, question: first }: {
      readonly run: (working: Working) => Promise<Outcome>;
      readonly question: Question;
    },
  ): Promise<JsonObject | Pause> {
    const { client: { isModern, party }, capabilities } = work.of;
    const { signal } = work.cancellation;
    const replica = isModern ? this.#options.replica() : undefined;
    let question = first;
    for (let round = 1;; round++) {
      if (round > MOST_ROUNDS) throw await this.#options.leave(question);
      const { handle } = question;
      const isAsked = this.#asks(question, capabilities);
      // The client brings the answer to any process of a replicated PML.
      const isShared = isAsked && replica === undefined;
      const reply = isShared ? await this.#shared.replyTo(question, { party, signal }) : undefined;
      if (reply === undefined && isModern && isAsked) {
        if (replica !== undefined) {
          return ask({ ...question, handle: await replica.seal(handle, sameOf(work.of)) });
        }
        this.#note(handle, party);
        return ask(question);
      }
      work.answer = reply === undefined
        ? await this.#askedNow(question, () => work.onQuestion(question, signal))
        : { handle, reply };
      const outcome = await run(work);
      if (outcome.kind === "result") return outcome.result as unknown as JsonObject; // plain JSON
      question = outcome.question;
    }
  }

  /** Asks while a request waits. Other requests that wait for the answer get it, too. */
  async #askedNow(
    { handle }: Question,
    ask: () => Promise<Answer | undefined>,
  ): Promise<Answer | undefined> {
    let answer: Answer | undefined;
    try {
      return answer = await ask();
    } finally {
      this.#shared.end(handle, answer?.reply);
    }
  }

  /** Remembers which party was asked. */
  #note(handle: string, party: Party): void {
    this.#parties.set(handle, party);
    dropOldest(this.#parties, MOST_ASKED);
  }

  /** Returns whether a party was asked a question, as far as that is remembered. */
  #isOf(handle: string, party: Party): boolean {
    return this.#parties.get(handle) === party;
  }

  /** Returns an answer. If another party was asked, its handle becomes one that nobody knows. */
  #own(answer: Answer | undefined, party: Party): Answer | undefined {
    const asked = answer && this.#parties.get(answer.handle);
    if (answer === undefined || asked === undefined || asked === party) return answer;
    return { ...answer, handle: crypto.randomUUID() };
  }
}

/** Returns what must be the same when a request comes again. */
function sameOf({ context, params: { _meta: _, ...same } }: ClientRequest): string {
  return sorted([context.method, same]);
}

/**
 * The work on a client's request: what it is told and asked meanwhile, and the questions that come
 * of it, whichever revision it speaks.
 *
 * @module
 */

import type { Answer, CallTool, Meanwhile, Outcome, Question } from "../core/call.ts";
import type { PmlError } from "../core/errors.ts";
import type { Toolset } from "../core/toolset.ts";
import { isObject, type JsonObject, sorted } from "../core/json.ts";
import type { Client, Party } from "./_clients.ts";
import type { FaceSettings } from "./options.ts";
import type { Cancel } from "../core/quick_tool.ts";
import { onAbort } from "../io/waiting.ts";
import { type AskClient, type Begun, type Pause, Runs, type Work } from "./_runs.ts";
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
import type { RequestContext } from "./connection.ts";
import { isAtLeast } from "../core/levels.ts";
import { type ProgressListener, withRisingValues } from "../core/progress.ts";
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

/** How the work on a request is given up, told of and asked for, and what the person answered. */
export interface Working extends Meanwhile {
  readonly signal: AbortSignal;
  readonly answer: Answer | undefined;
}

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
const LOG_LEVEL = "io.modelcontextprotocol/logLevel";

/** Works on the requests of clients. */
export class Exchange implements Disposable {
  readonly #options: ExchangeOptions;
  readonly #runs: Runs<RequestContext>;
  /** The parties that were asked, by the handles of their questions. */
  readonly #asked = new Map<string, Party>();
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
  async serve(
    request: ClientRequest,
    run: (working: Working) => Promise<Outcome>,
  ): Promise<JsonObject> {
    return await this.#visit(request, (begun) => this.#answered({ ...begun, request }, run));
  }

  /**
   * Returns the ways to the client of a request whose work goes on already, and what is to be
   * answered: what comes of it, or what the client is asked before.
   */
  later(
    request: ClientRequest,
    { over, cancel }: { readonly over: Promise<JsonObject>; readonly cancel: Cancel },
  ): { readonly ways: Meanwhile; readonly answer: Promise<JsonObject> } {
    const began = Promise.withResolvers<Begun<RequestContext>>();
    let latest: () => RequestContext | undefined = () => request.context;
    const answer = this.#visit(request, (begun) => {
      latest = begun.latest;
      began.resolve(begun);
      if (request.client.isModern) onAbort(begun.signal, () => cancel(begun.signal.reason));
      return over;
    });
    const ask: AskClient = async (asked) => await (await began.promise).ask(asked);
    return { ways: this.#waysOf(request, { ask, latest: () => latest() }), answer };
  }

  /** Gives up what waits for clients. */
  [Symbol.dispose](): void {
    this.#runs[Symbol.dispose]();
    this.#shared[Symbol.dispose]();
  }

  async #visit<T>(
    request: ClientRequest,
    work: Work<RequestContext, T>,
  ): Promise<T | Pause> {
    const { client, context } = request;
    const { signal, inputResponses = {}, requestState } = context.mcpReq;
    if (!client.isModern) {
      // Less than the question lives: what nobody answered can still be left for the terminal.
      const ask = askNow(context, () => this.#options.settings().approvalMs - 500);
      return await work({ ask, signal, latest: () => context });
    }
    const state = requestState<unknown>();
    return await this.#runs.visit({
      of: () => sameOf(request),
      party: client.party,
      context,
      signal,
      state: typeof state === "string" ? state : undefined,
      responses: inputResponses,
    }, work);
  }

  /** Returns the functions that ask a client: questions of servers, and PML's own. */
  asking(
    { askClient, capabilities }: Pick<RelayOptions, "askClient" | "capabilities">,
  ): Required<Pick<Meanwhile, "onAsk" | "onQuestion">> {
    const onQuestion: Meanwhile["onQuestion"] = async (question, until) => {
      const asks = () => this.#asks(question, capabilities);
      const said = asks() && await askMeanwhile(question, { askClient, signal: until });
      // The client may be nobody to ask any more.
      if (said && asks()) return said;
      throw await this.#options.leave(question);
    };
    return { onQuestion, onAsk: relay({ ...this.#options, askClient, capabilities, onQuestion }) };
  }

  /** Returns how the client of a request is asked and told while it is worked on. */
  #waysOf(
    { context, client, capabilities, toolset }: ClientRequest,
    { ask: askClient, latest }: Pick<Begun<RequestContext>, "ask" | "latest">,
  ): Meanwhile {
    const { settings } = this.#options;
    const { onAsk, onQuestion } = this.asking({ askClient, capabilities });
    const request = JSON.stringify(context.mcpReq.id);
    const sampling = isObject(capabilities.sampling) ? capabilities.sampling : undefined;
    const onOpen: Meanwhile["onOpen"] = canOpen(capabilities) && settings().asksClient
      ? (page, signal) => openPage(page, { client, askClient, signal })
      : undefined;
    const ways = { request, onAsk, onQuestion, onOpen, able: capabilities, sampling, toolset };
    return { ...ways, ...told(context, latest) };
  }

  /** Tells whether a question is put to the client. */
  #asks({ terminalOnly }: Question, capabilities: JsonObject): boolean {
    return this.#options.settings().asksClient && !terminalOnly && canAsk(capabilities);
  }

  async #answered(
    from: Begun<RequestContext> & { readonly request: ClientRequest },
    run: (working: Working) => Promise<Outcome>,
  ): Promise<JsonObject | Pause> {
    const { signal, request } = from;
    const { context, client, capabilities } = request;
    const { isModern, party } = client;
    const ways = this.#waysOf(request, from);
    const { onQuestion } = ways;
    const of = () => sameOf(request);
    const working = { signal, ...ways };
    const replica = isModern ? this.#options.replica() : undefined;
    const said = answerOf(context);
    if (said !== undefined && this.#isOf(said.handle, party)) {
      this.#shared.end(said.handle, said.reply);
    }
    let answer = said && replica
      ? { ...said, handle: await replica.open(said.handle, of()) }
      : this.#own(said, party);
    // guard: late-channel
    if (!this.#options.settings().asksClient) answer = undefined;
    for (let round = 1;; round++) {
      const outcome = await run({ ...working, answer });
      // A result is plain JSON.
      if (outcome.kind === "result") return outcome.result as unknown as JsonObject;
      const { question } = outcome;
      if (round > MOST_ROUNDS) throw await this.#options.leave(question);
      const isAsked = this.#asks(question, capabilities);
      // The client brings the answer to any process of a replicated PML.
      const isShared = isAsked && replica === undefined;
      const reply = isShared ? await this.#shared.replyTo(question, { party, signal }) : undefined;
      if (reply !== undefined) {
        answer = { handle: question.handle, reply };
        continue;
      }
      if (isModern && isAsked) {
        if (replica !== undefined) {
          return ask({ ...question, handle: await replica.seal(question.handle, of()) });
        }
        this.#note(question.handle, party);
        return ask(question);
      }
      answer = await this.#askedNow(question, async () => await onQuestion?.(question, signal));
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
    this.#asked.set(handle, party);
    dropOldest(this.#asked, MOST_ASKED);
  }

  /** Returns whether a party was asked a question, as far as that is remembered. */
  #isOf(handle: string, party: Party): boolean {
    return this.#asked.get(handle) === party;
  }

  /** Returns an answer. If another party was asked, its handle becomes one that nobody knows. */
  #own(answer: Answer | undefined, party: Party): Answer | undefined {
    const asked = answer && this.#asked.get(answer.handle);
    if (answer === undefined || asked === undefined || asked === party) return answer;
    return { ...answer, handle: crypto.randomUUID() };
  }
}

/** Returns what must be the same when a request comes again. */
function sameOf({ context, params: { _meta: _, ...same } }: ClientRequest): string {
  return sorted([context.mcpReq.method, same]);
}

/** Tells a client of progress and log messages, as far as it asked for them. */
function told(first: RequestContext, latest: () => RequestContext | undefined): Meanwhile {
  const { _meta, envelope } = first.mcpReq;
  const level: unknown = (envelope as JsonObject | undefined)?.[LOG_LEVEL];
  const notify = (method: string, params: object) => {
    // A client that is gone, or has gone to ask its person, misses nothing.
    latest()?.mcpReq.notify({ method, params: params as never }).catch(() => {});
  };
  const send: ProgressListener = (progress) => {
    // A request that comes again may have another token.
    const { progressToken } = latest()?.mcpReq._meta ?? {};
    if (isToken(progressToken)) notify("notifications/progress", { ...progress, progressToken });
  };
  // Few calls report anything.
  let rising: ProgressListener | undefined;
  return {
    ...(isToken(_meta?.progressToken) && {
      onProgress: (progress) => (rising ??= withRisingValues(send))(progress),
    }),
    ...(typeof level === "string" && {
      onMessage: (message) => {
        if (isAtLeast(message.level, level)) notify("notifications/message", message);
      },
    }),
  };
}

function isToken(value: unknown): boolean {
  return typeof value === "string" || typeof value === "number";
}

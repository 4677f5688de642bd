/**
 * Asks clients while PML works on their requests. Decides how an approval request reaches the user,
 * and resumes the work with the answer.
 *
 * @module
 */

import type {
  ApprovalAnswer,
  CallClient,
  CallTool,
  Outcome,
  Question,
} from "../../protocol/call.ts";
import type { JsonObject } from "../../core/json.ts";
import { pause } from "../../io/waiting.ts";
import type { Clients, RequestOwner } from "../_clients.ts";
import type { DroppedMembers } from "../_dropped_members.ts";
import type { Offers } from "../_offers.ts";
import type { GatewayHost, GatewaySettings } from "../options.ts";
import type { RequestContext } from "../../protocol/connection.ts";
import { approvalAnswerIn, approvalResult, openPage, requestApproval } from "./approval_form.ts";
import { ApprovalRequests } from "./approval_requests.ts";
import { canOpenPage, canShowForm } from "./capabilities.ts";
import {
  type ClientInput,
  type ClientRequest,
  identityOf,
  type InputSource,
  RequestClient,
  type RequestInput,
  type RequestScope,
} from "./request_client.ts";
import { OpenQuestions } from "./open_questions.ts";
import { type PendingInput, PendingInputs } from "./pending_input.ts";
import { type InputClient, serverInput } from "./server_input.ts";

/** The outcome of a call that has a result. */
type Result = Extract<Outcome, { readonly kind: "result" }>;

/** Makes the calls of a request. PML runs it again with the answer to an approval request. */
export type MakeCalls = (scope: RequestScope) => Promise<Outcome>;

/** Seals states that clients keep, so that any process of PML can accept the answers. */
export interface SealedStates {
  /** The name of this process. The states of work that has begun here contain it. */
  readonly prefix: string;
  /** Returns the state of an approval request: the handle, sealed for the client's `request`. */
  seal(handle: string, request: string): Promise<string>;
  /** Returns the handle in a state. Throws BAD_REQUEST if the state belongs to another request. */
  open(state: string, request: string): Promise<string>;
}

/** The parts of a gateway that an interaction needs. */
interface InteractionGateway {
  /** Undefined if PML has only one process. */
  readonly replica: SealedStates | undefined;
  /** Logs members of servers' messages that the client does not take. */
  readonly dropped: Pick<DroppedMembers, "reportServerMembers">;
}

/** The gateway that requests belong to. */
export interface RequestGateway extends InteractionGateway {
  readonly clients: Clients;
  readonly offers: Offers;
}

/** The parts of the gateway's host that an interaction needs. */
interface InteractionHost extends Pick<GatewayHost, "storeQuestion"> {
  settings(): Pick<GatewaySettings, "asksClient" | "asksPage" | "approvalMs">;
}

/**
 * How an approval request reaches the user: by a request to the client, by a result that asks the
 * client for input, on a page that is open, or by `pml approve` in a terminal.
 */
type ApprovalMethod = "elicitation" | "input_required" | "page" | "terminal";

/**
 * The maximum number of approval requests for one request of a client. The first approval requests
 * can be about the server: whether to install and to trust it.
 */
const APPROVALS_MAX = 4;
/**
 * How long before an approval request expires PML stops waiting for the client, in milliseconds. The
 * user can then still answer it in a terminal.
 */
const TERMINAL_MARGIN_MS = 500;
/**
 * How long a call waits for an answer on the page, in milliseconds: clients with an SDK end a
 * request after 60 seconds. The question then waits in the PML home.
 */
const PAGE_WAIT_MS = 50_000;

/** Serves the requests of clients, and asks their users. */
export class Interaction implements Disposable, InputSource {
  /** The questions that wait in forms of clients. */
  readonly questions: OpenQuestions;
  readonly #host: InteractionHost;
  readonly #gateway: InteractionGateway;
  readonly #callTool: CallTool;
  readonly #pending: PendingInputs;
  readonly #approvals = new ApprovalRequests();

  /** Takes the collaborators; serves no request yet. */
  constructor(host: InteractionHost, gateway: InteractionGateway, callTool: CallTool) {
    this.#host = host;
    this.#gateway = gateway;
    this.#callTool = callTool;
    this.#pending = new PendingInputs(() => host.settings().approvalMs, () => this.prefix);
    this.questions = new OpenQuestions({
      waitMs: () => host.settings().approvalMs,
      // The calls that wait for the same answer need not wait for the client.
      onAnswer: (answer) => this.#approvals.end(answer.handle, answer),
    });
  }

  /** The prefix of states and ids of this process; "" if PML has only one process. */
  get prefix(): string {
    return this.#gateway.replica?.prefix ?? "";
  }

  /** Serves a request. The result may ask a client of 2026-07-28 for input. */
  serve(request: ClientRequest, makeCalls: MakeCalls): Promise<JsonObject> {
    const answer = approvalAnswerIn(request.context);
    return answer === undefined
      ? this.#begin(request, makeCalls)
      : this.#resume(request, makeCalls, answer);
  }

  /** Returns the functions with which calls get input from a client. */
  inputFrom(
    client: Omit<InputClient, "onQuestion"> & { readonly info?: JsonObject | undefined },
  ): ClientInput {
    const { requestInput, capabilities, info } = client;
    const onQuestion: ClientInput["onQuestion"] = async (question, signal) => {
      const isReachable = () => this.#reachesClient(question, capabilities);
      if (this.#reachesPage(question)) {
        const options = { info, signal, ask: waitForPage, waitMs: PAGE_WAIT_MS };
        const answer = await this.questions.askBoth(question, options);
        if (answer && this.#host.settings().asksPage) return answer;
      } else if (isReachable()) {
        const ask = (signal: AbortSignal) =>
          requestApproval(question, { requestInput, capabilities, signal });
        const answer = await this.questions.askBoth(question, { info, signal, ask });
        // If the user has changed the settings meanwhile, answers of clients may no longer count.
        if (answer && isReachable()) return answer;
      }
      throw await this.#host.storeQuestion(question);
    };
    return { onQuestion, onServerRequest: this.serverInputFrom({ ...client, onQuestion }) };
  }

  /** Returns the function with which servers get input from a client. */
  serverInputFrom(client: InputClient): ClientInput["onServerRequest"] {
    return serverInput(client, this.#callTool, this.#host);
  }

  /** Returns the function that asks a client to open a page; undefined if it cannot. */
  pageOpener(
    { capabilities, client }: Pick<ClientRequest, "capabilities" | "client">,
    requestInput: RequestInput,
  ): CallClient["onOpen"] {
    if (!canOpenPage(capabilities) || !this.#host.settings().asksClient) return undefined;
    return (page, signal) => openPage(page, { client, requestInput, signal });
  }

  /**
   * Returns the unknown members (next to `method` and `params`) of a server's message if the client
   * takes them. Otherwise reports them, and returns undefined.
   */
  membersFor(
    context: Pick<RequestContext, "takesMembers"> | undefined,
    { method, members }: { readonly method: string; readonly members?: JsonObject | undefined },
  ): JsonObject | undefined {
    if (members === undefined || context?.takesMembers === true) return members;
    this.#gateway.dropped.reportServerMembers(method, members);
    return undefined;
  }

  /** Returns how long a client may take to answer a request, in milliseconds. */
  answerMs(): number {
    return this.#host.settings().approvalMs - TERMINAL_MARGIN_MS;
  }

  /** Cancels the work that waits for input of a owner that has disconnected. */
  leave(owner: RequestOwner): void {
    this.#pending.leave(owner);
  }

  /** Cancels the work that waits for input. */
  [Symbol.dispose](): void {
    this.#pending[Symbol.dispose]();
    this.#approvals[Symbol.dispose]();
  }

  /** Resumes the paused work of a request that has a state. Begins new work if no work is paused. */
  async #resume(
    request: ClientRequest,
    makeCalls: MakeCalls,
    answer: ApprovalAnswer,
  ): Promise<JsonObject> {
    const resumed = request.client.isStateless ? this.#pending.resume(request) : undefined;
    return await (resumed ?? this.#begin(request, makeCalls, answer));
  }

  #begin(
    request: ClientRequest,
    makeCalls: MakeCalls,
    answer?: ApprovalAnswer,
  ): Promise<JsonObject> {
    const work = (pending?: PendingInput) => {
      const client = new RequestClient(request, this, pending);
      return answer === undefined
        ? this.#perform(client, makeCalls)
        : this.#performApproved(client, makeCalls, answer);
    };
    return request.client.isStateless ? this.#pending.begin(request, work) : work();
  }

  /** Makes the calls of a request, and asks the user if they need an approval. */
  #perform(
    client: RequestClient,
    makeCalls: MakeCalls,
    answer?: ApprovalAnswer,
  ): Promise<JsonObject> {
    return makeCalls(scopeOf(client, answer)).then((outcome) =>
      outcome.kind === "result"
        ? this.#resultOf(outcome, client)
        : this.#requestApproval(outcome.question, client, makeCalls)
    );
  }

  /**
   * Returns the result of a request. The client also gets the members next to `result` of the
   * server's answer, if the client takes unknown members.
   */
  #resultOf({ result, members }: Result, client: RequestClient): JsonObject {
    if (members !== undefined) client.answerWith(members);
    return result as unknown as JsonObject; // plain JSON
  }

  /** Makes the calls of a request that contains the answer to an approval request. */
  async #performApproved(
    client: RequestClient,
    makeCalls: MakeCalls,
    answer: ApprovalAnswer,
  ): Promise<JsonObject> {
    const { clientRequest } = client;
    const effective = this.questions.take(this.#approvals.take(answer, clientRequest.client.owner));
    const replica = this.#replicaFor(clientRequest);
    const openedAnswer = replica === undefined
      ? effective
      : { ...answer, handle: await replica.open(answer.handle, identityOf(clientRequest)) };
    // The user may have changed the settings: then the client's answer does not count.
    // guard: late-channel
    if (!this.#host.settings().asksClient) return await this.#perform(client, makeCalls);
    return await this.#perform(client, makeCalls, openedAnswer);
  }

  /** Asks the user to approve, and makes the calls again with the answer. */
  async #requestApproval(
    first: Question,
    client: RequestClient,
    makeCalls: MakeCalls,
  ): Promise<JsonObject> {
    const { clientRequest, cancellation: { signal } } = client;
    const { owner } = clientRequest.client;
    let question = first;
    for (let count = 0; count < APPROVALS_MAX; count++) {
      const { handle } = question;
      const method = this.#methodFor(question, clientRequest);
      // With several processes, any process can get the answer, so calls cannot share it.
      const isShared = method !== "terminal" && this.#replicaFor(clientRequest) === undefined;
      const reply = isShared
        ? await this.#approvals.replyTo(question, { owner, signal })
        : undefined;
      if (reply === undefined && method === "input_required") {
        return await this.#inputRequired(question, clientRequest);
      }
      const answer = reply === undefined
        ? await this.#askOrLeave(question, client)
        : { handle, ...reply };
      const outcome = await makeCalls(scopeOf(client, answer));
      if (outcome.kind === "result") return this.#resultOf(outcome, client);
      question = outcome.question;
    }
    throw await this.#host.storeQuestion(question);
  }

  /** Decides how an approval request reaches the user of a client. */
  #methodFor(question: Question, { client, capabilities }: ClientRequest): ApprovalMethod {
    if (this.#reachesPage(question)) return "page";
    if (!this.#reachesClient(question, capabilities)) return "terminal";
    return client.isStateless ? "input_required" : "elicitation";
  }

  /** Returns whether an approval request goes to the client, and not to the terminal. */
  #reachesClient({ terminalOnly }: Question, capabilities: JsonObject): boolean {
    return this.#host.settings().asksClient && !terminalOnly && canShowForm(capabilities);
  }

  /** Returns whether an approval request goes to a page that is open, and nowhere else. */
  #reachesPage({ terminalOnly }: Question): boolean {
    return this.#host.settings().asksPage && !terminalOnly && this.questions.isFollowed;
  }

  /** Returns the result that asks a client for an approval. PML keeps no work for the answer. */
  async #inputRequired(question: Question, request: ClientRequest): Promise<JsonObject> {
    const replica = this.#replicaFor(request);
    if (replica === undefined) {
      this.#approvals.recordReceiver(request.client.owner, question.handle);
      this.questions.addSent(question, request.client.info);
      return approvalResult(question, request.capabilities);
    }
    const handle = await replica.seal(question.handle, identityOf(request));
    return approvalResult({ ...question, handle }, request.capabilities);
  }

  /**
   * Asks the client while the request waits. Other requests that wait for the same answer get it,
   * too. Throws if the question is left for the terminal.
   */
  async #askOrLeave(
    question: Question,
    { onQuestion, cancellation: { signal } }: RequestClient,
  ): Promise<ApprovalAnswer | undefined> {
    let answer: ApprovalAnswer | undefined;
    try {
      return answer = await onQuestion(question, signal);
    } finally {
      this.#approvals.end(question.handle, answer);
    }
  }

  /** Returns the sealed states, if PML has several processes and any of them can get the answer. */
  #replicaFor({ client }: ClientRequest): SealedStates | undefined {
    return client.isStateless ? this.#gateway.replica : undefined;
  }
}

/** Waits for an answer on the page. Rejects with the reason of the signal. */
async function waitForPage(signal: AbortSignal): Promise<undefined> {
  await pause(PAGE_WAIT_MS, signal);
  signal.throwIfAborted();
}

/** Returns the values that all calls of a request share. */
function scopeOf(client: RequestClient, answer: ApprovalAnswer | undefined): RequestScope {
  return { client, cancellation: client.cancellation, answer };
}

/**
 * The conversation with clients while PML works on their requests. It decides how an approval
 * request reaches the user, and resumes a request with the answer.
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
import type { Clients, Party } from "../_clients.ts";
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
  type RequestInput,
  type RequestScope,
} from "./client_request.ts";
import { type PendingInput, PendingInputs } from "./pending_input.ts";
import { type InputSource, RequestClient } from "./request_client.ts";
import { type InputClient, serverInput } from "./server_input.ts";

/** The outcome of a call that has a result. */
type Result = Extract<Outcome, { readonly kind: "result" }>;

/** Makes the calls of a request. It is called again with the answer to an approval request. */
export type MakeCalls = (scope: RequestScope) => Promise<Outcome>;

/** States that clients keep, so that the answers can come to any process of PML. */
export interface SealedStates {
  /** The name of this process. The states of work that has begun here contain it. */
  readonly prefix: string;
  /** Returns the state for the approval request of a request. */
  seal(handle: string, request: string): Promise<string>;
  /** Returns the handle. Throws BAD_REQUEST if the state belongs to another request. */
  open(state: string, request: string): Promise<string>;
}

/** The parts of a gateway that an interaction needs. */
interface InteractionGateway {
  /** Set if PML has several processes. */
  readonly replica: SealedStates | undefined;
  /** Reports members of servers' messages that the client does not take. */
  readonly dropped: Pick<DroppedMembers, "note">;
}

/** The gateway that requests belong to. */
export interface RequestGateway extends InteractionGateway {
  readonly clients: Clients;
  readonly offers: Offers;
}

/** The parts of the gateway's host that an interaction needs. */
interface InteractionHost extends Pick<GatewayHost, "leave"> {
  settings(): Pick<GatewaySettings, "asksClient" | "approvalMs">;
}

/**
 * How an approval request reaches the user: by a request to the client, by a result that asks the
 * client for input, or by `pml approve` in a terminal.
 */
type ApprovalMethod = "elicitation" | "input_required" | "terminal";

/**
 * The maximum number of approval requests of one request: its server may have to be found and
 * trusted first.
 */
const APPROVALS_MAX = 4;
/** An approval request that the client does not answer must still be valid in the terminal. */
const MARGIN_MS = 500;

/** Serves the requests of clients, and asks their users. */
export class Interaction implements Disposable, InputSource {
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
  }

  /** The prefix of states and ids that belong to this process, if PML has several. */
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

  /** Returns the functions by which calls get input from a client. */
  inputFrom(client: Omit<InputClient, "onQuestion">): ClientInput {
    const { requestInput, capabilities } = client;
    const onQuestion: ClientInput["onQuestion"] = async (question, signal) => {
      const isReachable = () => this.#reaches(question, capabilities);
      const answer = isReachable() && await requestApproval(question, {
        requestInput,
        capabilities,
        signal,
      });
      // The settings may have changed, so that clients are not asked now.
      if (answer && isReachable()) return answer;
      throw await this.#host.leave(question);
    };
    return { onQuestion, onAsk: this.inputAlone({ ...client, onQuestion }) };
  }

  /** Returns the function by which servers get input from a client. */
  inputAlone(client: InputClient): ClientInput["onAsk"] {
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

  /** Returns members of a server's message if the client takes them, and reports them otherwise. */
  membersFor(
    context: Pick<RequestContext, "takesMembers"> | undefined,
    { method, members }: { readonly method: string; readonly members?: JsonObject | undefined },
  ): JsonObject | undefined {
    if (members === undefined || context?.takesMembers === true) return members;
    this.#gateway.dropped.note(method, members);
    return undefined;
  }

  /** Returns how long a client may take to answer a request, in milliseconds. */
  answerMs(): number {
    return this.#host.settings().approvalMs - MARGIN_MS;
  }

  /** Cancels the work that waits for input of a party that has disconnected. */
  leave(party: Party): void {
    this.#pending.leave(party);
  }

  /** Cancels the work that waits for input. */
  [Symbol.dispose](): void {
    this.#pending[Symbol.dispose]();
    this.#approvals[Symbol.dispose]();
  }

  /** Resumes the work that a request with a state belongs to, or begins it with the answer. */
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
      const caller = new RequestClient(request, this, pending);
      return answer === undefined
        ? this.#perform(caller, makeCalls)
        : this.#performApproved(caller, makeCalls, answer);
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
   * Returns the result of a request. The client gets the other members of the answer if it takes
   * them.
   */
  #resultOf({ result, members }: Result, client: RequestClient): JsonObject {
    if (members !== undefined) client.answerWith(members);
    return result as unknown as JsonObject; // plain JSON
  }

  /** Makes the calls of a request that brings the answer to an approval request. */
  async #performApproved(
    client: RequestClient,
    makeCalls: MakeCalls,
    answer: ApprovalAnswer,
  ): Promise<JsonObject> {
    const { clientRequest } = client;
    const own = this.#approvals.take(answer, clientRequest.client.party);
    const replica = this.#replicaFor(clientRequest);
    const opened = replica === undefined
      ? own
      : { ...answer, handle: await replica.open(answer.handle, identityOf(clientRequest)) };
    // guard: late-channel
    if (!this.#host.settings().asksClient) return await this.#perform(client, makeCalls);
    return await this.#perform(client, makeCalls, opened);
  }

  /** Asks the user to approve, and makes the calls again with the answer. */
  async #requestApproval(
    first: Question,
    client: RequestClient,
    makeCalls: MakeCalls,
  ): Promise<JsonObject> {
    const { clientRequest, cancellation: { signal } } = client;
    const { party } = clientRequest.client;
    let question = first;
    for (let count = 0; count < APPROVALS_MAX; count++) {
      const { handle } = question;
      const method = this.#methodFor(question, clientRequest);
      // Clients bring the answer to any process, which knows nothing of other calls.
      const isShared = method !== "terminal" && this.#replicaFor(clientRequest) === undefined;
      const reply = isShared
        ? await this.#approvals.replyTo(question, { party, signal })
        : undefined;
      if (reply === undefined && method === "input_required") {
        return await this.#inputRequired(question, clientRequest);
      }
      const answer = reply === undefined
        ? await this.#askOrLeave(question, client)
        : { handle, reply };
      const outcome = await makeCalls(scopeOf(client, answer));
      if (outcome.kind === "result") return this.#resultOf(outcome, client);
      question = outcome.question;
    }
    throw await this.#host.leave(question);
  }

  /** Decides how an approval request reaches the user of a client. */
  #methodFor(question: Question, { client, capabilities }: ClientRequest): ApprovalMethod {
    if (!this.#reaches(question, capabilities)) return "terminal";
    return client.isStateless ? "input_required" : "elicitation";
  }

  /** Returns whether an approval request goes to the client, and not to the terminal. */
  #reaches({ terminalOnly }: Question, capabilities: JsonObject): boolean {
    return this.#host.settings().asksClient && !terminalOnly && canShowForm(capabilities);
  }

  /** Returns the result that asks a client for an approval. No work is kept for it. */
  async #inputRequired(question: Question, request: ClientRequest): Promise<JsonObject> {
    const replica = this.#replicaFor(request);
    if (replica === undefined) {
      this.#approvals.sentTo(request.client.party, question.handle);
      return approvalResult(question, request.capabilities);
    }
    const handle = await replica.seal(question.handle, identityOf(request));
    return approvalResult({ ...question, handle }, request.capabilities);
  }

  /**
   * Asks the client while the request waits; other requests that wait for the answer get it, too.
   * Throws if the question is left for the terminal.
   */
  async #askOrLeave(
    question: Question,
    { onQuestion, cancellation: { signal } }: RequestClient,
  ): Promise<ApprovalAnswer | undefined> {
    let answer: ApprovalAnswer | undefined;
    try {
      return answer = await onQuestion(question, signal);
    } finally {
      this.#approvals.end(question.handle, answer?.reply);
    }
  }

  /** Returns the processes of PML, if the client sends an answer to any of them. */
  #replicaFor({ client }: ClientRequest): SealedStates | undefined {
    return client.isStateless ? this.#gateway.replica : undefined;
  }
}

/** Returns the members that all calls of a request share. */
function scopeOf(client: RequestClient, answer: ApprovalAnswer | undefined): RequestScope {
  return { client, cancellation: client.cancellation, answer };
}

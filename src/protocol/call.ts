/**
 * A call, its client and its outcome.
 *
 * @module
 */

import type { ApprovalReply, OfferedAnswer } from "./answers.ts";
import type { Cancellation } from "../core/cancellation.ts";
import type { ErrorCode } from "../core/errors.ts";
import type { JsonNumber } from "../core/exact_number.ts";
import type { JsonObject } from "../core/json.ts";
import type { ToolDefinition } from "./tool.ts";
import type { ToolId } from "../core/tool_id.ts";
import type { Toolset } from "./toolset.ts";
import type { TraceContext } from "./trace.ts";
import type { Verdict } from "./verdict.ts";

/** One block of a result, as MCP defines it: `{type: "text", text}` and others. */
export interface ContentBlock {
  /** The kind of the block: `text`, `image`, `audio`, `resource` or `resource_link`. */
  readonly type: string;
  /** The fields of a block of this kind. */
  readonly [key: string]: unknown;
}

/** The result of a tool, as MCP defines it. Unknown fields are kept. */
export interface ToolResult {
  /** The part that a model reads. */
  readonly content: readonly ContentBlock[];
  /** The same result as JSON, if the tool returns it. */
  readonly structuredContent?: unknown;
  /** Whether the tool failed. Then the content contains the reason. */
  readonly isError?: boolean;
  /** Other fields of the result. */
  readonly [key: string]: unknown;
}

/** The progress of a call. */
export interface Progress {
  /** The work done so far, in any unit. It only grows. */
  readonly progress: number;
  /** The work to do in all, if it is known. */
  readonly total?: number;
  /** A text about the current step. */
  readonly message?: string;
}

/** The progress of a call, with numbers that keep the digits of the message. */
export interface ExactProgress extends Pick<Progress, "message"> {
  readonly progress: JsonNumber;
  readonly total?: JsonNumber;
}

/** The progress of a call, reported by its server or by PML. */
export interface ProgressReport extends ExactProgress {
  /** Set for PML's own reports. `withRisingValues()` then sets `progress`. */
  readonly ownReport?: OwnReport;
  /** The members of the message that PML does not know. */
  readonly members?: OtherMembers | undefined;
}

/**
 * The kinds of PML's own reports. `working`: PML prepares something that the call needs, such as an
 * installation. `waiting`: the server works on the call. `unresponsive`: the server has stopped
 * answering. `responsive`: it answers again, which PML does not report to clients.
 */
export type OwnReport = "working" | "waiting" | "unresponsive" | "responsive";

/** The user's answer to a question, with the handle of that question. */
export interface ApprovalAnswer {
  /** The handle of the question. */
  readonly handle: string;
  /** The user's reply. */
  readonly reply: ApprovalReply;
  /** Set if the user did not answer in the client. */
  readonly channel?: "page" | undefined;
}

/** A request that a server sends to the client. */
export interface ServerRequest {
  /** The name of the server. */
  readonly server: string;
  /** `elicitation/create`, `sampling/createMessage`, or a method of an extension. */
  readonly method: string;
  readonly params: JsonObject;
  /** The members next to `method` and `params` that PML does not know. */
  readonly members?: JsonObject | undefined;
  /** The name that the server gave the request, if it gave one. */
  readonly key?: string | undefined;
  /** Receives the progress that the client reports; undefined if the server wants none. */
  readonly onProgress?: ((progress: ProgressReport) => void) | undefined;
  /** Aborts when the server withdraws the request, or when the call is over. */
  readonly signal: AbortSignal;
}

/** A notification whose method no revision of MCP defines. */
export interface MethodNotification {
  readonly method: string;
  readonly params: JsonObject;
  /** The members next to `method` and `params` that PML does not know. */
  readonly members?: JsonObject | undefined;
}

/** A web page that the user has to open in a browser. */
export interface Page {
  readonly url: string;
  /** PML's own text about the purpose of the page. */
  readonly text: string;
  /** Resolves when the user has finished the page. */
  readonly done: Promise<unknown>;
}

/**
 * The client that waits for a call: its capabilities, and functions that notify and ask it while
 * the call runs. Use `changeClient()` to copy it, because a spread would call all getters.
 */
export interface CallClient {
  /**
   * Identifies the connection of the client, and aborts when it is closed. Undefined for a client
   * that lives for one request, and for calls that a server makes through PML.
   */
  readonly connection?: AbortSignal | undefined;
  /** The id of the client's request, as JSON. Several calls may belong to one request. */
  readonly requestId?: string | undefined;
  /** The span of the client's request, if PML records traces. */
  readonly trace?: TraceContext | undefined;
  readonly onProgress?: ((progress: ProgressReport) => void) | undefined;
  /**
   * Receives the log messages of the server: the params of `notifications/message`, and the members
   * next to `method` and `params` that PML does not know.
   */
  readonly onMessage?: ((message: JsonObject, members?: JsonObject) => void) | undefined;
  /**
   * Sends a request of the server to the client. Returns the result, or throws the client's error.
   */
  readonly onServerRequest?: ((request: ServerRequest) => Promise<JsonObject>) | undefined;
  /** Sends a notification of the server to the client. Returns whether the client still waits. */
  readonly onNotify?: ((notification: MethodNotification) => boolean) | undefined;
  /** The capabilities of the client. */
  readonly capabilities?: JsonObject | undefined;
  /** The name and the version of the client, as it states them. */
  readonly info?: JsonObject | undefined;
  /** Whether the client uses a revision before 2026-07-28. */
  readonly usesOlderRevision?: boolean | undefined;
  /** The client's capability `sampling`, about its model; undefined if it has none. */
  readonly sampling?: JsonObject | undefined;
  /** Returns the tools that the client may use now; undefined if it may use all. */
  readonly toolset?: (() => Toolset | undefined) | undefined;
  /**
   * Asks the user a question of PML while the request waits, and returns the answer; undefined if
   * the question waits in the PML home. Throws if the user cannot be asked; the hint of the error
   * is the next action. Aborting withdraws the question.
   */
  readonly onQuestion?:
    | ((question: Question, signal: AbortSignal) => Promise<ApprovalAnswer | undefined>)
    | undefined;
  /**
   * Asks the client to open a page for the user, and returns whether the user agreed. Undefined if
   * the client cannot open pages. Throws without an answer. Aborting withdraws the request.
   */
  readonly onOpen?: ((page: Page, signal: AbortSignal) => Promise<boolean>) | undefined;
}

/** The client of PML's own calls, which cannot be asked or notified. */
export const NO_CLIENT: CallClient = {};

/** Returns a client with some members changed. */
export function changeClient(
  client: CallClient,
  changes: Pick<CallClient, keyof CallClient>,
): CallClient {
  const {
    requestId,
    onProgress,
    onMessage,
    onServerRequest,
    capabilities,
    usesOlderRevision,
    sampling,
    toolset,
  } = client;
  const { onQuestion, onOpen, onNotify, info, connection, trace } = client;
  return {
    requestId,
    trace,
    onProgress,
    onMessage,
    onServerRequest,
    capabilities,
    usesOlderRevision,
    sampling,
    toolset,
    onQuestion,
    onOpen,
    onNotify,
    info,
    connection,
    ...changes,
  };
}

/** The members of a client that ask the user. */
export type QuestionHandlers = Pick<CallClient, "onServerRequest" | "onQuestion" | "onOpen">;

/** Returns the members of a client that ask the user, with `around` around each question. */
export function wrapQuestions(
  { onServerRequest, onQuestion, onOpen }: QuestionHandlers,
  around: <T>(ask: () => Promise<T>) => Promise<T>,
): QuestionHandlers {
  return {
    onServerRequest: onServerRequest && ((...args) => around(() => onServerRequest(...args))),
    onQuestion: onQuestion && ((...args) => around(() => onQuestion(...args))),
    onOpen: onOpen && ((...args) => around(() => onOpen(...args))),
  };
}

/** The client's request for a task. In revision 2026-07-28 the server decides if there is one. */
export type TaskRequest =
  | { readonly isStateless: true }
  | { readonly isStateless: false; readonly options: JsonObject };

/** The members of a message that PML does not know. It has at least one. */
export interface OtherMembers {
  /** The unknown members of the params and of their `_meta`. */
  readonly params?: JsonObject;
  /** The unknown members next to `method` and `params`. */
  readonly message?: JsonObject;
}

/** A request to run one tool, or another request to a server. Use `changeCall()` to copy it. */
export interface Call {
  /** The tool, or the part of MCP that another request belongs to, such as `server:@resources`. */
  readonly id: ToolId;
  /** The arguments of the tool, or the params of another request. */
  readonly arguments: JsonObject;
  /** The MCP method, such as `resources/read`, if the call is not for a tool. */
  readonly method?: string | undefined;
  /** Whether the message is a notification, which has no answer and never asks the user. */
  readonly isNotification?: boolean | undefined;
  /**
   * Whether the request reads an address that the server listed or linked, or that one of its
   * listed templates covers.
   */
  readonly isOffered?: boolean | undefined;
  /** The keys of the client's `_meta` that the server gets without an approval. */
  readonly meta?: JsonObject | undefined;
  /** The other members of the message, which the user approves and the server receives. */
  readonly members?: OtherMembers | undefined;
  /** Throws if the HTTP headers of the request do not match the definition of its tool. */
  readonly assertMatches?: ((definition: ToolDefinition) => void) | undefined;
  /** Set if the call may become a task, with the revision of the client that wants it. */
  readonly task?: TaskRequest | undefined;
  /**
   * The origin of the call: `tools/call`, `call`, `batch`, `plan`, `code`, `capability`,
   * `sampling`, `cli`, `library`, another method of MCP, or `server` for a request that a server
   * sends to the client during a call.
   */
  readonly via: string;
  /** Whether the user typed the name of the tool in a terminal. */
  readonly isTyped?: boolean | undefined;
  /** Whether another call waits for this one. Only the outer call counts for the capacity. */
  readonly isNested?: boolean | undefined;
  /** The id of the run that makes the call: of a plan, of code or of a capability. */
  readonly run?: string | undefined;
  /** How many capabilities wait for this call, one inside the other; 0 if it is not set. */
  readonly depth?: number | undefined;
  /** The name of the caller; `local` if PML serves a single user. */
  readonly actor: string;
  /** Cancels the call. */
  readonly cancellation: Cancellation;
  /** The client that waits for the result. */
  readonly client: CallClient;
  /** The id that connects the records and frames of one call. It is unique in this process. */
  readonly callId: string;
  /** The user's answer to an approval request about this call. */
  readonly answer?: ApprovalAnswer | undefined;
  /**
   * PML's own lines for the approval request of this call, next to the server's texts.
   */
  readonly facts?: readonly string[] | undefined;
  /** The decision of the rules. */
  readonly verdict?: Verdict | undefined;
  /** Set if PML added the arguments that the server's settings fix. */
  readonly fixed?: FixedArguments | undefined;
}

/**
 * Returns a call with some members changed. Copies members by name, because a call in the pipeline
 * has getters that a spread would lose.
 */
export function changeCall(call: Call, changes: Partial<Call>): Call {
  const {
    id,
    arguments: args,
    method,
    isOffered,
    meta,
    members,
    assertMatches,
    task,
    via,
    isTyped,
  } = call;
  const {
    isNested,
    run,
    depth,
    actor,
    cancellation,
    client,
    callId,
    answer,
    facts,
    verdict,
    fixed,
    isNotification,
  } = call;
  return {
    isNotification,
    id,
    arguments: args,
    method,
    isOffered,
    meta,
    members,
    assertMatches,
    task,
    via,
    isTyped,
    isNested,
    run,
    depth,
    actor,
    cancellation,
    client,
    callId,
    answer,
    facts,
    verdict,
    fixed,
    ...changes,
  };
}

/** The arguments of a call to which PML adds the arguments that the server's settings fix. */
export interface FixedArguments {
  /** The arguments that the caller sent, before PML added the fixed arguments. */
  readonly callerArguments: JsonObject;
  /** All arguments, as the user sees them: without values that may be secrets. */
  readonly shown: JsonObject;
}

/** Returns the arguments of a call as the user sees them. */
export function shownArguments({ arguments: args, fixed }: Call): JsonObject {
  return fixed?.shown ?? args;
}

/** A question to the user: PML's own text, and the handle that the answer must carry. */
export interface Question {
  readonly handle: string;
  readonly text: string;
  /** The answers that are possible, in the order in which they are shown. */
  readonly answers: readonly OfferedAnswer[];
  /** The preselected answer in a client's form: "No" if a quick yes could do harm. */
  readonly suggested: "Yes" | "No";
  /**
   * Whether the text is too long for a client's form, so that only a terminal can show all of it.
   */
  readonly terminalOnly: boolean;
  /** A value that is equal for questions with one common answer, while they are open together. */
  readonly shared?: string;
  /** The code of the error if PML cannot ask the user; by default APPROVAL_REQUIRED. */
  readonly otherwise?: ErrorCode;
}

/** The outcome of a call: its result, or a question to the user. Failures are thrown. */
export type Outcome =
  | {
    readonly kind: "result";
    readonly result: ToolResult;
    /** The status of a task, if the result describes a task and is not yet the tool's result. */
    readonly task?: string;
    /** The code of a problem that PML found in the result, such as OUTPUT_INVALID. */
    readonly code?: ErrorCode;
    /** The members next to `result` in the answer of the server that PML does not know. */
    readonly members?: JsonObject | undefined;
  }
  | { readonly kind: "ask"; readonly question: Question };

/** Runs a call. */
export type CallTool = (call: Call) => Promise<Outcome>;

/** Returns a result of one text block. */
export function textResult(text: string): ToolResult {
  return { content: [{ type: "text", text }] };
}

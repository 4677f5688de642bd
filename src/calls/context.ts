/**
 * One call: the request, its resolved server, the results of the checks, and its client.
 *
 * @module
 */

import type { Redactor } from "../audit/redact.ts";
import type {
  ApprovalAnswer,
  Call,
  CallClient,
  FixedArguments,
  Outcome,
  ProgressReport,
  TaskRequest,
} from "../protocol/call.ts";
import type { Verdict } from "../protocol/verdict.ts";
import { Cancellation, type CancelListener } from "../core/cancellation.ts";
import type { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import type { Maybe } from "../core/maybe.ts";
import type { ProgressListener } from "../protocol/progress.ts";
import type { CheckedCall, ResolvedCall, Server } from "../servers/server.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import type { Toolset } from "../protocol/toolset.ts";
import { type CallDeadline, callOverError, cancelledError, type TimedCall } from "./deadline.ts";
import { configChangesError } from "./restart.ts";

/** The collaborators of calls. */
export interface CallServices {
  /** Returns whether a decision of this version of the rules and the configuration is current. */
  isCurrent(version: number): boolean;
  /** Loads the definition of the tool of a call. */
  loadDefinition(call: CallContext): Maybe<ToolDefinition>;
  /**
   * Returns the client with the sampling of PML, if it is configured; otherwise the same client.
   */
  withSampling(call: CallContext, client: CallClient): CallClient;
  readonly redactor: Pick<Redactor, "clean">;
}

/** A call in the pipeline. Pass the object itself, because a spread copy has no methods. */
export class CallContext implements ResolvedCall, CheckedCall, TimedCall, CancelListener {
  // The members of the request are fields, because the checks and the server read them often.
  readonly id: ToolId;
  /** The name of the server, and the tool's name at the server. */
  readonly names: ReturnType<typeof splitToolId>;
  readonly method: string | undefined;
  readonly isNotification: boolean | undefined;
  readonly isOffered: boolean | undefined;
  readonly meta: JsonObject | undefined;
  readonly members: Call["members"];
  readonly assertMatches: Call["assertMatches"];
  readonly task: TaskRequest | undefined;
  readonly via: string;
  readonly isTyped: boolean | undefined;
  readonly isNested: boolean | undefined;
  readonly run: string | undefined;
  readonly depth: number | undefined;
  readonly actor: string;
  readonly callId: string;
  readonly facts: readonly string[] | undefined;
  /** Cancelled when the client cancels the request, and at the deadline. */
  readonly cancellation: Cancellation;
  arguments: JsonObject;
  /** The arguments that the user fixed for the tool, once they are added to `arguments`. */
  fixed: FixedArguments | undefined;
  /** The user's answer to an approval request about this call, until a check uses it. */
  answer: ApprovalAnswer | undefined;
  /** The decision of the rules. */
  verdict: Verdict | undefined;
  /** Whether the journal could not record the start. */
  isUnrecorded = false;
  /** The reason why the user's fixed arguments cannot be added; undefined if they can. */
  settingsError: PmlError | undefined;
  /**
   * The configuration that was current when the user approved the server in a question that showed
   * this call. The answer covers the call itself as long as no file has changed.
   */
  approvedWith: object | undefined;
  /**
   * Returns an answer for the approved subject, in case the checks begin again after the approval.
   */
  approval: (() => ApprovalAnswer) | undefined;
  /** Whether the rules or the definition changed after the checks. */
  hasChanged = false;
  /** Whether the server's skills were listed again because a result did not match the list. */
  isSkillRenewed = false;
  /** The deadline of the call; undefined before the server gets the call. */
  deadline: CallDeadline | undefined;
  /** When the journal recorded the start, by `performance.now()`; 0 before. */
  startedAt = 0;
  /** When the server got the call, by `performance.now()`; 0 before. */
  sentAt = 0;
  /** When the server answered or failed, by `performance.now()`; 0 before. */
  answeredAt = 0;
  /** The server's outcome; undefined if the server failed. */
  outcome: Outcome | undefined;
  /** The index of the call in `RunningCalls`; -1 if it is not there. */
  runningIndex = -1;
  server!: Server;
  /** The version of the rules and the configuration with which the call was resolved. */
  version = -1;
  /**
   * Whether the server was blocked when the call was resolved, so that its settings were ignored.
   */
  isBlocked = false;
  readonly #request: Call;
  readonly #services: CallServices;
  #definition: Maybe<ToolDefinition> | undefined;
  #rejectWaiting: ((reason: unknown) => void) | undefined;
  #client: CallClient | undefined;

  /** Takes a request. Until `end()`, cancelling the request cancels the call. */
  constructor(request: Call, services: CallServices, cancellation = new Cancellation()) {
    this.#request = request;
    this.#services = services;
    this.id = request.id;
    this.names = splitToolId(request.id);
    this.method = request.method;
    this.isNotification = request.isNotification;
    this.isOffered = request.isOffered;
    this.meta = request.meta;
    this.members = request.members;
    this.assertMatches = request.assertMatches;
    this.task = request.task;
    this.via = request.via;
    this.isTyped = request.isTyped;
    this.isNested = request.isNested;
    this.run = request.run;
    this.depth = request.depth;
    this.actor = request.actor;
    this.callId = request.callId;
    this.facts = request.facts;
    this.cancellation = cancellation;
    this.arguments = request.arguments;
    this.fixed = request.fixed;
    this.answer = request.answer;
    if (cancellation !== request.cancellation) request.cancellation.add(this);
  }

  /** The name of its tool at the server. */
  get tool(): string {
    return this.names.tool;
  }

  /** The id of the client's request, as JSON. */
  get requestId(): string | undefined {
    return this.#request.client.requestId;
  }

  /** The name and the version of the client, as it states them. */
  get clientInfo(): JsonObject | undefined {
    return this.#request.client.info;
  }

  /** The tools that the client may use now; undefined if it may use all. */
  get toolset(): Toolset | undefined {
    return this.#request.client.toolset?.();
  }

  /**
   * The client. PML redacts secrets in the progress that it gets, and the time of questions does not
   * count for the deadline.
   */
  get client(): CallClient {
    return this.#client ??= this.#services.withSampling(
      this,
      new ContextClient(this, this.#request.client),
    );
  }

  /** Whether the client wants progress. */
  get wantsReports(): boolean {
    return this.#request.client.onProgress !== undefined;
  }

  /** Sends progress to the client. */
  report(progress: ProgressReport): void {
    this.#request.client.onProgress?.(this.#services.redactor.clean(progress));
  }

  /** Sets the server of the request, and resets the results of earlier checks. */
  resolve(
    { server, version, isBlocked }: Pick<CallContext, "server" | "version" | "isBlocked">,
  ): void {
    this.server = server;
    this.version = version;
    this.isBlocked = isBlocked;
    this.settingsError = undefined;
    this.hasChanged = false;
    this.sentAt = 0;
    this.#definition = undefined;
    if (this.fixed === undefined) return;
    this.arguments = this.fixed.callerArguments;
    this.fixed = undefined;
  }

  definition(): Maybe<ToolDefinition> {
    if (this.#definition !== undefined) return this.#definition;
    const loading = this.#services.loadDefinition(this);
    this.#definition = loading;
    if (loading instanceof Promise) {
      // Later calls return the definition itself. The caller handles a rejection.
      loading.then((definition) => {
        if (this.#definition === loading) this.#definition = definition;
      }, () => {});
    }
    return loading;
  }

  /** The definition that the checks loaded; undefined if the call is not for a tool. */
  get loadedDefinition(): ToolDefinition | undefined {
    const definition = this.method === undefined ? this.#definition : undefined;
    return definition instanceof Promise ? undefined : definition;
  }

  isCurrent(): boolean {
    // A blocked server was resolved without its settings, and its code can change while the policy
    // stays the same.
    return !this.isBlocked && this.#services.isCurrent(this.version);
  }

  assertCurrent(): void {
    if (!this.isCurrent()) this.restartChecks();
  }

  assertListed(listed: unknown): void {
    if (this.method !== undefined) return;
    const definition = this.#definition;
    // If only the order of the keys differs, the restarted checks compare the definition again.
    const isSame = listed === definition || JSON.stringify(listed) === JSON.stringify(definition);
    if (!isSame) this.restartChecks();
  }

  /** Cancels the call with its request. */
  onCancel(reason: unknown): void {
    this.cancel(cancelledError(this, reason));
  }

  /** Cancels the call. The caller gets the error at once, even if the server ignores it. */
  cancel(error: PmlError): void {
    this.cancellation.cancel(error);
    this.#rejectWaiting?.(this.cancellation.reason);
  }

  /** Starts work and waits for it. Rejects as soon as the call is cancelled. */
  unlessCancelled<T>(start: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#rejectWaiting = reject;
      start().then(resolve, reject);
      if (this.cancellation.isCancelled) reject(this.cancellation.reason);
    });
  }

  /** Ends the call. Withdraws its open questions. */
  end(): void {
    this.#request.cancellation.remove(this);
    this.#rejectWaiting = undefined;
    if (this.deadline?.isAsking) this.cancellation.cancel(callOverError());
  }

  /** Restarts all checks, because the rules or the definition changed. */
  restartChecks(): never {
    this.hasChanged = true;
    throw configChangesError(this);
  }
}

/** The client of a call, as its server uses it. */
class ContextClient implements CallClient {
  readonly #call: CallContext;
  readonly #client: CallClient;

  constructor(call: CallContext, client: CallClient) {
    this.#call = call;
    this.#client = client;
  }

  get requestId(): string | undefined {
    return this.#client.requestId;
  }

  get trace(): CallClient["trace"] {
    return this.#client.trace;
  }

  get connection(): AbortSignal | undefined {
    return this.#client.connection;
  }

  get capabilities(): JsonObject | undefined {
    return this.#client.capabilities;
  }

  get info(): JsonObject | undefined {
    return this.#client.info;
  }

  get usesOlderRevision(): boolean | undefined {
    return this.#client.usesOlderRevision;
  }

  get sampling(): JsonObject | undefined {
    return this.#client.sampling;
  }

  get toolset(): CallClient["toolset"] {
    return this.#client.toolset;
  }

  get onMessage(): CallClient["onMessage"] {
    return this.#client.onMessage;
  }

  get onNotify(): CallClient["onNotify"] {
    return this.#client.onNotify;
  }

  /**
   * Receives all progress, also if the client wants none, because progress extends the deadline.
   * Each read creates the function. If the object stored the function, V8 would keep each call
   * (1.9 KB) until its next full garbage collection.
   */
  get onProgress(): ProgressListener {
    return (progress) => {
      if (this.#call.deadline?.handleProgress(progress) !== false) this.#call.report(progress);
    };
  }

  get onServerRequest(): CallClient["onServerRequest"] {
    const { onServerRequest } = this.#client;
    return onServerRequest && ((...args) => this.#ask(() => onServerRequest(...args)));
  }

  get onQuestion(): CallClient["onQuestion"] {
    const { onQuestion } = this.#client;
    return onQuestion && ((...args) => this.#ask(() => onQuestion(...args)));
  }

  get onOpen(): CallClient["onOpen"] {
    const { onOpen } = this.#client;
    return onOpen && ((...args) => this.#ask(() => onOpen(...args)));
  }

  #ask<T>(ask: () => Promise<T>): Promise<T> {
    const { deadline } = this.#call;
    return deadline === undefined ? ask() : deadline.whileAsking(ask);
  }
}

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
import { cancelled, finished, type RunningCall, type TimedCall } from "./deadline.ts";
import { keepsChanging } from "./restart.ts";

/** The collaborators of calls. */
export interface CallServices {
  /** Returns whether a decision of this version of the rules and the configuration is current. */
  isCurrent(version: number): boolean;
  /** Loads the definition of the tool of a call. */
  loadDefinition(call: CallContext): Maybe<ToolDefinition>;
  /** Returns the client's members that a sampling provider replaces; the same client if none does. */
  withSampling(call: CallContext, client: CallClient): CallClient;
  readonly redactor: Pick<Redactor, "clean">;
}

/** A call in the pipeline. It is passed on as it is: a copy would lose its methods. */
export class CallContext implements ResolvedCall, CheckedCall, TimedCall, CancelListener {
  // The members of the request are fields, because the checks and the server read them often.
  readonly id: ToolId;
  /** The name of its server, and that of its tool there. */
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
  /** Cancels the call: when its client does, and at its deadline. */
  readonly cancellation: Cancellation;
  arguments: JsonObject;
  fixed: FixedArguments | undefined;
  answer: ApprovalAnswer | undefined;
  /** The decision of the rules. */
  verdict: Verdict | undefined;
  /** Whether its start could not be recorded. */
  isUnrecorded = false;
  /** The error if the arguments that the user fixed for its tool cannot be added. */
  settingsError: PmlError | undefined;
  /**
   * The configuration that was current when the user approved the server in a question that showed
   * this call. The answer covers the call itself as long as no file has changed.
   */
  approvedWith: object | undefined;
  /** Returns an answer for the approved subject, in case the checks begin again after the approval. */
  approval: (() => ApprovalAnswer) | undefined;
  /** Whether the rules or the definition changed after the checks. */
  hasChanged = false;
  /** Whether the skills of its server were listed again, because a result did not match them. */
  isSkillRenewed = false;
  running: RunningCall | undefined;
  /**
   * When the start was recorded and when the server got the call; 0 before. In `performance.now()`.
   */
  startedAt = 0;
  sentAt = 0;
  /** When the server answered or failed, and its outcome; undefined if it failed. */
  answeredAt = 0;
  outcome: Outcome | undefined;
  server!: Server;
  version = -1;
  /** Whether the server was blocked when the call was resolved. Its settings did not count then. */
  isBlocked = false;
  readonly #request: Call;
  readonly #services: CallServices;
  #definition: Maybe<ToolDefinition> | undefined;
  #reject: ((reason: unknown) => void) | undefined;
  #client: CallClient | undefined;

  /** Takes a request. Until `end()`, the call is cancelled with it. */
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

  /** The tools that exist for the client now; undefined for all. */
  get toolset(): Toolset | undefined {
    return this.#request.client.toolset?.();
  }

  /** The client, with redacted progress, and with questions that do not count as time of the call. */
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

  /** Sets the server of the request. The checks begin. */
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
    this.arguments = this.fixed.given;
    this.fixed = undefined;
  }

  readonly definition = (): Maybe<ToolDefinition> => {
    if (this.#definition !== undefined) return this.#definition;
    const loading = this.#services.loadDefinition(this);
    this.#definition = loading;
    if (loading instanceof Promise) {
      // Later uses get the definition itself. The caller handles a rejection.
      loading.then((definition) => {
        if (this.#definition === loading) this.#definition = definition;
      }, () => {});
    }
    return loading;
  };

  /** The definition that the checks loaded; undefined if the call is not for a tool. */
  get loadedDefinition(): ToolDefinition | undefined {
    const definition = this.method === undefined ? this.#definition : undefined;
    return definition instanceof Promise ? undefined : definition;
  }

  readonly isCurrent = (): boolean =>
    // A blocked server was resolved without its settings, and its code changes without the policy.
    !this.isBlocked && this.#services.isCurrent(this.version);

  readonly assertCurrent = (): void => {
    if (!this.isCurrent()) this.change();
  };

  readonly assertListed = (listed: unknown): void => {
    if (this.method !== undefined) return;
    const definition = this.#definition;
    // Another order of keys is compared again by the checks.
    const isSame = listed === definition || JSON.stringify(listed) === JSON.stringify(definition);
    if (!isSame) this.change();
  };

  /** Cancels the call with its request. */
  onCancel(reason: unknown): void {
    this.cancel(cancelled(this, reason));
  }

  /** Cancels the call. A server that ignores that does not delay its error. */
  cancel(error: PmlError): void {
    this.cancellation.cancel(error);
    this.#reject?.(this.cancellation.reason);
  }

  /** Waits for work that starts now, unless the call is cancelled before it is done. */
  unlessCancelled<T>(start: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      start().then(resolve, reject);
      if (this.cancellation.isCancelled) reject(this.cancellation.reason);
    });
  }

  /** Ends the call. Questions that are still open are withdrawn. */
  end(): void {
    this.#request.cancellation.remove(this);
    this.#reject = undefined;
    if (this.running?.isAsking) this.cancellation.cancel(finished());
  }

  /** Lets all checks begin again, because something that they read has changed. */
  change(): never {
    this.hasChanged = true;
    throw keepsChanging(this);
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

  get connection(): AbortSignal | undefined {
    return this.#client.connection;
  }

  get able(): JsonObject | undefined {
    return this.#client.able;
  }

  get info(): JsonObject | undefined {
    return this.#client.info;
  }

  get isOlder(): boolean | undefined {
    return this.#client.isOlder;
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
   * Receives all progress, also for a client that wants none: it extends the deadline. The function
   * is not kept: V8 then kept each call until its next full collection, 1.9 KB of a call.
   */
  get onProgress(): ProgressListener {
    return (progress) => {
      if (this.#call.running?.handleProgress(progress) !== false) this.#call.report(progress);
    };
  }

  get onAsk(): CallClient["onAsk"] {
    const { onAsk } = this.#client;
    return onAsk && ((...args) => this.#ask(() => onAsk(...args)));
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
    const { running } = this.#call;
    return running === undefined ? ask() : running.whileAsking(ask);
  }
}

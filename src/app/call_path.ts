/**
 * Connects the pipeline of calls with the approvals, the servers and the journal. The first call
 * loads this file, so that PML starts fast.
 *
 * @module
 */

import { type EventRecord, Journal, type JournalFailures } from "../audit/journal.ts";
import type { Redactor } from "../audit/redact.ts";
import type { JournalRecord } from "../audit/journal.ts";
import { type JournalOpener, Records } from "../audit/records.ts";
import { Capacity } from "../calls/capacity.ts";
import { CHECKS } from "../calls/checks.ts";
import type { CallContext } from "../calls/context.ts";
import { Deadlines } from "../calls/deadline.ts";
import { CallPipeline, type PipelineHost, type UseNotes } from "../calls/pipeline.ts";
import type { Config } from "../config/current_config.ts";
import type { Call, CallClient, CallTool, Question } from "../protocol/call.ts";
import { type CheckReport, runCheck } from "../core/check.ts";
import type { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import type { Maybe } from "../core/maybe.ts";
import type { Servers } from "../servers/lists/servers.ts";
import type { ResolvedCall, Server } from "../servers/server.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { splitToolId } from "../core/tool_id.ts";
import type { Schemas } from "../calls/schemas.ts";
import { RUNS_CODE } from "../servers/module/builtin_names.ts";
import { Approvals, type LastingAnswers, type PendingApproval } from "../policy/approvals.ts";
import type { Policy } from "../policy/policy.ts";
import type { Subject } from "../policy/subject.ts";
import type { AnswerOffers } from "../calls/answer_offers.ts";
import type { CallSubjects } from "../calls/call_subjects.ts";
import type { ApprovalEvent, ApprovalHost, OfferFinder } from "../calls/decisions.ts";
import { approvalRequired } from "../calls/approval_required.ts";
import { SessionAnswers } from "../calls/session_answers.ts";
import { callableTool } from "../calls/page_tools.ts";
import { AlwaysRules } from "../policy/always_rule.ts";
import { errorForIdentity } from "../gateway/hidden_tools.ts";
import { CallChecker, type PreflightPath } from "../gateway/call_checker.ts";
import type { RunningCalls } from "../calls/running_calls.ts";
import { ServerResolver } from "../calls/server_resolver.ts";
import { ServerRunner } from "../calls/server_runner.ts";
import { ServerOpener } from "../servers/server_opener.ts";
import type { ServiceParts } from "../servers/service_parts.ts";
import type { Logins } from "../oauth/logins.ts";
import type { Machine } from "../servers/machine.ts";
import type { Sampler, SamplingPath } from "../sampling/sampler.ts";
import type { Notifications } from "../calls/notifications.ts";
import type { RunJournal } from "../workflow/run_scope.ts";
import { samplingClient } from "../sampling/sampling_client.ts";

/** The pipeline of every call, with its approvals, servers and journal. */
export class CallPath
  implements PipelineHost, RunJournal, SamplingPath, PreflightPath, AsyncDisposable {
  /** Runs a call through every check: `CallPipeline.call`. */
  readonly callTool: CallTool;
  /** Checks the arguments of calls. */
  readonly schemas: Schemas;
  /** Checks calls, and asks about them, before they run. */
  readonly checker: CallChecker;
  /** The approval requests of this process, and all that wait for `pml approve`. */
  readonly approvals: Approvals;
  /** Creates the rules that the answer "Always" writes. */
  readonly alwaysRules: AlwaysRules;
  /** Opens the servers of the directory. */
  readonly opener: ServerOpener;
  /** Runs local servers, and connects to remote servers. */
  readonly machine: Machine;
  /** Signs the user in at servers. */
  readonly logins: Logins;
  /** Removes secrets from the progress and the errors of calls. */
  readonly redactor: Redactor;
  /** Limits how many calls run at once. */
  readonly capacity: Capacity = new Capacity(
    () => this.#config().limits,
    ({ id, actor, callId }) => this.record("overloaded", { actor, about: { tool: id, callId } }),
  );
  /** Finds the servers of calls. */
  readonly resolver: ServerResolver;
  /** Writes the records of calls. */
  readonly records: Records;
  /** The deadlines of calls. */
  readonly deadlines: Deadlines;
  /** Passes calls to their servers. */
  readonly runner: ServerRunner;
  /** The module of `pml dev`. It runs without a question, unless a file grants it permissions. */
  draft: Server | undefined;
  readonly #parts: ServiceParts;
  readonly #pipeline: CallPipeline;
  #sampling: Promise<Sampler> | undefined;
  readonly #sessions: SessionAnswers;
  readonly #asking: CallApprovals;
  #notifications: Promise<Notifications> | undefined;

  /**
   * Connects the parts. Starts nothing before the first call. `uses` gets each call that reached
   * its server.
   */
  constructor(parts: ServiceParts, schemas: Schemas, uses?: UseNotes) {
    const { policy, log, redactor } = parts;
    this.#parts = parts;
    this.schemas = schemas;
    this.redactor = redactor;
    this.records = new Records(new HomeJournal(policy, redactor), log, parts.metrics);
    this.deadlines = deadlinesOf(parts);
    const ttl = policy.now.config.limits.approvalMs;
    this.approvals = new Approvals(policy.now.loaded.environment.home, log, { ttl });
    this.alwaysRules = new AlwaysRules(policy, RUNS_CODE);
    this.#sessions = new SessionAnswers({ policy, always: this.alwaysRules, log });
    this.opener = new ServerOpener(parts);
    this.machine = this.opener.machine;
    this.logins = this.opener.logins;
    const asking = new CallApprovals({
      ...parts,
      machine: this.machine,
      records: this.records,
      approvals: this.approvals,
      rules: this.alwaysRules,
      sessions: this.#sessions,
    });
    this.#asking = asking;
    this.resolver = new ServerResolver(parts, this);
    const { lists } = parts.servers;
    this.runner = new ServerRunner({ logins: this.logins, schemas, lists }, uses);
    const checks = CHECKS.map((checkOf) =>
      checkOf({ policy, schemas, asking, multiTool: this.alwaysRules.multiTool })
    );
    this.#pipeline = new CallPipeline(this, checks);
    this.callTool = this.#pipeline.call;
    this.checker = new CallChecker(this, asking);
  }

  /** Resolves a call. Throws if a rule denies it. */
  preflight(call: Call): Promise<CallContext> {
    return this.#pipeline.preflight(call);
  }

  /** Stores an approval request for `pml approve`, and returns the error that names it. */
  async storeQuestion(question: Question): Promise<PmlError> {
    const pending = await this.approvals.saveForTerminal(question.handle, question.otherwise);
    if (pending !== undefined && this.#config().notifications) {
      this.#notifications ??= import("../calls/notifications.ts").then(({ Notifications }) => {
        const { policy, log } = this.#parts;
        const { home } = policy.now.loaded.environment;
        return new Notifications(() => policy.now.loaded, home, log);
      });
      void this.#notifications.then((notifications) => notifications.notify(pending));
    }
    const { workspace, channel } = this.#config();
    return approvalRequired(question, { pending, workspace, isOnPage: channel === "page" });
  }

  /** Returns the calls that wait for `pml approve`. */
  async waitingCalls(): Promise<readonly PendingApproval[]> {
    const { waitingCalls } = await import("../calls/waiting_calls.ts");
    const record = (event: string, about: JsonObject) =>
      this.record(event, { actor: "local", about });
    return await waitingCalls({ policy: this.#parts.policy, approvals: this.approvals, record });
  }

  /**
   * Returns whether an answer to a waiting question can count. If it cannot, and the call still
   * needs an answer, replaces the question by the current question about the call.
   */
  async checkWaiting(
    pending: PendingApproval,
  ): Promise<{ readonly isCurrent: boolean; readonly next?: PendingApproval }> {
    const { policy } = this.#parts;
    const { isOutdated, replaceOutdated } = await import("../calls/waiting_calls.ts");
    if (!await isOutdated(pending, policy)) return { isCurrent: true };
    const next = await replaceOutdated(pending, this.#asking, this.checker);
    return { isCurrent: false, ...next !== undefined && { next } };
  }

  /** Records each of these requests in the journal: the client did not read its answer. */
  recordLostAnswers(requests: readonly string[]): void {
    for (const request of requests) {
      this.records.note({ kind: "event", event: "answer lost", about: { request } });
    }
  }

  /** Calls a function with each record from now on, until the result is disposed. */
  watchRecords(onRecord: (record: JournalRecord) => void): Disposable {
    return this.records.watch(onRecord);
  }

  /** The calls that run now. */
  get running(): RunningCalls {
    return this.#pipeline.running;
  }

  /** The number of calls that run, and of calls that wait for capacity. */
  get load(): Capacity["load"] {
    return this.capacity.load;
  }

  /** Checks the sandbox and the journal on this machine. */
  async checks(): Promise<readonly CheckReport[]> {
    return [
      ...await this.machine.checks(),
      await runCheck(
        "journal",
        "a record can be written",
        () => this.records.write({ kind: "event", event: "checked" }),
      ),
      this.#config().sampling === undefined
        ? SAMPLING_BY_CLIENTS
        : await (await this.#sampler()).check(),
    ];
  }

  /** Ends every child and server, then the journal. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#sessions[Symbol.dispose]();
    await this.machine[Symbol.asyncDispose]();
    // The journal records the end of each call.
    await this.capacity.whenIdle();
    await this.#parts.pins.flush();
    this.deadlines[Symbol.dispose]();
    this.records[Symbol.dispose]();
  }

  /** Returns whether a decision by this version of the policy, and of its directory, is current. */
  isCurrent(version: number): boolean {
    const { policy } = this.#parts;
    // guard: second-judge
    return policy.now.version === version && policy.isCurrent();
  }

  /** Adds the provider that answers sampling requests of servers, if the user configured one. */
  withSampling(call: CallContext, client: CallClient): CallClient {
    // A call with `via: "server"` is such a request of a server itself, so the client answers it.
    const isDirect = call.via === "server" || this.#config().sampling === undefined;
    return isDirect ? client : samplingClient(call, client, this.#sampler);
  }

  readonly #sampler = (): Promise<Sampler> => {
    this.#sampling ??= import("../sampling/sampler.ts").then(({ Sampler }) =>
      new Sampler({ ...this.#parts, path: this })
    );
    return this.#sampling;
  };

  /** Loads the definition of the tool of a call, which may start its server. */
  loadDefinition(call: CallContext): Maybe<ToolDefinition> {
    const { servers } = this.#parts;
    const definition = call.server.definitionFor(call);
    return definition instanceof Promise
      ? this.#waitForDefinition(call, definition).then((loaded) =>
        callableTool(call, loaded, servers)
      )
      : callableTool(call, definition, servers);
  }

  /**
   * Waits for a definition. To list a tool, PML may have to install its server or sign in there.
   */
  async #waitForDefinition(
    call: CallContext,
    first: Promise<ToolDefinition>,
  ): Promise<ToolDefinition> {
    let loading: Promise<ToolDefinition> | undefined = first;
    const next = async () => {
      const definition = loading ?? call.server.definitionFor(call);
      loading = undefined;
      return await definition;
    };
    const work = () => this.logins.during(call, next);
    const { onProgress } = call.client;
    return await this.machine.starts.runWithProgress(call.server.name, { onProgress, work });
  }

  /** Writes an event outside of calls to the journal, for example of a run or a refused request. */
  record(event: string, details: Pick<EventRecord, "actor" | "about">): void {
    this.records.note({ kind: "event", event, ...details });
  }

  /** Returns whether a call may run without a record, if the user set `journal: best_effort`. */
  async mayRunUnrecorded({ id, verdict, answer, method, server }: CallContext): Promise<boolean> {
    const isEnabled = this.#config().journal === "best_effort";
    const isPlain = verdict?.kind === "allow" && answer === undefined && method === undefined;
    const { tool } = splitToolId(id);
    return isEnabled && isPlain && await server.onlyReads(tool).catch(() => false) === true;
  }

  /**
   * Returns the error for the caller. It does not name tools that the caller's identity must not
   * see.
   */
  errorFor(call: Call, error: unknown): unknown {
    return errorForIdentity(this.#parts, call, error);
  }

  #config(): Config {
    return this.#parts.policy.now.config;
  }
}

/** The report about sampling if the user did not configure it. */
const SAMPLING_BY_CLIENTS: CheckReport = {
  name: "sampling",
  ok: true,
  message: "by clients whose model can be asked; `sampling` in config.yaml names another model",
};

/** Opens the journal in the PML home, with the limits of the configuration at that time. */
class HomeJournal implements JournalOpener {
  readonly #policy: Policy;
  readonly #redactor: Redactor;

  constructor(policy: Policy, redactor: Redactor) {
    this.#policy = policy;
    this.#redactor = redactor;
  }

  open(failures: JournalFailures): Journal {
    return Journal.open(this.#policy.now.config, this.#redactor, failures);
  }
}

/** Returns the deadlines of calls: by the current limits, and by the `timeout` of the server. */
function deadlinesOf({ policy, backlog }: ServiceParts): Deadlines {
  return new Deadlines((id) => {
    const { callMs, callMaxMs } = policy.now.config.limits;
    const definition = policy.definitionOf(splitToolId(id).server);
    const { timeoutMs = callMs } = definition ?? {};
    const capMs = Math.max(callMaxMs, timeoutMs);
    return { callMs: timeoutMs, capMs, pausedMs: backlog?.fullMs ?? 0 };
  });
}

/** The collaborators of `CallApprovals`. */
interface ApprovalParts {
  readonly policy: Policy;
  readonly servers: Servers;
  readonly machine: Machine;
  readonly records: Records;
  readonly approvals: Approvals;
  readonly rules: AlwaysRules;
  readonly sessions: SessionAnswers;
}

/** The parts of the running PML that approvals use. The first question loads them. */
class CallApprovals implements ApprovalHost {
  readonly approvals: Approvals;
  readonly sessions: SessionAnswers;
  readonly rules: AlwaysRules;
  readonly offers: OfferFinder;
  readonly #parts: ApprovalParts;
  #subjects: Promise<CallSubjects> | undefined;

  /** Stores the parts. Loads nothing yet. */
  constructor(parts: ApprovalParts) {
    this.#parts = parts;
    this.approvals = parts.approvals;
    this.sessions = parts.sessions;
    this.rules = parts.rules;
    this.offers = new LazyOffers(parts);
  }

  /** The current workspace. */
  get workspace(): string {
    return this.#parts.policy.now.config.workspace;
  }

  /** Returns the current configuration: the same object until one of its files changes. */
  currentConfig(): object {
    return this.#parts.policy.now.loaded;
  }

  /** Returns the subject of the question about a call. */
  async subjectOf(call: ResolvedCall): Promise<Subject> {
    this.#subjects ??= import("../calls/call_subjects.ts").then(({ CallSubjects }) =>
      new CallSubjects({ ...this.#parts, always: this.rules })
    );
    return await (await this.#subjects).createSubject(call);
  }

  /** Writes an event of an approval to the journal. */
  async record({ event, call, detail }: ApprovalEvent): Promise<void> {
    // Details are plain JSON: names, hashes and lines of text.
    const about = { tool: call.id, callId: call.callId, ...detail } as JsonObject;
    await this.#parts.records.write({ kind: "event", event, actor: call.actor, about });
  }
}

/** Loads the finder of lasting answers with the first question, because most calls ask none. */
class LazyOffers implements OfferFinder {
  readonly #parts: ApprovalParts;
  #loading: Promise<AnswerOffers> | undefined;

  constructor(parts: ApprovalParts) {
    this.#parts = parts;
  }

  async findAnswers(call: ResolvedCall): Promise<LastingAnswers> {
    return await (await (this.#loading ??= this.#load())).findAnswers(call);
  }

  async #load(): Promise<AnswerOffers> {
    const [{ AnswerOffers }, { ToolSets }] = await Promise.all([
      import("../calls/answer_offers.ts"),
      import("../calls/tool_sets.ts"),
    ]);
    const { policy, approvals, rules: always, sessions, servers: { lists } } = this.#parts;
    const toolSets = new ToolSets({ policy, always, approvals });
    return new AnswerOffers({ always, sessions, toolSets, lists });
  }
}

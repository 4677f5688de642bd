/**
 * Puts the pipeline of calls together, with the approvals, the servers and the journal. The first call
 * loads it, so that a start is fast.
 *
 * @module
 */

import { type EventRecord, Journal, type JournalFailures } from "../audit/journal.ts";
import type { Metrics } from "../audit/metrics.ts";
import type { Redactor } from "../audit/redact.ts";
import type { JournalRecord } from "../audit/journal.ts";
import { type JournalOpener, Records } from "../audit/records.ts";
import { Capacity } from "../calls/capacity.ts";
import { CHECKS } from "../calls/checks.ts";
import type { CallContext, CallServices } from "../calls/context.ts";
import { Deadlines } from "../calls/deadline.ts";
import { CallPipeline, type UseNotes } from "../calls/pipeline.ts";
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
import { Ahead, type PreflightPath } from "../gateway/preflight.ts";
import { ServerResolver } from "../calls/server_resolver.ts";
import { ServerRunner } from "../calls/server_runner.ts";
import { ServerOpener } from "../servers/server_opener.ts";
import type { ServiceParts } from "../servers/server_services.ts";
import type { Logins } from "../oauth/logins.ts";
import type { Machine } from "../servers/machine.ts";
import type { Sampler, SamplingPath } from "../sampling/sampler.ts";
import type { Notifications } from "./notifications.ts";
import type { RunJournal } from "../workflow/run_scope.ts";
import { samplingClient } from "../sampling/sampling_client.ts";

/** The options of `CallPath`. */
export interface CallPathOptions extends ServiceParts {
  readonly metrics: Metrics;
  readonly schemas: Schemas;
  /** Gets each call that reached its server. */
  readonly uses?: UseNotes;
}

/** The pipeline of every call, with its approvals, servers and journal. */
export class CallPath
  implements CallServices, RunJournal, SamplingPath, PreflightPath, AsyncDisposable {
  /** Runs a call through every check: `CallPipeline.call`. */
  readonly callTool: CallTool;
  /** Checks the arguments of calls. */
  readonly schemas: Schemas;
  /** Looks at calls before they run. */
  readonly ahead: Ahead;
  /** The open questions, and those that wait for `pml approve`. */
  readonly approvals: Approvals;
  /** Makes the rules of "Always". */
  readonly always: AlwaysRules;
  /** Opens the servers of the directory. */
  readonly opener: ServerOpener;
  /** Runs and reaches servers. */
  readonly machine: Machine;
  /** Signs the user in at servers. */
  readonly logins: Logins;
  /** Removes secrets from the progress of calls. */
  readonly redactor: Redactor;
  /** The module that its author is writing. Nothing is granted to it, so it runs unasked. */
  draft: Server | undefined;
  readonly #options: CallPathOptions;
  readonly #capacity = new Capacity(
    () => this.#config().limits,
    ({ id, actor, callId }) => this.record("overloaded", { actor, about: { tool: id, callId } }),
  );
  readonly #records: Records;
  readonly #deadlines: Deadlines;
  readonly #pipeline: CallPipeline;
  #sampling: Promise<Sampler> | undefined;
  readonly #sessions: SessionAnswers;
  #notifications: Promise<Notifications> | undefined;

  /** Opens the way; starts nothing before the first call. */
  constructor(options: CallPathOptions) {
    const { policy, log, schemas } = options;
    this.#options = options;
    this.schemas = schemas;
    this.redactor = options.redactor;
    this.#records = new Records(new HomeJournal(options), log, options.metrics);
    this.#deadlines = deadlinesOf(options);
    const ttl = policy.now.config.limits.approvalMs;
    this.approvals = new Approvals(policy.now.loaded.environment.home, log, { ttl });
    this.always = new AlwaysRules(policy, RUNS_CODE);
    this.#sessions = new SessionAnswers({ policy, always: this.always, log });
    this.opener = new ServerOpener(options);
    this.machine = this.opener.machine;
    this.logins = this.opener.logins;
    const asking = new CallApprovals({
      ...options,
      machine: this.machine,
      records: this.#records,
      approvals: this.approvals,
      rules: this.always,
      sessions: this.#sessions,
    });
    this.#pipeline = new CallPipeline({
      capacity: this.#capacity,
      resolver: new ServerResolver(options, this),
      records: this.#records,
      checks: CHECKS.map((checkOf) =>
        checkOf({ policy, schemas, asking, multiTool: this.always.multiTool })
      ),
      deadlines: this.#deadlines,
      runner: new ServerRunner(
        { logins: this.logins, schemas, lists: options.servers.lists },
        options.uses,
      ),
      services: this,
      redactor: options.redactor,
      mayRunUnrecorded: (call) => this.#mayRunUnrecorded(call),
      errorFor: (call, error) => errorForIdentity(options, call, error),
    });
    this.callTool = this.#pipeline.call;
    this.ahead = new Ahead(this, asking);
  }

  /** Resolves a call. Throws if a rule denies it. */
  preflight(call: Call): Promise<CallContext> {
    return this.#pipeline.preflight(call);
  }

  /** Stores an approval request for `pml approve`, and returns the error that names it. */
  async leave(question: Question): Promise<PmlError> {
    const pending = await this.approvals.leave(question.handle, question.otherwise);
    if (pending !== undefined && this.#config().notifications) {
      this.#notifications ??= import("./notifications.ts").then(({ Notifications }) => {
        const { policy, log } = this.#options;
        const { home } = policy.now.loaded.environment;
        return new Notifications(() => policy.now.loaded, home, log);
      });
      void this.#notifications.then((one) => one.notify(pending));
    }
    return approvalRequired(question, { pending, workspace: this.#config().workspace });
  }

  /** Returns the calls that wait for `pml approve`. */
  async waitingCalls(): Promise<readonly PendingApproval[]> {
    const { waitingCalls } = await import("../calls/waiting_calls.ts");
    const record = (event: string, about: JsonObject) =>
      this.record(event, { actor: "local", about });
    return await waitingCalls({ policy: this.#options.policy, approvals: this.approvals, record });
  }

  /** Notes of each request that its client did not read its answer. */
  recordLostAnswers(requests: readonly string[]): void {
    for (const request of requests) {
      this.#records.note({ kind: "event", event: "answer lost", about: { request } });
    }
  }

  /** Calls a function with each start and end of a call from now on. */
  watchRecords(onRecord: (record: JournalRecord) => void): void {
    this.#records.watch(onRecord);
  }

  /** Checks the sandbox and the journal on this machine. */
  async checks(): Promise<readonly CheckReport[]> {
    return [
      ...await this.machine.checks(),
      await runCheck(
        "journal",
        "a record can be written",
        () => this.#records.write({ kind: "event", event: "checked" }),
      ),
      this.#config().sampling === undefined ? BY_CLIENTS : await (await this.#sampler()).check(),
    ];
  }

  /** Ends every child and server, then the journal. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#sessions[Symbol.dispose]();
    await this.machine[Symbol.asyncDispose]();
    // The journal records the end of each call.
    await this.#capacity.over();
    await this.#options.pins.settled();
    this.#deadlines[Symbol.dispose]();
    this.#records[Symbol.dispose]();
  }

  /** Returns whether a decision of this version is current; the directory changes with the policy. */
  isCurrent(version: number): boolean {
    const { policy } = this.#options;
    // guard: second-judge
    return policy.now.version === version && policy.isCurrent();
  }

  /** Adds the provider that answers sampling requests of servers, if the user configured one. */
  withSampling(call: CallContext, client: CallClient): CallClient {
    // The client itself answers a request that a server sends during a call.
    const isDirect = call.via === "server" || this.#config().sampling === undefined;
    return isDirect ? client : samplingClient(call, client, this.#sampler);
  }

  readonly #sampler = (): Promise<Sampler> => {
    this.#sampling ??= import("../sampling/sampler.ts").then(({ Sampler }) =>
      new Sampler({ ...this.#options, path: this })
    );
    return this.#sampling;
  };

  /** Loads the definition of the tool of a call, which may start its server. */
  loadDefinition(call: CallContext): Maybe<ToolDefinition> {
    const { servers } = this.#options;
    const definition = call.server.definitionFor(call);
    return definition instanceof Promise
      ? this.#loaded(call, definition).then((loaded) => callableTool(call, loaded, servers))
      : callableTool(call, definition, servers);
  }

  /** Waits for a definition. To know a tool, its server may have to be installed. */
  async #loaded(call: CallContext, first: Promise<ToolDefinition>): Promise<ToolDefinition> {
    let loading: Promise<ToolDefinition> | undefined = first;
    const next = async () => {
      const definition = loading ?? call.server.definitionFor(call);
      loading = undefined;
      return await definition;
    };
    const work = () => this.logins.during(call, next);
    const { onProgress } = call.client;
    return await this.machine.starts.during(call.server.name, { onProgress, work });
  }

  /** Writes an event outside of calls to the journal: of a run, or of a refused request. */
  record(event: string, of: Pick<EventRecord, "actor" | "about">): void {
    this.#records.note({ kind: "event", event, ...of });
  }

  #config(): Config {
    return this.#options.policy.now.config;
  }

  /** Returns whether a call may run without a record, where the user wants that. */
  async #mayRunUnrecorded({ id, verdict, answer, method, server }: CallContext): Promise<boolean> {
    const isWanted = this.#config().journal === "best_effort";
    const isPlain = verdict?.kind === "allow" && answer === undefined && method === undefined;
    const { tool } = splitToolId(id);
    return isWanted && isPlain && await server.onlyReads(tool).catch(() => false) === true;
  }
}

const BY_CLIENTS: CheckReport = {
  name: "sampling",
  ok: true,
  message: "by clients whose model can be asked; `sampling` in config.yaml names another model",
};

/** Opens the journal in the PML home, with the limits at that moment. */
class HomeJournal implements JournalOpener {
  readonly #policy: Policy;
  readonly #redactor: Redactor;

  constructor({ policy, redactor }: Pick<CallPathOptions, "policy" | "redactor">) {
    this.#policy = policy;
    this.#redactor = redactor;
  }

  open(failures: JournalFailures): Journal {
    const { home, limits } = this.#policy.now.config;
    const { journalBytes: fileBytes, journalFiles: filesKept } = limits;
    return Journal.open(home, { redactor: this.#redactor, fileBytes, filesKept }, failures);
  }
}

/** Returns the deadlines of calls, by the limits of each moment and of each server. */
function deadlinesOf({ policy, backlog }: CallPathOptions): Deadlines {
  return new Deadlines((id) => {
    const { callMs, callMaxMs } = policy.now.config.limits;
    const own = policy.definitionOf(splitToolId(id).server);
    const { timeoutMs = callMs } = own ?? {};
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

/** Asks about calls with the parts of a running PML. The first question loads more of them. */
class CallApprovals implements ApprovalHost {
  readonly approvals: Approvals;
  readonly sessions: SessionAnswers;
  readonly rules: AlwaysRules;
  readonly offers: OfferFinder;
  readonly #parts: ApprovalParts;
  #subjects: Promise<CallSubjects> | undefined;

  /** Takes the collaborators. Loads nothing yet. */
  constructor(parts: ApprovalParts) {
    this.#parts = parts;
    this.approvals = parts.approvals;
    this.sessions = parts.sessions;
    this.rules = parts.rules;
    this.offers = new LoadedOffers(parts);
  }

  /** The workspace now. */
  get workspace(): string {
    return this.#parts.policy.now.config.workspace;
  }

  /** Returns the present configuration: the same object until one of its files changes. */
  currentConfig(): object {
    return this.#parts.policy.now.loaded;
  }

  /** Returns the subject of the question about a call. */
  async subjectOf(call: ResolvedCall): Promise<Subject> {
    this.#subjects ??= import("../calls/call_subjects.ts").then(({ CallSubjects }) =>
      new CallSubjects({ ...this.#parts, always: this.rules })
    );
    return await (await this.#subjects).of(call);
  }

  /** Writes to the journal. */
  async record({ event, call, detail }: ApprovalEvent): Promise<void> {
    // Details are plain JSON: names, hashes and lines of text.
    const about = { tool: call.id, callId: call.callId, ...detail } as JsonObject;
    await this.#parts.records.write({ kind: "event", event, actor: call.actor, about });
  }
}

/** Loads the finder of answers with the first question: most calls need none. */
class LoadedOffers implements OfferFinder {
  readonly #parts: ApprovalParts;
  #loading: Promise<AnswerOffers> | undefined;

  constructor(parts: ApprovalParts) {
    this.#parts = parts;
  }

  async of(call: ResolvedCall): Promise<LastingAnswers> {
    return await (await (this.#loading ??= this.#load())).of(call);
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

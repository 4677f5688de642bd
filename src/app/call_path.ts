/**
 * The call path: every call goes through these gates, whichever way it came, to the server behind
 * its name. The only file that ever holds the ungated call. It is loaded by the first call, so that
 * a start is soon over.
 *
 * @module
 */

import { auditGate } from "../audit/gate.ts";
import type { EventRecord } from "../audit/journal.ts";
import type { Metrics } from "../audit/metrics.ts";
import type { Records } from "../audit/records.ts";
import type { Config } from "../config/config.ts";
import {
  type Call,
  type CallTool,
  type Gate,
  type ProgressReport,
  type Question,
  shownArguments,
  through,
  type Verdict,
} from "../core/call.ts";
import { Capacity } from "../core/capacity.ts";
import { type Check, check } from "../core/check.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { defined, type JsonObject } from "../core/json.ts";
import type { Listing } from "../core/known_server.ts";
import { pageOf } from "../core/lists.ts";
import type { Cancel } from "../core/quick_tool.ts";
import {
  methodDefinition,
  type PassCall,
  type PassGate,
  type PassOutcome,
  type Server,
} from "../core/server.ts";
import type { ToolDefinition } from "../core/tool.ts";
import { splitToolId, toolId } from "../core/tool_id.ts";
import type { BegunCall } from "../gateway/options.ts";
import { schemaGate, type Schemas } from "../gateway/schemas.ts";
import { RUNS_CODE } from "../modules/builtin_names.ts";
import { Approvals } from "../permissions/approvals.ts";
import { askGate, type AskGateOptions, judged, refuse, unasked } from "../permissions/gate.ts";
import { definitionLines } from "../permissions/definition_texts.ts";
import { approvalRequired } from "../permissions/left.ts";
import {
  completionGate,
  isAboutAll,
  isOfOffer,
  offerFacts,
  offerVerdict,
} from "../permissions/offer_access.ts";
import type { Judge } from "../permissions/rules.ts";
import type { Subject } from "../permissions/subject.ts";
import { MOST_PASSES, restless, trustGate } from "../permissions/trust_gate.ts";
import { type Always, alwaysIn } from "../policy/always_rule.ts";
import { definitionHash } from "../registry/integrity.ts";
import type { UsedTool } from "../workflow/use_memory.ts";
import { hidingDenied, rateGate } from "./_identity_limits.ts";
import { deadlinesOf, openRecords, used } from "./_call_ends.ts";
import { Ahead } from "./ahead.ts";
import { deadlineGate, type Deadlines } from "./deadline.ts";
import { Kinds, type KindsOptions } from "./kinds.ts";
import type { Logins } from "./logins.ts";
import type { Machine } from "./machine.ts";
import { QuickCalls } from "./quick_calls.ts";
import type { Sampler } from "./sampler.ts";
import { askedOfClient, factsOf, withSampler } from "./server_asks.ts";

/** What the call path stands in. */
export interface CallPathOptions extends KindsOptions {
  readonly metrics: Metrics;
  readonly schemas: Schemas;
  /** Is told of each call that reached its server. */
  readonly onUse?: (used: UsedTool) => void;
}

/** The way of every call, and what it needs: questions, servers, the journal. */
export class CallPath implements AsyncDisposable {
  /** Runs a call through every gate. */
  readonly callTool: CallTool;
  /** Looks at calls before they run. */
  readonly ahead: Ahead;
  /** The open questions, and those that wait for `pml approve`. */
  readonly approvals: Approvals;
  /** Makes the rules of "Always". */
  readonly always: Always;
  /** What runs and reaches servers. */
  readonly machine: Machine;
  /** Signs the person in at servers. */
  readonly logins: Logins;
  /** The module that its author is writing. Nothing is granted to it, so it runs unasked. */
  draft: Server | undefined;
  readonly #options: CallPathOptions;
  readonly #kinds: Kinds;
  readonly #capacity = new Capacity(
    () => this.#config().limits,
    ({ id, actor, callId }) => this.record("overloaded", { actor, about: { tool: id, callId } }),
  );
  readonly #records: Records;
  readonly #deadlines: Deadlines;
  readonly #quick: QuickCalls;
  #sampling: Promise<Sampler> | undefined;
  #remark: string | undefined;
  #isRemarkKnown = false;

  /** Opens the way; starts nothing before the first call. */
  constructor(options: CallPathOptions) {
    const { policy, log, schemas } = options;
    this.#options = options;
    this.#records = openRecords(options);
    this.#deadlines = deadlinesOf(options);
    this.#quick = new QuickCalls({
      ...{ policy, schemas, redactor: options.redactor, onUse: options.onUse },
      ...{ capacity: this.#capacity, records: this.#records, deadlines: this.#deadlines },
      isDraft: (id) => this.draft?.name === splitToolId(id).server,
      sampled: (call) => this.#sampled(call),
    });
    this.approvals = new Approvals(policy.now.loaded.environment.home, {
      warn: (message) => log.warn(message),
      ttl: policy.now.config.limits.approvalMs,
      remark: () => this.#remark,
    });
    this.always = alwaysIn({ policy, isExact: (id) => RUNS_CODE.has(id) });
    this.#kinds = new Kinds(options);
    this.machine = this.#kinds.machine;
    this.logins = this.#kinds.logins;
    this.callTool = this.#quick.before(hidingDenied(this.#gated(), options));
    const { leave } = this;
    this.ahead = new Ahead({ ...this.#asking(), ...this.#looking(), schemas, leave });
  }

  /** Opens what the directory lists. */
  open(listing: Listing): Promise<Server> {
    return this.#kinds.open(listing);
  }

  /** Begins a call that can run at once; undefined if it has to pass the gates. */
  begin(request: BegunCall): Cancel | undefined {
    return this.#quick.begin(request);
  }

  /** Leaves a question for `pml approve`, and gives the error that says so. */
  readonly leave = async (question: Question): Promise<PmlError> => {
    const left = await this.approvals.leave(question.handle);
    return approvalRequired(question, { left, workspace: this.#config().workspace });
  };

  /** Notes of each request that its client did not read its answer. */
  lost(requests: readonly string[]): void {
    for (const request of requests) {
      this.#records.note({ kind: "event", event: "answer lost", about: { request } });
    }
  }

  /** Tries what calls need on this machine: the sandbox and the journal. */
  async checks(): Promise<readonly Check[]> {
    return [
      ...await this.machine.checks(),
      await check(
        "journal",
        "a record can be written",
        () => this.#records.write({ kind: "event", event: "checked" }),
      ),
      this.#config().sampling === undefined ? BY_CLIENTS : await (await this.#sampler()).check(),
    ];
  }

  /** Ends every child and server, then the journal. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.machine[Symbol.asyncDispose]();
    // Each call has an end, and the journal tells it.
    await this.#capacity.over();
    await this.#options.pins.settled();
    this.#deadlines[Symbol.dispose]();
    this.#records[Symbol.dispose]();
  }

  /** The order of the house, readable aloud. */
  #gated(): CallTool {
    const { policy, schemas } = this.#options;
    const asking = this.#asking();
    const pass = through<PassCall, PassOutcome>([
      problemGate(() => this.#config()),
      rateGate(() => policy.now.config.narrowing?.identity),
      (next) => async (call) => await next(admitted(call)),
      completionGate,
      trustGate({ ...asking, ...this.#looking(), again: this.#looking().look }),
      schemaGate(schemas),
      askGate(asking),
      deadlineGate(this.#deadlines),
    ], (call) => this.logins.during(call, () => this.#run(call)));
    const recorded = auditGate<PassCall>(this.#records, (call) => this.#mayGoOn(call))(
      async (call) => {
        let now = call;
        for (let count = 0; count < MOST_PASSES; count++) {
          const outcome = await pass(now);
          if (outcome.kind !== "changed") return outcome;
          now = await this.#passOf({ ...call, ...defined({ answer: outcome.answer }) });
        }
        throw restless(call);
      },
    );
    return through<Call, Awaited<ReturnType<CallTool>>>(
      [this.#capacity.gate, cleanProgress(this.#options.redactor)],
      async (call) => await recorded(await this.#passOf(call)),
    );
  }

  /**
   * Begins a pass: finds the server once, gives the call what the person fixed for its tool, and
   * judges it by what holds now.
   */
  async #passOf(given: Call): Promise<PassCall> {
    // What may run without a record was looked at in its first pass alone.
    if (given.isLost) throw restless(given);
    const { policy, directory, servers } = this.#options;
    if (!policy.isCurrent()) await policy.refresh();
    const { version } = policy.now;
    const name = splitToolId(given.id).server;
    const server = this.draft?.name === name ? this.draft : directory.at(name);
    const judge = server === this.draft ? unasked(policy.now.judge) : policy.now.judge;
    const isBlocked = (server.settings && server.blocked()) !== undefined;
    const settled = await servers.settled(given, { source: server, isBlocked }).catch(asPmlError);
    const unsettled = settled instanceof PmlError ? settled : undefined;
    const call = settled instanceof PmlError ? given : settled;
    let definition: Promise<ToolDefinition> | undefined;
    const pass = {
      server,
      version,
      isBlocked,
      unsettled,
      definition: () => definition ??= this.#definitionFor(server, call),
    };
    const ruled = judged(judge, call);
    if (!isOfOffer(call)) return { ...call, verdict: ruled, pass };
    const tools = await this.#pageVerdicts(call, { server, judge });
    return { ...call, verdict: offerVerdict(call, { ruled, tools }), pass };
  }

  /** Returns the decisions about the pinned tools that name the address of a request as their page. */
  async #pageVerdicts(
    { arguments: { uri }, toolset }: Call,
    { server, judge }: { readonly server: Server; readonly judge: Judge },
  ): Promise<readonly Verdict[]> {
    if (typeof uri !== "string" || !uri.startsWith("ui://")) return [];
    const { servers, pins } = this.#options;
    const identity = await server.identity();
    const { items = [] } = servers.listed("tools").find((one) => one.server === server.name) ?? {};
    // What loads tools looked at them.
    const tools = items as readonly ToolDefinition[];
    const named = tools.filter((tool) => pageOf(tool) === uri);
    const pinned = await Promise.all(named.map(async (tool) => ({
      tool,
      isPinned: identity === undefined || await pins.isPinned(identity, tool),
    })));
    return pinned.filter(({ isPinned }) => isPinned).map(({ tool }) =>
      judged(judge, { id: toolId(server.name, tool.name), arguments: {}, toolset })
    );
  }

  /**
   * Tells whether what was judged still holds; the directory changes with the policy alone. What was
   * blocked was judged without what is fixed for it, and code changes without the policy.
   */
  #isCurrent({ pass: { version, isBlocked } }: PassCall): boolean {
    const { policy } = this.#options;
    // guard: second-judge
    return policy.now.version === version && !isBlocked && policy.isCurrent();
  }

  /** Runs what passed, where nothing changed since it was judged. */
  async #run(call: PassCall): Promise<PassOutcome> {
    // guard: run-version
    if (!this.#isCurrent(call)) return { kind: "changed" };
    // guard: asked-by-server
    if (call.via === "server") return await askedOfClient(call);
    if (call.method === "tools/list") {
      await call.pass.server.list("tools");
      return { kind: "result", result: { content: [] } };
    }
    const isCurrent = () => this.#isCurrent(call);
    const outcome = await used(this.#sampled(call), { isCurrent, onUse: this.#options.onUse });
    this.#quick.passed(call).catch(() => {}); // the next call passes the gates, too
    return outcome;
  }

  /** Has a provider answer what the server of a call asks a model, if the person chose one. */
  #sampled(call: PassCall): PassCall {
    return this.#config().sampling === undefined ? call : withSampler(call, this.#sampler);
  }

  readonly #sampler = (): Promise<Sampler> => {
    this.#sampling ??= import("./sampler.ts").then(({ Sampler }) =>
      new Sampler({ ...this.#options, path: this, note: (record) => this.#records.note(record) })
    );
    return this.#sampling;
  };

  async #definitionFor(server: Server, call: Call): Promise<ToolDefinition> {
    const work = () => this.logins.during(call, () => server.definitionFor(call));
    // To know a tool, its server may have to be installed.
    return await this.machine.starts.during(server.name, { onProgress: call.onProgress, work });
  }

  #asking(): AskGateOptions {
    return {
      approvals: this.approvals,
      subjectOf: (call) => this.#subjectOf(call),
      ...this.always,
      record: ({ event, call, detail }) => {
        // Details are plain JSON: names, hashes and lines of text.
        const about = { tool: call.id, callId: call.callId, ...detail } as JsonObject;
        return this.#records.write({ kind: "event", event, actor: call.actor, about });
      },
    };
  }

  #looking() {
    // guard: trust-version
    return {
      look: hidingDenied(async (call) => admitted(await this.#passOf(call)), this.#options),
      isCurrent: (call: PassCall) => this.#isCurrent(call),
      read: () => this.#options.policy.now.loaded,
      workspace: () => this.#config().workspace,
    };
  }

  /** Writes an event outside of calls to the journal: of a run, or of a refused request. */
  record(event: string, of: Pick<EventRecord, "actor" | "about">): void {
    this.#records.note({ kind: "event", event, ...of });
  }

  async #subjectOf(call: PassCall): Promise<Subject> {
    const { rules, config } = this.#options.policy.now;
    const { server } = call.pass;
    const definition = await call.pass.definition();
    if (!this.#isRemarkKnown) {
      this.#remark = await this.machine.layerRemark();
      this.#isRemarkKnown = true;
    }
    // The answer to a question about all resources covers requests for other addresses, so it must
    // not depend on this one.
    const isAll = isAboutAll(call);
    const hash = definitionHash(
      isAll ? methodDefinition(splitToolId(call.id).tool) : definition,
    );
    // Built-in servers describe themselves in PML's own words, and a capability was shown when it
    // was saved.
    const isKnown = call.method !== undefined || server.origin === "builtin" ||
      server.kind === "capability" || this.approvals.hasRead(hash);
    const lines = isKnown ? [] : definitionLines(definition);
    // guard: subject-grants
    return {
      tool: call.id,
      arguments: isAll ? {} : shownArguments(call),
      ...defined({ members: call.members }),
      definition: hash,
      // Who has another token is somebody else.
      rules: rules() + (config.narrowing?.identity?.token ?? ""),
      actor: call.actor,
      workspace: config.workspace,
      facts: [...await server.consentLines(call), ...factsOf(call), ...offerFacts(call)],
      ...lines.length === 0 ? {} : { definitionLines: lines },
    };
  }

  #config(): Config {
    return this.#options.policy.now.config;
  }

  /** Tells whether a call may run without a record, where the person wants that. */
  async #mayGoOn({ id, verdict, answer, method, pass }: PassCall): Promise<boolean> {
    const isWanted = this.#config().journal === "best_effort";
    const isPlain = verdict?.kind === "allow" && answer === undefined && method === undefined;
    const tool = splitToolId(id).tool;
    return isWanted && isPlain && await pass.server.onlyReads(tool).catch(() => false) === true;
  }
}

const BY_CLIENTS: Check = {
  name: "sampling",
  ok: true,
  said: "by clients whose model can be asked; `sampling` in config.yaml names another model",
};

/** Refuses everything while the configuration is broken. */
function problemGate(config: () => Config): PassGate {
  return (next) => async (call) => {
    const { problem } = config();
    if (problem !== undefined) throw problem;
    return await next(call);
  };
}

/** Takes keys out of the progress of calls, which no gate of results sees. */
function cleanProgress(redactor: CallPathOptions["redactor"]): Gate {
  return (next) => async ({ onProgress, ...call }) => {
    const tell = onProgress &&
      ((progress: ProgressReport) => onProgress(redactor.clean(progress)));
    return await next({ ...call, ...defined({ onProgress: tell }) });
  };
}

/** Throws for a call that a deny rule matches, or that cannot be given what is fixed for its tool. */
function admitted(call: PassCall): PassCall {
  refuse(call);
  // guard: unsettled
  if (call.pass.unsettled !== undefined) throw call.pass.unsettled;
  return call;
}

/**
 * The one door: every call goes through these gates, whichever way it came. The only file that ever
 * holds the ungated call. It is loaded by the first call, so that a start is soon over.
 *
 * @module
 */

import { join } from "node:path";
import { auditGate } from "../audit/gate.ts";
import { Journal } from "../audit/journal.ts";
import type { Metrics } from "../audit/metrics.ts";
import { Records } from "../audit/records.ts";
import type { Config } from "../config/config.ts";
import type { ServerDefinition } from "../config/servers.ts";
import { serverText } from "../config/shown.ts";
import {
  type Call,
  type CallTool,
  type Gate,
  type Progress,
  type Question,
  shownArguments,
  through,
} from "../core/call.ts";
import { Running } from "../core/capacity.ts";
import { type Check, check } from "../core/check.ts";
import { PmlError } from "../core/errors.ts";
import { defined, type JsonObject, quoted } from "../core/json.ts";
import type { ToolDefinition } from "../core/tool.ts";
import { splitToolId } from "../core/tool_id.ts";
import { schemaGate, type Schemas } from "../gateway/schemas.ts";
import { settledGate } from "../gateway/settled_gate.ts";
import { Approvals } from "../permissions/approvals.ts";
import { type AskedAll, askForAll } from "../permissions/ask_all.ts";
import { askGate, type AskGateOptions, judgeGate, refuseGate } from "../permissions/gate.ts";
import { approvalRequired } from "../permissions/left.ts";
import type { Subject } from "../permissions/subject.ts";
import { trustGate, type Unapproved } from "../permissions/trust_gate.ts";
import type { AtHand, PinEvent } from "../policy/pins.ts";
import { definitionHash, integrityGate } from "../registry/integrity.ts";
import { HubRouting } from "../remote/hub_routing.ts";
import { getToolRouting, isListedLocal } from "../remote/routing.ts";
import { CLOUD_URL } from "../remote/rpc.ts";
import { deadlineGate } from "./deadline.ts";
import { Machine, type MachineOptions } from "./machine.ts";
import { makeRouter } from "./router.ts";

/** What the door stands in. */
export interface DoorOptions extends MachineOptions {
  readonly metrics: Metrics;
  readonly schemas: Schemas;
}

/** The way of every call, and what it needs: questions, modules, the journal. */
export class Door implements AsyncDisposable {
  /** Runs a call through every gate. */
  readonly callTool: CallTool;
  /** The open questions, and those that wait for `pml approve`. */
  readonly approvals: Approvals;
  /** What runs on this machine. */
  readonly machine: Machine;
  readonly #options: DoorOptions;
  readonly #hub: HubRouting;
  readonly #running = new Running(() => this.#config().limits);
  readonly #records: Records;

  /** Opens the door; nothing is started before the first call. */
  constructor(options: DoorOptions) {
    const { policy, log } = options;
    this.#options = options;
    this.#records = this.#openRecords();
    this.approvals = new Approvals(policy.now.loaded.environment.home, {
      warn: (message) => log.warn(message),
      ttl: policy.now.config.limits.approvalMs,
    });
    options.pins.listen((event) => this.#onPin(event));
    const machine = this.machine = new Machine(options);
    this.#hub = new HubRouting({
      file: join(policy.now.loaded.environment.home, "hub_routing.json"),
      fetch: (url, how) => machine.fetch(url, how),
      hub: () => {
        const url = this.#config().cloud?.url;
        return { url: url ?? CLOUD_URL, isNamed: url !== undefined };
      },
      warn: (message) => log.warn(message),
    });
    this.callTool = this.#gated();
  }

  /** Asks once for several calls, or gives what lets each pass. */
  async askForAll(calls: readonly Call[]): Promise<AskedAll> {
    const { servers } = this.#options;
    const settled = await Promise.all(calls.map((call) => servers.settled(call)));
    return await askForAll(settled, this.#asking());
  }

  /** Leaves a question for `pml approve`, and gives the error that says so. */
  async leave(question: Question): Promise<PmlError> {
    const left = await this.approvals.leave(question.handle);
    return approvalRequired(question, { left, workspace: this.#config().workspace });
  }

  /** Forgets what servers listed, all or one, but for modules and those that may not be asked. */
  forget(only: string | undefined): void {
    const servers = this.#options.servers.states().filter(({ name, kind, state }) =>
      kind !== "deno" && state !== "blocked" && (only === undefined || name === only)
    );
    for (const { name } of servers) this.machine.forget(name);
  }

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
    ];
  }

  /** Gives the servers of files and registries as they would be pinned now; nothing is started. */
  async atHand(): Promise<readonly AtHand[]> {
    const { policy, adopted } = this.#options;
    const { file, person } = policy.now.loaded;
    const own = file?.servers ?? [];
    const names = new Set(own.map(({ name }) => name));
    const defined = [...own, ...person.servers.filter(({ name }) => !names.has(name))]
      .map((server) => this.machine.atHand(server));
    if (this.#config().registries.length === 0) return defined;
    return [...defined, ...await (await adopted()).hands()];
  }

  /** Ends every child and server, then the journal. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#hub[Symbol.dispose]();
    await this.machine[Symbol.asyncDispose]();
    // Each call has an end, and the journal tells it.
    await this.#running.over();
    await this.#options.pins.settled();
    this.#records[Symbol.dispose]();
  }

  /** The order of the house, readable aloud. */
  #gated(): CallTool {
    const { policy, schemas, servers } = this.#options;
    const { machine } = this;
    const asking = this.#asking();
    const judge = () => policy.now.judge;
    const router = makeRouter({
      routingOf: (server) => this.#routingOf(server),
      local: (call) => machine.call(call),
      cloud: async (call) => {
        const outcome = machine.callCloud(call);
        // Only now: what stays on this machine asks the hub for nothing.
        void outcome.then(() => this.#hub.refresh(), () => {});
        return await outcome;
      },
    });
    return through([
      this.#running.gate,
      this.#toldGate(),
      // Rules and the journal see what the server gets; what is wrong with it is told below.
      settledGate(servers, true),
      judgeGate(judge),
      auditGate(this.#records, (call) => this.#mayGoOn(call)),
      this.#problemGate(),
      refuseGate(),
      settledGate(servers),
      trustGate({
        ...asking,
        judge,
        workspace: () => this.#config().workspace,
        unapproved: async (call) =>
          await policy.unapproved(splitToolId(call.id).server) ?? await this.#unpinned(call),
      }),
      // The look may have found that the person trusted the file elsewhere meanwhile.
      settledGate(servers),
      judgeGate(judge),
      schemaGate(schemas, {
        definitionOf: (call) => this.#definitionOf(call),
        isChecked: (server) => servers.isChecked(server),
      }),
      askGate(asking),
      integrityGate({
        // A command or an address was approved as it was shown, with the file that names it.
        approved: (server) => machine.isUpstream(server) ? undefined : machine.approved(server),
        atHand: (server) => machine.integrityOf(server),
      }),
      deadlineGate(() => {
        const { callMs, callMaxMs } = this.#config().limits;
        return { callMs, capMs: callMaxMs, isHeld: this.#options.backlog?.isFull === true };
      }),
    ], router.call);
  }

  /** Tells in what a server or tool is not the pinned one; what ships with PML is pinned by that. */
  async #unpinned(call: Call): Promise<Unapproved | undefined> {
    const { server, tool } = splitToolId(call.id);
    const { policy, pins } = this.#options;
    const unknown = await this.#lookedUp(call);
    if (unknown !== undefined) return unknown;
    if (policy.definitionOf(server) === undefined) return undefined;
    await pins.state();
    const hand = this.machine.handOf(server);
    const first = hand && await pins.unapproved(hand);
    const isKnown = hand === undefined || call.method !== undefined || pins.hasCode(hand, tool);
    if (first !== undefined || isKnown) return first;
    try {
      const definition = await this.#definitionOf(call);
      // It may have been installed for that, and so be known by its version now.
      return await pins.unapprovedTool(this.machine.handOf(server) ?? hand, definition);
    } catch (error) {
      // What was installed turned out to be another one.
      const late = await pins.unapproved(this.machine.handOf(server) ?? hand);
      if (late === undefined) throw error;
      return late;
    }
  }

  /** Looks a server up that is neither built in nor the person's, and tells what nobody approved. */
  async #lookedUp({ id, signal, verdict, isTyped }: Call): Promise<Unapproved | undefined> {
    const { server } = splitToolId(id);
    const { policy, builtins, adopted, pins, servers } = this.#options;
    const isAllowed = policy.allowsBeforehand(verdict);
    const isOwn = builtins.has(server) ||
      policy.now.config.servers.some(({ name }) => name === server);
    if (isOwn) return undefined;
    if (policy.disabledIn(server) !== undefined) throw servers.unknown(id);
    // The lists of cloud servers are PML's own and the hub's.
    const isNamed = isTyped || policy.names(server) || this.#routingOf(server) === "cloud";
    await pins.state();
    try {
      const unapproved = this.#config().registries.length === 0
        ? undefined
        : await (await adopted()).unapproved(server, { signal, isAllowed, isNamed });
      if (unapproved !== undefined || policy.adopted(server) !== undefined) return unapproved;
    } catch (error) {
      // What runs in the cloud by PML's own list needs no registry.
      const isGone = error instanceof PmlError && error.code === "REGISTRY_OFFLINE";
      if (isGone && this.#routingOf(server) === "cloud") return undefined;
      throw error;
    }
    const { source = "private" } = pins.pinned(server) ?? {};
    if (source !== "private") throw notThere(server, source);
    return undefined;
  }

  #asking(): AskGateOptions {
    const { policy } = this.#options;
    return {
      approvals: this.approvals,
      subjectOf: (call) => this.#subjectOf(call),
      alwaysOffered: (call) => policy.alwaysOffered(call),
      always: (call) => policy.always(call),
      record: ({ event, call, detail }) => {
        // Details are plain JSON: names, hashes and lines of text.
        const about = { tool: call.id, callId: call.callId, ...detail } as JsonObject;
        return this.#records.write({ kind: "event", event, actor: call.actor, about });
      },
    };
  }

  #onPin({ event, ...about }: PinEvent): void {
    const { log, servers } = this.#options;
    this.#records.note({ kind: "event", event: `pin ${event}`, about: { ...about } });
    if (event !== "stale") return;
    const { server, tool } = about;
    const what = tool === undefined ? quoted(server) : quoted(`${server}:${tool}`, 200);
    log.warn(`${what} is not what was approved: its next call asks`, { server });
    // What was kept of it is from before.
    this.machine.forget(server);
    servers.changed(server, "tools");
  }

  async #subjectOf(call: Call): Promise<Subject> {
    const { policy } = this.#options;
    const definition = await this.#definitionOf(call);
    const { server } = splitToolId(call.id);
    const own = policy.definitionOf(server);
    const isFar = this.#routingOf(server) === "cloud";
    const gives = call.method === SAMPLING ? GIVES : [];
    return {
      tool: call.id,
      arguments: shownArguments(call),
      definition: definitionHash(definition),
      rules: policy.now.rules(),
      actor: call.actor,
      workspace: this.#config().workspace,
      facts: [
        ...(isFar ? this.machine.cloud.facts(server) : await this.#localFacts(call, own)),
        ...gives,
      ],
    };
  }

  async #localFacts({ id }: Call, own: ServerDefinition | undefined): Promise<readonly string[]> {
    return [
      own === undefined ? "a module that ships with PML, in the sandbox" : serverText(own),
      ...(await this.machine.permissionsOf(id)).map((line) => `It ${line}`),
    ];
  }

  #config(): Config {
    return this.#options.policy.now.config;
  }

  #routingOf(server: string): "local" | "cloud" {
    const { builtins, policy } = this.#options;
    if (builtins.has(server) || policy.definitionOf(server) !== undefined) return "local";
    const known = this.#options.manifest(server);
    if (known !== undefined) return known.kind === "cloud" ? "cloud" : "local";
    // What was pinned to run here is nobody's in the cloud, also where it is not to be had now.
    const pinned = this.#options.pins.pinned(server);
    if (pinned !== undefined && pinned.kind !== "cloud") return "local";
    // The list of the hub adds names, and takes none from this machine.
    const added = !isListedLocal(server) && this.#hub.has(server);
    return added ? "cloud" : getToolRouting(server);
  }

  async #definitionOf(call: Call): Promise<ToolDefinition> {
    const { server, tool } = splitToolId(call.id);
    const isFar = this.#routingOf(server) === "cloud";
    // What cannot be reached is said before anybody is asked about it.
    const far = isFar ? this.machine.cloud.definition(server, tool) : undefined;
    if (call.method !== undefined) return { name: call.method, inputSchema: {} };
    if (far !== undefined) return far;
    const work = () => this.#options.servers.definition(call.id);
    // To know a tool, its server may have to be installed.
    return await this.machine.starts.during(server, { onProgress: call.onProgress, work });
  }

  /** What a call is told meanwhile is no result: keys are taken out of it. */
  #toldGate(): Gate {
    return (next) => async ({ onProgress, ...call }) => {
      const tell = onProgress &&
        ((progress: Progress) => onProgress(this.#options.redactor.clean(progress)));
      return await next({ ...call, ...defined({ onProgress: tell }) });
    };
  }

  #problemGate(): Gate {
    return (next) => async (call) => {
      const { problem } = this.#config();
      if (problem !== undefined) throw problem;
      return await next(call);
    };
  }

  #openRecords(): Records {
    const { redactor, log, metrics } = this.#options;
    return new Records({
      open: (onFailure) => {
        const { home, limits } = this.#config();
        const { journalBytes: fileBytes, journalFiles: filesKept } = limits;
        return Journal.open(home, { redactor, fileBytes, filesKept, onFailure });
      },
      log,
      onNote: (record) => metrics.recorded(record),
    });
  }

  /** Tells whether a call may run without a record, where the person wants that. */
  async #mayGoOn({ id, verdict, answer, method }: Call): Promise<boolean> {
    const isWanted = this.#config().journal === "best_effort";
    const isPlain = verdict?.kind === "allow" && answer === undefined && method === undefined;
    return isWanted && isPlain && await this.machine.onlyReads(id).catch(() => false);
  }
}

const SAMPLING = "sampling/createMessage";

/** What the person has to know before a server's text goes to a model. */
const GIVES = [
  "It gives this text to the model of your client, and gets the answer",
  "The client may count it, or charge for it, as a request of yours",
];

function notThere(server: string, source: string): PmlError {
  const message =
    `Cannot use ${quoted(server)}: it is pinned to ${quoted(source, 300)}, which is ` +
    "not asked, or does not have it any more";
  return new PmlError("REGISTRY_OFFLINE", message, {
    hint: "Put that registry back under `registries`, or run `pml lock update` to let go of it",
  });
}

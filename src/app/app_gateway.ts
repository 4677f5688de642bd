/**
 * Opens the gateway. This file is loaded when the gateway is first needed.
 *
 * @module
 */

import { gatewaySettings } from "../config/gateway_settings.ts";
import { messageOf } from "../core/errors.ts";
import { type JsonObject, textOf } from "../core/json.ts";
import { dropOldest } from "../core/memo.ts";
import { Gateway } from "../gateway/gateway.ts";
import { isDefinedMethod } from "../protocol/revisions.ts";
import { bareTools } from "../gateway/exposure.ts";
import { isMetaTool } from "../gateway/meta_tools.ts";
import { canShowForm } from "../gateway/interaction/capabilities.ts";
import type { ApprovalAnswer, Call, Outcome, Question } from "../protocol/call.ts";
import type { ClientRecorder, GatewayHost, GatewaySettings } from "../gateway/options.ts";
import type { Log } from "../audit/log.ts";
import type { KnownNames, Metrics } from "../audit/metrics.ts";
import type { Schemas } from "../calls/schemas.ts";
import type { PmlError } from "../core/errors.ts";
import type { ToolId } from "../core/tool_id.ts";
import type { Tracer } from "../protocol/trace.ts";
import type { Verdict } from "../protocol/verdict.ts";
import type { Catalog } from "../search/catalog.ts";
import type { SearchAnswer } from "../search/search.ts";
import type { Servers } from "../servers/lists/servers.ts";
import type { ObservedOutput } from "../workflow/declarations.ts";
import type { Workflow } from "../workflow/workflow.ts";
import type { App } from "./app.ts";
import type { CallPath } from "./call_path.ts";
import type { SeenClient, SessionlessClient, SessionlessClients } from "../gateway/seen_clients.ts";

/**
 * The delay of the first write, in milliseconds, so that clients get their first answers before.
 */
const FIRST_WRITE_MS = 2_000;
/** The minimum time between two writes, in milliseconds. */
const NEXT_WRITE_MS = 30_000;
/** The maximum number of remembered clients, and of clients that wait to be recorded. */
const CLIENTS_MAX = 50;
/** The maximum length of a client's name or version. A longer text is not recorded. */
const NAME_MAX = 200;

/** For how long after its last request a client counts as recent, in milliseconds. */
const RECENT_MS = 600_000;

/** Records the clients of a running PML in its home, after they got their first answers. */
export class ClientNotes implements ClientRecorder, SessionlessClients {
  readonly #app: App;
  readonly #noted = new Map<string, SessionlessClient & { at: number }>();
  readonly #waiting = new Map<string, Pick<SeenClient, "name" | "version" | "asks">>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #writing: Promise<void> = Promise.resolve();
  #delay = FIRST_WRITE_MS;

  /** Takes the app. Loads and writes nothing yet. */
  constructor(app: App) {
    this.#app = app;
  }

  /**
   * Notes a client by the name and the capabilities that it declared. `isBrief` means that the
   * client has no session, but sends single requests.
   */
  note(info: JsonObject, capabilities: JsonObject, isBrief = false): void {
    const name = shortText(info.name);
    if (name === "") return;
    const version = shortText(info.version);
    const asks = canShowForm(capabilities);
    const key = `${asks} ${version}\n${name}`;
    const earlier = this.#noted.get(key);
    // `recent()` needs the time only of clients without sessions.
    const at = isBrief ? Date.now() : 0;
    if (earlier !== undefined) return void (earlier.at = at);
    this.#noted.set(key, { name, version, asks, since: Date.now(), at });
    dropOldest(this.#noted, CLIENTS_MAX);
    this.#waiting.set(key, { name, version, asks });
    dropOldest(this.#waiting, CLIENTS_MAX);
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => void this.#write(), this.#delay);
    Deno.unrefTimer(this.#timer);
  }

  /** Returns the clients without sessions that sent a request in the last minutes. */
  recent(): readonly SessionlessClient[] {
    const earliest = Date.now() - RECENT_MS;
    return [...this.#noted.values()].filter(({ at }) => at > earliest);
  }

  /** Records the clients that are not written yet. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer);
    if (this.#waiting.size > 0) await this.#write();
    await this.#writing;
  }

  #write(): Promise<void> {
    this.#timer = undefined;
    this.#delay = NEXT_WRITE_MS;
    const clients = [...this.#waiting.values()];
    this.#waiting.clear();
    const { log } = this.#app;
    const { home, problem } = this.#app.config();
    // The configuration may be broken because PML refused the path of the home.
    if (problem !== undefined) return this.#writing;
    return this.#writing = this.#writing.then(async () => {
      const { recordClients, seenClient } = await import("../gateway/seen_clients.ts");
      await recordClients(home, clients.map((client) => seenClient(client)));
    }).catch((error) => log.debug(`Cannot record clients: ${messageOf(error)}`));
  }
}

function shortText(value: unknown): string {
  const text = textOf(value);
  return text.length > NAME_MAX ? `a text of ${text.length} characters` : text;
}

/** The listed names. Metrics have labels only for listed names, so that labels stay few. */
class ListedNames implements KnownNames {
  readonly #app: App;

  constructor(app: App) {
    this.#app = app;
  }

  hasMethod(method: string): boolean {
    return isDefinedMethod(method);
  }

  hasName(name: string): boolean {
    const { servers, catalog } = this.#app;
    return isMetaTool(name) || servers.idOf(name) !== undefined || bareTools(catalog).has(name);
  }

  hasTool(id: ToolId): boolean {
    return this.#app.catalog.get(id) !== undefined;
  }
}

/** The parts of the running PML that the gateway uses. The first call opens the call path. */
class AppGatewayHost implements GatewayHost {
  readonly servers: Servers;
  readonly catalog: Catalog;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly tracer: Tracer | undefined;
  readonly notes: ClientRecorder | undefined;
  readonly #app: App;
  #callPath: CallPath | undefined;

  constructor(app: App, notes: ClientRecorder | undefined) {
    this.servers = app.servers;
    this.catalog = app.catalog;
    this.metrics = app.metrics;
    this.metrics.names = new ListedNames(app);
    this.log = app.log;
    this.tracer = app.traces?.tracer;
    this.notes = notes;
    this.#app = app;
  }

  callTool(call: Call): Promise<Outcome> {
    return this.#callPath === undefined ? this.#callFirst(call) : this.#callPath.callTool(call);
  }

  async #callFirst(call: Call): Promise<Outcome> {
    this.#callPath = await this.#app.callPath();
    try {
      return await this.#callPath.callTool(call);
    } finally {
      this.#app.firstAnswer.resolve();
    }
  }

  schemas(): Promise<Schemas> {
    return this.#app.schemas();
  }

  async search(...query: Parameters<GatewayHost["search"]>): Promise<SearchAnswer> {
    const answer = await (await this.#app.finder()).search(...query);
    // Writes the names now, because many clients kill PML before its end writes them.
    if (this.#app.parts.isLongRunning) await this.#app.keepNames();
    return answer;
  }

  async recentTools(): Promise<readonly ToolId[]> {
    return (await this.#app.openMemory()).recentTools();
  }

  judge(id: ToolId): Verdict {
    return this.#app.policy.now.judge(id);
  }

  settings(): GatewaySettings {
    return gatewaySettings(this.#app.policy.now.config);
  }

  setLevel(level: string): void {
    this.#app.setLevel(level);
  }

  async askForAll(calls: readonly Call[]): Promise<ReadonlyMap<string, ApprovalAnswer>> {
    return await (await this.#app.callPath()).checker.askForAll(calls);
  }

  workflow(): Promise<Workflow> {
    return this.#app.workflow();
  }

  observedOutput(): Promise<ObservedOutput> {
    return this.#app.observedOutput();
  }

  async storeQuestion(question: Question): Promise<PmlError> {
    return await (await this.#app.callPath()).storeQuestion(question);
  }

  configProblem(): PmlError | undefined {
    return this.#app.config().problem;
  }

  unfollow(followed: Parameters<GatewayHost["unfollow"]>[0]): void {
    this.#app.machine().then((machine) => machine.unfollow(followed), () => {});
  }

  onList(): void {
    this.#app.firstList.resolve();
    this.#app.firstAnswer.resolve();
  }
}

/** Opens the gateway. Does not open the call path yet. */
export function openGatewayOf(app: App): Gateway {
  // The clients of an identity are not the user's own, and a command is not a client.
  const isOwn = app.parts.isLongRunning && app.loaded().identity === undefined;
  const notes = isOwn ? new ClientNotes(app) : undefined;
  app.clientNotes = notes;
  return new Gateway(new AppGatewayHost(app, notes));
}

/**
 * Opens the gateway. It is loaded when the gateway is first needed.
 *
 * @module
 */

import { gatewaySettings } from "../config/gateway_settings.ts";
import { messageOf } from "../core/errors.ts";
import { type JsonObject, textOf } from "../core/json.ts";
import { dropOldest } from "../core/memo.ts";
import { Gateway } from "../gateway/gateway.ts";
import { canShowForm } from "../gateway/interaction/capabilities.ts";
import type { ApprovalAnswer, Call, Outcome, Question } from "../protocol/call.ts";
import type { ClientRecorder, GatewayHost, GatewaySettings } from "../gateway/options.ts";
import type { Log } from "../audit/log.ts";
import type { Metrics } from "../audit/metrics.ts";
import type { Schemas } from "../calls/schemas.ts";
import type { PmlError } from "../core/errors.ts";
import type { ToolId } from "../core/tool_id.ts";
import type { Verdict } from "../protocol/verdict.ts";
import type { Catalog } from "../search/catalog.ts";
import type { SearchAnswer } from "../search/search.ts";
import type { Servers } from "../servers/lists/servers.ts";
import type { Observed } from "../workflow/declarations.ts";
import type { Workflow } from "../workflow/workflow.ts";
import type { App } from "./app.ts";
import type { CallPath } from "./call_path.ts";
import type { SeenClient } from "./seen_clients.ts";

/** How long after its first request a client is recorded, in milliseconds: after its first answers. */
const RECORD_MS = 2_000;
/** The least time between two writes. */
const AGAIN_MS = 30_000;
/** The maximum number of clients that wait to be recorded, and of those that were. */
const CLIENTS_MAX = 50;
/** A longer name is not a name. */
const NAME_MAX = 200;

/** The clients of a running PML, which are recorded after their first answers. */
export class ClientNotes implements ClientRecorder, AsyncDisposable {
  readonly #app: App;
  readonly #noted = new Set<string>();
  readonly #waiting = new Map<string, Pick<SeenClient, "name" | "version" | "asks">>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #writing: Promise<void> = Promise.resolve();
  #delay = RECORD_MS;

  /** Takes the app. Loads and writes nothing yet. */
  constructor(app: App) {
    this.#app = app;
  }

  /** Notes a client by the name and the capabilities that it declared. */
  note(info: JsonObject, capabilities: JsonObject): void {
    const name = shortText(info.name);
    if (name === "") return;
    const version = shortText(info.version);
    const asks = canShowForm(capabilities);
    const key = `${asks} ${version}\n${name}`;
    if (this.#noted.has(key)) return;
    this.#noted.add(key);
    dropOldest(this.#noted, CLIENTS_MAX);
    this.#waiting.set(key, { name, version, asks });
    dropOldest(this.#waiting, CLIENTS_MAX);
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => void this.#write(), this.#delay);
    Deno.unrefTimer(this.#timer);
  }

  /** Records the clients of which none was written yet. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer);
    if (this.#waiting.size > 0) await this.#write();
    await this.#writing;
  }

  #write(): Promise<void> {
    this.#timer = undefined;
    this.#delay = AGAIN_MS;
    const clients = [...this.#waiting.values()];
    this.#waiting.clear();
    const { log } = this.#app;
    const { home, problem } = this.#app.config();
    // A broken configuration may have refused the home.
    if (problem !== undefined) return this.#writing;
    return this.#writing = this.#writing.then(async () => {
      const { recordClients, seenClient } = await import("./seen_clients.ts");
      await recordClients(home, clients.map((one) => seenClient(one)));
    }).catch((error) => log.debug(`Cannot record clients: ${messageOf(error)}`));
  }
}

function shortText(value: unknown): string {
  const text = textOf(value);
  return text.length > NAME_MAX ? `a text of ${text.length} characters` : text;
}

/** The running PML for its gateway. Calls go to the call path, which the first of them opens. */
class AppGatewayHost implements GatewayHost {
  readonly servers: Servers;
  readonly catalog: Catalog;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly notes: ClientRecorder | undefined;
  readonly #app: App;
  #path: CallPath | undefined;

  constructor(app: App, notes: ClientRecorder | undefined) {
    this.servers = app.servers;
    this.catalog = app.catalog;
    this.metrics = app.metrics;
    this.log = app.log;
    this.notes = notes;
    this.#app = app;
  }

  callTool(call: Call): Promise<Outcome> {
    return this.#path === undefined ? this.#callFirst(call) : this.#path.callTool(call);
  }

  async #callFirst(call: Call): Promise<Outcome> {
    this.#path = await this.#app.callPath();
    return await this.#path.callTool(call);
  }

  schemas(): Promise<Schemas> {
    return this.#app.schemas();
  }

  async search(...query: Parameters<GatewayHost["search"]>): Promise<SearchAnswer> {
    const answer = await (await this.#app.finder()).search(...query);
    // Many clients end PML without waiting for it.
    if (this.#app.parts.stays) await this.#app.keepNames();
    return answer;
  }

  async recent(): Promise<readonly ToolId[]> {
    return (await this.#app.memory()).lately();
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
    return await (await this.#app.callPath()).ahead.askForAll(calls);
  }

  workflow(): Promise<Workflow> {
    return this.#app.workflow();
  }

  async observed(): Promise<Observed> {
    return await (await import("./app_memory.ts")).observedBy(this.#app);
  }

  async leave(question: Question): Promise<PmlError> {
    return await (await this.#app.callPath()).leave(question);
  }

  problem(): PmlError | undefined {
    return this.#app.config().problem;
  }

  unfollow(followed: Parameters<GatewayHost["unfollow"]>[0]): void {
    this.#app.machine().then((machine) => machine.unfollow(followed), () => {});
  }

  onList(): void {
    this.#app.firstList.resolve();
  }
}

/** Opens the gateway. Opens no call path yet. */
export function openGatewayOf(app: App): Gateway {
  // The clients of others are not the user's, and a command is no client.
  const isOwn = app.parts.stays && app.loaded().identity === undefined;
  const notes = isOwn ? new ClientNotes(app) : undefined;
  app.clientNotes = notes;
  return new Gateway(new AppGatewayHost(app, notes));
}

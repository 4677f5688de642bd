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
import type { Call } from "../protocol/call.ts";
import type { ClientRecorder } from "../gateway/options.ts";
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

/** Opens the gateway; calls go to the call path, which opens with the first of them. */
export function openGatewayOf(app: App): Gateway {
  const { servers, catalog, metrics, policy, log } = app;
  let path: CallPath | undefined;
  // The clients of others are not the user's, and a command is no client.
  const isOwn = app.parts.stays && app.loaded().identity === undefined;
  const notes = app.clientNotes = isOwn ? new ClientNotes(app) : undefined;
  const callFirst = async (call: Call) => await (path = await app.callPath()).callTool(call);
  return new Gateway({
    servers,
    catalog,
    metrics,
    schemas: () => app.schemas(),
    callTool: (call) => path === undefined ? callFirst(call) : path.callTool(call),
    askForAll: async (calls) => await (await app.callPath()).ahead.askForAll(calls),
    workflow: () => app.workflow(),
    observed: async () => await (await import("./app_memory.ts")).observedBy(app),
    leave: async (question) => await (await app.callPath()).leave(question),
    search: async (...args) => await (await app.finder()).search(...args),
    judge: (...args) => policy.now.judge(...args),
    settings: () => gatewaySettings(policy.now.config),
    problem: () => app.config().problem,
    unfollow: (followed) =>
      void app.callPath().then(({ machine }) => machine.unfollow(followed), () => {}),
    setLevel: (level) => app.setLevel(level),
    notes,
    onList: app.firstList.resolve,
    onLost: (error) => log.warn(error.message),
    onError: (error) => log.debug(error.message),
    log: (level, text, server) => log[level](text, { server }),
  });
}

/**
 * Shows a running PML to `pml page`, through a socket in the PML home. Calls cost no extra time while no
 * page follows them.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { randomBytes, timingSafeEqual } from "node:crypto";
import type { Server } from "node:net";
import type { Duplex } from "node:stream";
import type { App } from "../app/app.ts";
import type { MetricsSnapshot } from "../audit/metric_families.ts";
import { refusesHome } from "../config/config.ts";
import { messageOf, PmlError } from "../core/errors.ts";
import { type JsonObject, quoted, textOf } from "../core/json.ts";
import { VERSION } from "../core/version.ts";
import { isSocketPath, listenPrivately } from "../transport/attach/private_socket.ts";
import { LiveCalls } from "./_live_calls.ts";
import type { CallRow, ProcessState } from "./api.ts";
import { ControlConnection, type ControlHost } from "./control_connection.ts";
import { type ProcessEntry, removeEntry, socketOf, writeEntry } from "./process_folder.ts";
import { readState, type ShownApp } from "./process_state.ts";
import { approvalReplyOf } from "./replies.ts";

/** The parts of a running PML that its page needs. */
export interface ShownHost {
  readonly command: ProcessEntry["command"];
  /** The PML of the user, who owns this process. */
  readonly app: App;
  /** Returns the PMLs of identities that are open. */
  identityApps(): Promise<readonly App[]>;
}

/** The maximum number of connected pages, and also of programs that have not sent the key yet. */
const CONNECTIONS_MAX = 16;
/** The maximum size of a request of a page, in bytes. */
const REQUEST_MAX = 1 << 16;
/** How long a page may take to prove that it can read the PML home, in milliseconds. */
const PROOF_MS = 2_000;
/** The shortest time between two states that a page gets, in milliseconds. */
const STATE_MS = 200;
/** How often the state is compared with the last one, for changes without an event, in milliseconds. */
const POLL_MS = 1_000;

/** Lets pages follow this process until the object is disposed. */
export class ShownProcess implements AsyncDisposable {
  readonly #host: ShownHost;
  readonly #entry: ProcessEntry;
  readonly #home: string;
  readonly #viewers = new Set<Viewer>();
  #server: Server | undefined;
  #live: LiveCalls | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The time at which the timer fires, by `performance.now()`. */
  #wakesAt = Infinity;
  #lastState = "";
  #isOver = false;

  private constructor(host: ShownHost) {
    const { home, workspace } = host.app.config();
    const id = crypto.randomUUID().replaceAll("-", "").slice(0, 16);
    this.#host = host;
    this.#home = home;
    const socket = socketOf(home, id);
    this.#entry = {
      id,
      pid: Deno.pid,
      startedAt: Math.round(performance.timeOrigin),
      command: host.command,
      workspace,
      version: VERSION,
      host: Deno.hostname(),
      ...isSocketPath(socket)
        ? { socket, key: randomBytes(32).toString("hex") }
        : { reason: "the path of the PML home is too long" },
    };
  }

  /** Opens the socket of this process, and writes the entry by which pages find it. */
  static async open(host: ShownHost): Promise<ShownProcess> {
    const shown = new ShownProcess(host);
    await shown.#listen();
    return shown;
  }

  /** Returns the state now. */
  async state(): Promise<ProcessState> {
    return await readState(this.#entry, await this.apps());
  }

  /** Returns the PMLs of this process. The first one belongs to the owner. */
  async apps(): Promise<readonly [ShownApp, ...ShownApp[]]> {
    const shown = async (app: App): Promise<ShownApp> => ({ app, callPath: await app.callPath() });
    const ofIdentities = await Promise.all((await this.#host.identityApps()).map(shown));
    return [await shown(this.#host.app), ...ofIdentities];
  }

  /** Returns the metrics of this process. */
  async metrics(): Promise<MetricsSnapshot> {
    const { processMetrics } = await import("./process_metrics.ts");
    return await processMetrics((await this.apps()).map(({ app }) => app));
  }

  /** Begins to send changes to the pages that follow this process. */
  async follow(): Promise<void> {
    this.#live ??= new LiveCalls(this.#entry.id, {
      onCall: (row) => this.#sendCall(row),
      onChange: () => this.#sendWithin(STATE_MS),
    });
    this.#live.watch(await this.apps());
    this.#lastState = "";
    this.#sendWithin(0);
  }

  /** Answers a question that waits in a form of a client. */
  answer({ question, reply }: JsonObject): JsonObject {
    const answer = approvalReplyOf(reply);
    const { questions } = this.#host.app.openGateway ?? {};
    if (answer === undefined || questions === undefined) {
      return notDone("there is no such question");
    }
    const why = questions.answer(textOf(question), answer);
    return why === undefined ? { done: true } : notDone(ANSWER_PROBLEMS[why]);
  }

  /** Cancels a call that runs. */
  async cancel({ call: callId }: JsonObject): Promise<JsonObject> {
    for (const { callPath } of await this.apps()) {
      const call = callPath.running.find(textOf(callId));
      if (call === undefined) continue;
      const { id, actor } = call;
      callPath.record("cancelled", {
        actor,
        about: { tool: id, callId: call.callId, channel: "page" },
      });
      const message = `Cannot finish "${id}": the user cancelled it on the page`;
      call.cancel(new PmlError("CANCELLED", message, { hint: "Ask the user before another call" }));
      return { done: true };
    }
    return notDone("the call has ended");
  }

  /** Stops a server, or starts it again. */
  async control({ name, action }: JsonObject): Promise<JsonObject> {
    const { app } = this.#host;
    const server = app.directory.all().find((one) => one.name === name);
    if (server === undefined || (action !== "restart" && action !== "stop")) {
      return notDone(`there is no server ${quoted(textOf(name), 100)}`);
    }
    const callPath = await app.callPath();
    const event = action === "stop" ? "server stopped" : "server restarted";
    callPath.record(event, { actor: "local", about: { server: server.name, channel: "page" } });
    await callPath.machine.end(server.name);
    if (action === "restart") {
      const { startEarly } = await import("../app/first_call.ts");
      await startEarly(app, server);
      app.servers.lists.expire(server.name);
    }
    this.#sendWithin(STATE_MS);
    return { done: true };
  }

  /** Removes a page whose connection has ended. */
  remove(viewer: Viewer): void {
    this.#viewers.delete(viewer);
    if ([...this.#viewers].some(({ isFollowing }) => isFollowing)) return;
    this.#stop();
    this.#live?.[Symbol.dispose]();
    this.#live = undefined;
  }

  /** Hides this process. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    this.#stop();
    removeEntry(this.#home, this.#entry.id);
    for (const viewer of this.#viewers) viewer[Symbol.dispose]();
    this.#server?.close();
    await Promise.resolve();
  }

  async #listen(): Promise<void> {
    // PML writes nothing into a home that it refuses to use.
    // guard: shown-home
    if (refusesHome(this.#host.app.config().problem)) return;
    const { socket } = this.#entry;
    const server = socket && await listenPrivately(socket, (socket) => this.#take(socket));
    if (this.#isOver) return;
    if (server) {
      this.#server = server;
      // The socket must not keep the process alive.
      server.unref();
    }
    const { socket: _, key: __, ...rest } = this.#entry;
    const reason = rest.reason ?? "its socket could not be opened";
    writeEntry(this.#home, server ? this.#entry : { ...rest, reason });
  }

  /** Returns whether a text is the key of this process, which only readers of the PML home know. */
  isKey(text: unknown): boolean {
    const [one, other] = [textOf(text), this.#entry.key ?? ""].map((each) => Buffer.from(each));
    return one !== undefined && other !== undefined && one.length === other.length &&
      one.length > 0 && timingSafeEqual(one, other);
  }

  #take(socket: Duplex): void {
    const [proven = [], unproven = []] = [true, false]
      .map((isProven) => [...this.#viewers].filter((one) => one.isProven === isProven));
    // guard: control-connections
    if (proven.length >= CONNECTIONS_MAX || this.#isOver) return void socket.destroy();
    // Programs without the key must not use up the connections of pages.
    // guard: control-unproven
    if (unproven.length >= CONNECTIONS_MAX) unproven[0]?.[Symbol.dispose]();
    this.#viewers.add(new Viewer(this, socket));
  }

  #sendCall(row: CallRow): void {
    for (const viewer of this.#viewers) viewer.notify("call", { call: { ...row } });
  }

  /** Sends the state within `ms` milliseconds, if it has changed. */
  #sendWithin(ms: number): void {
    const wakes = performance.now() + ms;
    if (this.#live === undefined || this.#wakesAt <= wakes) return;
    this.#stop();
    this.#wakesAt = wakes;
    this.#timer = setTimeout(() => void this.#sendChanges(), ms);
    Deno.unrefTimer(this.#timer);
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#wakesAt = Infinity;
  }

  /** Sends a state. If a page was too slow for it, the next state is sent even if it is equal. */
  #sendState(text: string): void {
    this.#lastState = text;
    for (const viewer of this.#viewers) {
      if (!viewer.notify("state", { state: JSON.parse(text) })) this.#lastState = "";
    }
  }

  async #sendChanges(): Promise<void> {
    this.#wakesAt = Infinity;
    try {
      this.#live?.watch(await this.apps());
      const state = await this.state();
      const text = JSON.stringify(state);
      if (text !== this.#lastState) this.#sendState(text);
    } catch (error) {
      this.#host.app.log.debug(`Cannot show this process: ${messageOf(error)}`);
    }
    this.#sendWithin(POLL_MS);
  }
}

const ANSWER_PROBLEMS = {
  over: "it was answered already, or has ended",
  "not offered": "the question does not offer this answer",
  "too soon": "the answer came faster than a user can read the question",
};

function notDone(reason: string): JsonObject {
  return { done: false, reason };
}

/** A connected page. */
class Viewer implements ControlHost, Disposable {
  /** Whether the page receives changes. */
  isFollowing = false;
  /** Whether the page has proved that it can read the PML home. */
  isProven = false;
  readonly #process: ShownProcess;
  readonly #connection: ControlConnection;
  readonly #proofTimer: ReturnType<typeof setTimeout>;

  constructor(shown: ShownProcess, socket: Duplex) {
    this.#process = shown;
    this.#connection = new ControlConnection(socket, this, REQUEST_MAX);
    this.#proofTimer = setTimeout(() => this[Symbol.dispose](), PROOF_MS);
    Deno.unrefTimer(this.#proofTimer);
  }

  /** Sends a notification to a page that follows. Returns false if the page reads too slowly. */
  notify(method: string, params: JsonObject): boolean {
    return !this.isFollowing || this.#connection.notify(method, params);
  }

  async serve(method: string, params: JsonObject): Promise<JsonObject> {
    if (method === "open" && this.#process.isKey(params.key)) {
      this.isProven = true;
      clearTimeout(this.#proofTimer);
      return {};
    }
    // guard: control-key
    if (!this.isProven) throw endWithoutKey(this);
    switch (method) {
      case "state":
        return { ...await this.#process.state() } as unknown as JsonObject; // plain JSON
      case "follow":
        this.isFollowing = true;
        await this.#process.follow();
        return {};
      case "answer":
        return this.#process.answer(params);
      case "cancel":
        return await this.#process.cancel(params);
      case "server":
        return await this.#process.control(params);
      case "metrics":
        return { ...await this.#process.metrics() } as unknown as JsonObject; // plain JSON
      default:
        throw new PmlError("BAD_REQUEST", `Cannot serve ${quoted(method, 100)}: no such method`);
    }
  }

  onNotification(): void {}

  onEnd(): void {
    clearTimeout(this.#proofTimer);
    this.#process.remove(this);
  }

  [Symbol.dispose](): void {
    this.#connection[Symbol.dispose]();
  }
}

/** Ends a connection that did not send the key first, and returns the error for its request. */
function endWithoutKey(viewer: Viewer): PmlError {
  viewer[Symbol.dispose]();
  return new PmlError("PERMISSION_DENIED", "Cannot show this process: the key is missing");
}

/**
 * Finds all running PMLs of a home, follows them, and calls their methods.
 *
 * @module
 */

import { messageOf, PmlError } from "../core/errors.ts";
import { isObject, type JsonObject, objectOf, quoted } from "../core/json.ts";
import { connectOrWhy, type Unconnected } from "../transport/attach/private_socket.ts";
import type { CallRow, HiddenProcess, ProcessState, Reply, ServerRow } from "./api.ts";
import { ControlConnection, type ControlHost } from "./control_connection.ts";
import { type ProcessEntry, readEntries, removeEntry } from "./process_folder.ts";

/** Receives the changes. */
export interface ProcessClientsHost {
  /** A process was found, or its state has changed. */
  onState(state: ProcessState): void;
  /** A call began, asks or has ended. */
  onCall(call: CallRow): void;
  /** A process has ended. */
  onEnd(id: string): void;
  /** The list of processes that cannot be shown has changed. */
  onHidden?(hidden: readonly HiddenProcess[]): void;
}

/** The result of an action. */
export interface ActionResult {
  readonly done: boolean;
  /** Why it was not done. */
  readonly reason?: string;
}

/** How often the folder is read, in milliseconds. */
const READ_MS = 500;
/** How long a process may take for each answer while a connection is opened, in milliseconds. */
const FIRST_MS = 1_000;
/** How long a process may take for a later answer, in milliseconds. */
const ANSWER_MS = 5_000;
/** The time until PML tries a process again that did not answer, in milliseconds. */
const RETRY_MS = 5_000;
/** How long an action of a process may take, in milliseconds. */
const ACTION_MS = 60_000;
const WHY_HIDDEN: Readonly<Record<Exclude<Unconnected, "gone">, string>> = {
  "not private": "other users can open its socket",
  silent: "it does not answer",
};

/** The running PMLs of a home. */
export class ProcessClients implements AsyncDisposable {
  readonly #home: string;
  readonly #host: ProcessClientsHost;
  readonly #clients = new Map<string, ProcessClient>();
  #hidden: readonly HiddenProcess[] = [];
  /** When processes that did not answer are tried again, by `performance.now()`. */
  readonly #silent = new Map<string, { readonly until: number; readonly hidden: HiddenProcess }>();
  #reading: Promise<void> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isOver = false;

  /** Takes the home. Reads nothing yet. */
  constructor(home: string, host: ProcessClientsHost) {
    this.#home = home;
    this.#host = host;
  }

  /** Follows all processes, also those that start later. Resolves when their first states have arrived. */
  async start(): Promise<void> {
    await this.readFolder();
    this.#scheduleRead();
  }

  /** The states of the processes, the oldest first. */
  get states(): readonly ProcessState[] {
    return [...this.#clients.values()].flatMap(({ state }) => state ?? [])
      .toSorted((one, other) => one.startedAt - other.startedAt);
  }

  /** The processes that cannot be shown. */
  get hidden(): readonly HiddenProcess[] {
    return this.#hidden;
  }

  /** Answers a question that waits in a form of a client of a process. */
  async answer(
    id: string,
    { question, reply }: { readonly question: string; readonly reply: Reply },
  ): Promise<ActionResult> {
    return await this.#act(id, "answer", { question, reply });
  }

  /** Cancels a call that runs in a process. */
  async cancel(id: string, call: string): Promise<ActionResult> {
    return await this.#act(id, "cancel", { call });
  }

  /** Stops a server of a process, or starts it again. */
  async server(
    id: string,
    { name, action }: {
      readonly name: string;
      readonly action: Extract<ServerRow["actions"][number], "restart" | "stop">;
    },
  ): Promise<ActionResult> {
    return await this.#act(id, "server", { name, action });
  }

  /** Calls a method of a process. Rejects if the process has ended or does not answer. */
  async request(id: string, method: string, params: JsonObject = {}): Promise<JsonObject> {
    const client = this.#clients.get(id);
    if (client === undefined) throw endedError(id);
    return await client.request(method, params, ANSWER_MS);
  }

  /** Reads the folder, and connects to processes that are new. */
  async readFolder(): Promise<void> {
    await (this.#reading ??= this.#readEntries().finally(() => this.#reading = undefined));
  }

  /** Disconnects from all processes. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    clearTimeout(this.#timer);
    await this.#reading?.catch(() => {});
    for (const client of [...this.#clients.values()]) client[Symbol.dispose]();
  }

  async #act(id: string, method: string, params: JsonObject): Promise<ActionResult> {
    const client = this.#clients.get(id);
    if (client === undefined) return { done: false, reason: "the process has ended" };
    try {
      const { done, reason } = await client.request(method, params, ACTION_MS);
      return { done: done === true, ...typeof reason === "string" && { reason } };
    } catch (error) {
      return { done: false, reason: messageOf(error) };
    }
  }

  #scheduleRead(): void {
    if (this.#isOver) return;
    this.#timer = setTimeout(() => {
      // After a failure, the folder is read again at the next time.
      this.readFolder().catch(() => {}).finally(() => this.#scheduleRead());
    }, READ_MS);
  }

  async #readEntries(): Promise<void> {
    const entries = await readEntries(this.#home);
    for (const id of this.#silent.keys()) {
      if (!entries.some((entry) => entry.id === id)) this.#silent.delete(id);
    }
    const hidden = await Promise.all(entries.map((entry) => this.#connect(entry)));
    if (this.#isOver) return;
    const newHidden = hidden.filter((one) => one !== undefined);
    if (JSON.stringify(newHidden) === JSON.stringify(this.#hidden)) return;
    this.#hidden = newHidden;
    this.#host.onHidden?.(newHidden);
  }

  /** Connects to a new process. Returns its description as hidden if it cannot be connected. */
  async #connect(entry: ProcessEntry): Promise<HiddenProcess | undefined> {
    const { id, pid, command, workspace, socket: path } = entry;
    if (this.#clients.has(id)) return undefined;
    const hidden = (reason: string) => ({ id, pid, command, workspace, reason });
    if (entry.host !== Deno.hostname()) return hidden(`it runs on ${quoted(entry.host, 100)}`);
    if (path === undefined) return hidden(entry.reason ?? "it has no socket");
    const silent = this.#silent.get(id);
    if (silent !== undefined && silent.until > performance.now()) return silent.hidden;
    const socket = await connectOrWhy(path);
    if (socket === "gone") {
      // The process has ended, even if another process has its number now.
      removeEntry(this.#home, id);
      return undefined;
    }
    if (typeof socket === "string") return hidden(WHY_HIDDEN[socket]);
    const client = new ProcessClient(id, this.#host, () => this.#clients.delete(id));
    try {
      await client.open(socket, entry.key);
    } catch (error) {
      client[Symbol.dispose]();
      const until = performance.now() + RETRY_MS;
      const isLate = error instanceof DOMException && error.name === "TimeoutError";
      const one = hidden(isLate ? WHY_HIDDEN.silent : messageOf(error));
      this.#silent.set(id, { until, hidden: one });
      return one;
    }
    if (this.#isOver) client[Symbol.dispose]();
    else if (!client.isOver) this.#clients.set(id, client);
    return undefined;
  }
}

/** A connected process. */
class ProcessClient implements ControlHost, Disposable {
  /** Its last state; undefined before the first one. */
  state: ProcessState | undefined;
  isOver = false;
  readonly #id: string;
  readonly #host: ProcessClientsHost;
  readonly #onEnd: () => void;
  #connection: ControlConnection | undefined;

  constructor(id: string, host: ProcessClientsHost, onEnd: () => void) {
    this.#id = id;
    this.#host = host;
    this.#onEnd = onEnd;
  }

  /** Follows the process, and gets its first state. */
  async open(
    socket: ConstructorParameters<typeof ControlConnection>[0],
    key = "",
  ): Promise<void> {
    this.#connection = new ControlConnection(socket, this);
    await this.request("open", { key }, FIRST_MS);
    // The request for changes comes before the state, so that no change is missed between the two.
    await this.request("follow", {}, FIRST_MS);
    this.#takeState(await this.request("state", {}, FIRST_MS));
    if (this.state === undefined) throw new Error("its answer is not the state of a process");
  }

  async request(method: string, params: JsonObject, ms: number): Promise<JsonObject> {
    if (this.#connection === undefined || this.isOver) throw endedError(this.#id);
    return objectOf(await this.#connection.request(method, params, AbortSignal.timeout(ms)));
  }

  serve(method: string): Promise<JsonObject> {
    return Promise.reject(new PmlError("BAD_REQUEST", `Cannot serve ${quoted(method, 100)}`));
  }

  onNotification(method: string, params: JsonObject): void {
    if (method === "state") this.#takeState(params.state);
    if (method === "call" && isObject(params.call)) {
      // The process is this user's own PML of the same version.
      this.#host.onCall(params.call as unknown as CallRow);
    }
  }

  onEnd(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#onEnd();
    if (this.state !== undefined) this.#host.onEnd(this.#id);
  }

  [Symbol.dispose](): void {
    this.#connection?.[Symbol.dispose]();
  }

  /** Keeps a state of this process. Ignores the state of another process. */
  #takeState(value: unknown): void {
    const state = objectOf(value);
    // guard: process-state
    if (state.id !== this.#id || !Array.isArray(state.servers)) return;
    this.state = state as unknown as ProcessState;
    this.#host.onState(this.state);
  }
}

function endedError(id: string): PmlError {
  return new PmlError("UPSTREAM_DOWN", `Cannot reach the process ${quoted(id, 100)}: it has ended`);
}

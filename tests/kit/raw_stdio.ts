/**
 * Communicates with a spawned PML byte by byte: keeps all its output, and asserts that each line is
 * one JSON-RPC message, and that each request gets exactly one answer.
 *
 * @module
 */

import assert from "node:assert/strict";
import { CLIENT_INFO, type Era, ERAS, type Message, paramsFor, parseMessage } from "./json_rpc.ts";
import { IN_PROCESS, pidOf, type Running, startBehindDoor, startInProcess } from "./in_process.ts";
import { Ledger } from "./ledger.ts";
import { type Hold, Output } from "./output.ts";
import { type Command, pmlCommand } from "./pml_command.ts";
import { ProcWatch } from "./procwatch.ts";
import { throughDoor } from "./through_door.ts";
import { DEADLINE_MS, within } from "./wait.ts";
import type { Workspace } from "./workspace.ts";

/** Answers the server's requests (`elicitation/create` and others): returns the result. */
export type Answerer = (
  method: string,
  params: Record<string, unknown>,
) => unknown | Promise<unknown>;

/** The transports of clients: `pml stdio`, and `pml serve`. */
export const DOORS = ["stdio", "http"] as const;

/**
 * The transports with both revisions, and the name of each in test titles: its revision, and the
 * transport if it is HTTP.
 */
export const WAYS = DOORS.flatMap((door) =>
  ERAS.map((era) => ({ door, era, on: door === "stdio" ? era : `${era} over HTTP` }))
);

/** Each transport once and each revision once: two of the four combinations. */
export const EACH_WAY = WAYS.filter(({ door, era }) => (door === "http") === (era === ERAS[1]));

/** The options of a spawned PML and its client. */
export interface RawStdioOptions {
  readonly era?: Era;
  /** The transport of the client; `pml stdio` unless this is "http". */
  readonly door?: typeof DOORS[number];
  /** Arguments after `pml`; `stdio` by default. */
  readonly args?: readonly string[];
  /** Another program instead of PML. */
  readonly command?: Command;
  /** Whether PML runs as a separate process: for tests of signals, memory, start and end. */
  readonly ownProcess?: boolean;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Capabilities of the client; form elicitation when there is an answerer, else none. */
  readonly capabilities?: Record<string, unknown>;
  /** Answers the server's own requests; without it they stay unanswered. */
  readonly answer?: Answerer;
  /** Receives every message first. */
  readonly onMessage?: (message: Message) => void;
  /** Returns a promise that delays reading stdout; called for each piece. */
  readonly reads?: Hold;
  /** Returns a promise that delays reading stderr; called for each piece. */
  readonly hears?: Hold;
}

/** Returns whether PML must be a process: for another program, or for a pipe that is not read. */
function needsProcess(
  { ownProcess = !IN_PROCESS, command, reads, hears }: RawStdioOptions,
): boolean {
  return ownProcess || command !== undefined || reads !== undefined || hears !== undefined;
}

/** Starts PML in this process or in a separate one. */
function started(workspace: Workspace, options: RawStdioOptions): Running {
  const { door, command, args: own = ["stdio"] } = options;
  const cwd = options.cwd ?? workspace.path;
  const env = { ...workspace.env, ...options.env };
  if (!needsProcess(options)) {
    return door === "http"
      ? startBehindDoor({ cwd, env })
      : startInProcess({ args: own, cwd, env });
  }
  const usual: Command = door === "http" ? throughDoor() : [...pmlCommand(), ...own];
  const [program, ...args] = command ?? usual;
  return new Deno.Command(program, {
    ...{ args, cwd, env, clearEnv: true },
    ...{ stdin: "piped", stdout: "piped", stderr: "piped" },
  }).spawn();
}

/** The options of a request. */
export interface RequestOptions {
  readonly id?: number | string;
  readonly ms?: number;
  /** Members next to `method` and `params`. */
  readonly next?: Readonly<Record<string, unknown>>;
}

/** The end of a process. */
export interface ProcessEnd {
  readonly code: number;
  readonly signal: string | null;
  /** From the end of stdin or the signal to the end, in milliseconds. */
  readonly ms: number;
}

/** A spawned server and all its output. Its disposal kills remaining processes. */
export class RawStdio implements AsyncDisposable {
  /** The revision of the requests. */
  readonly era: Era;
  /** Follows the processes that the server starts. */
  readonly watch: ProcWatch;
  readonly #child: Running;
  readonly #isOwnProcess: boolean;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #options: RawStdioOptions;
  readonly #ledger = new Ledger(() => this.#told());
  readonly #output: Output;
  #nextId = 1;
  #closedInput = false;

  /** Spawns `pml stdio` in a workspace. */
  constructor(workspace: Workspace, options: RawStdioOptions = {}) {
    this.#options = options;
    this.era = options.era ?? "2025-11-25";
    this.watch = new ProcWatch(workspace);
    this.#isOwnProcess = needsProcess(options);
    this.#child = started(workspace, options);
    this.#input = this.#child.stdin.getWriter();
    this.#output = new Output(this.#child, {
      reads: options.reads,
      hears: options.hears,
      onLine: (line) => this.#take(line),
    });
  }

  /** The received messages, in order. */
  get messages(): readonly Message[] {
    return this.#ledger.messages;
  }

  /** The id of the spawned process. */
  get pid(): number {
    return pidOf(this.#child);
  }

  /** Resolves to the exit status when the process has ended and all its output was read. */
  get ended(): Promise<[Deno.CommandStatus, unknown]> {
    return Promise.all([this.#child.status, this.#output.read]);
  }

  /** Every byte of stdout so far, as text. */
  get stdout(): string {
    return new TextDecoder().decode(this.stdoutBytes);
  }

  /** Every byte of stdout so far. */
  get stdoutBytes(): Uint8Array {
    return this.#output.stdout;
  }

  /** All of stderr so far. */
  get stderr(): string {
    return this.#output.stderr;
  }

  /** Sends bytes unchanged. */
  async sendBytes(bytes: Uint8Array): Promise<void> {
    await this.#input.write(bytes);
  }

  /** Sends a text unchanged. */
  async sendText(text: string): Promise<void> {
    await this.sendBytes(new TextEncoder().encode(text));
  }

  /** Sends one JSON value and a newline. */
  async sendJson(value: unknown): Promise<void> {
    await this.sendText(`${JSON.stringify(value)}\n`);
  }

  /** Sends a notification. */
  async notify(method: string, params?: Record<string, unknown>): Promise<void> {
    await this.sendJson({ jsonrpc: "2.0", method, params: this.#params(params) });
  }

  /** Sends a request and returns its id and the promise of its answer, the whole message. */
  begin(
    method: string,
    params?: Record<string, unknown>,
    { id = this.#nextId++, ms, next }: RequestOptions = {},
  ): { readonly id: number | string; readonly answer: Promise<Message> } {
    const answer = this.expect(id, { ms, what: method });
    // The end of a process is reported by the missing answer.
    const message = { ...next, jsonrpc: "2.0", id, method, params: this.#params(params) };
    this.sendJson(message).catch(() => {});
    return { id, answer };
  }

  /** Sends a request and waits for its answer, which may be an error. */
  request(
    method: string,
    params?: Record<string, unknown>,
    options: RequestOptions = {},
  ): Promise<Message> {
    return this.begin(method, params, options).answer;
  }

  /** Records an id whose answer is read elsewhere, so that it counts as a request. */
  noteAsked(id: number | string): void {
    this.#ledger.ask(id);
  }

  /**
   * Waits for the answer to an id that was sent without the kit. A failure of a promise that is
   * never awaited is ignored: some requests are aborted, and a busy machine is slow.
   */
  expect(
    id: number | string,
    { ms = DEADLINE_MS, what = "" }: { readonly ms?: number; readonly what?: string } = {},
  ): Promise<Message> {
    const ended = this.#output.read.then(() => {
      throw new Error(`The process ended without an answer to ${id} ${what}: ${this.#told()}`);
    });
    ended.catch(() => {}); // reported through the race alone
    const answer = within(Promise.race([this.#ledger.answerTo(id), ended]), {
      ms,
      what: () => `no answer to ${id} ${what}: ${this.#told()}`,
    });
    return untold(answer);
  }

  /** Opens the connection: a handshake, or `server/discover`, depending on the revision. */
  async open(): Promise<Message> {
    if (this.era === "2026-07-28") return await this.request("server/discover", {});
    const answer = await this.request("initialize", {
      protocolVersion: this.era,
      capabilities: this.#capabilities(),
      clientInfo: CLIENT_INFO,
    });
    await this.notify("notifications/initialized");
    return answer;
  }

  /** Calls a tool to its end, with questions answered by the answerer in either revision. */
  callTool(
    name: string,
    args: Record<string, unknown> = {},
    options: { readonly ms?: number; readonly rounds?: number } = {},
  ): Promise<Message> {
    return untold(calledTool(this, { name, args, answer: this.#options.answer, ...options }));
  }

  /** Closes stdin, waits for the end, and asserts that the output was clean. */
  async close({ ms = DEADLINE_MS }: { readonly ms?: number } = {}): Promise<ProcessEnd> {
    await this.#remember();
    const since = performance.now();
    await this.#closeInput();
    return await this.#end(since, ms);
  }

  /** Sends a signal and waits for the end. */
  async kill(
    signal: Deno.Signal = "SIGKILL",
    { ms = DEADLINE_MS }: { readonly ms?: number } = {},
  ): Promise<ProcessEnd> {
    await this.#remember();
    const since = performance.now();
    this.#child.kill(signal);
    return await this.#end(since, ms);
  }

  /** Asserts that each line so far was one message, and no request has two answers. */
  assertClean(): void {
    this.#ledger.assertClean();
  }

  /** Asserts that every request so far has exactly one answer, and that the output was clean. */
  assertAnswered(): void {
    this.#ledger.assertAnswered();
  }

  /** Kills remaining processes. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      // A program in between gets SIGTERM, so that it kills PML, too.
      const isAsked = this.#options.door === "http" || !this.#isOwnProcess;
      this.#child.kill(isAsked ? "SIGTERM" : "SIGKILL");
    } catch {
      // it has ended already
    }
    await this.#closeInput();
    await this.#child.status;
    await this.#output.read;
  }

  async #remember(): Promise<void> {
    if (this.#isOwnProcess) await this.watch.remember(this.pid);
    else await this.watch.rememberTagged();
  }

  #params(params: Record<string, unknown> | undefined): Record<string, unknown> | undefined {
    return paramsFor(this.era, params, this.#capabilities());
  }

  #capabilities(): Record<string, unknown> {
    const { capabilities, answer } = this.#options;
    return capabilities ?? (answer === undefined ? {} : { elicitation: { form: {} } });
  }

  async #closeInput(): Promise<void> {
    if (this.#closedInput) return;
    this.#closedInput = true;
    await this.#input.close().catch(() => {}); // the other end is closed already
  }

  async #end(since: number, ms: number): Promise<ProcessEnd> {
    const status = await within(this.#child.status, { ms, what: () => `no end: ${this.#told()}` });
    const took = performance.now() - since;
    await this.#closeInput();
    await within(this.#output.read, { ms, what: () => "a child keeps stdout open" });
    assert.equal(this.#output.rest, "", `stdout ends in an incomplete line: ${this.#told()}`);
    this.assertClean();
    return { code: status.code, signal: status.signal, ms: took };
  }

  #take(line: string): void {
    try {
      const message = parseMessage(line);
      this.#ledger.messages.push(message);
      this.#options.onMessage?.(message);
      if (message.method !== undefined) this.#reply(message);
      else this.#ledger.settle(message);
    } catch (error) {
      this.#ledger.broke(error);
    }
  }

  #reply({ id, method = "", params = {} }: Message): void {
    const { answer } = this.#options;
    if (id === undefined || answer === undefined) return;
    Promise.resolve(answer(method, params))
      .then((result) => this.sendJson({ jsonrpc: "2.0", id, result }))
      .catch((error: unknown) => this.#ledger.broke(error));
  }

  #told(): string {
    return `stderr: ${JSON.stringify(this.stderr.slice(-2000))}, ` +
      `stdout ended in ${JSON.stringify(this.messages.at(-1) ?? null)}`;
  }
}

function isQuestion({ result }: Message): boolean {
  return (result?.resultType as unknown) === "input_required";
}

async function replyTo(
  { result }: Message,
  answer: Answerer,
): Promise<{ readonly inputResponses: Record<string, unknown>; readonly requestState: unknown }> {
  const inputResponses: Record<string, unknown> = {};
  for (const [key, asked] of Object.entries(result?.inputRequests ?? {})) {
    inputResponses[key] = await answer(String(asked?.method), { ...asked?.params });
  }
  return { inputResponses, requestState: result?.requestState };
}

/** Returns the same promise, whose rejection fails no test that does not wait for it. */
function untold<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

async function calledTool(
  pml: RawStdio,
  { name, args, ms, rounds = 5, answer }: {
    readonly name: string;
    readonly args: Record<string, unknown>;
    readonly ms?: number | undefined;
    readonly rounds?: number | undefined;
    readonly answer: Answerer | undefined;
  },
): Promise<Message> {
  let more: Record<string, unknown> = {};
  for (let round = 0;; round++) {
    const message = await pml.request("tools/call", { name, arguments: args, ...more }, { ms });
    if (!isQuestion(message) || answer === undefined) return message;
    assert.ok(round < rounds, `still asks after ${rounds} rounds`);
    more = await replyTo(message, answer);
  }
}

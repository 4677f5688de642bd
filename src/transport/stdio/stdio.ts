/**
 * MCP over standard input and output of this process, or over the socket through which another
 * `pml stdio` is attached: one JSON-RPC message per line, and nothing else.
 *
 * Each byte is read once. An invalid or too long line gets an error, and reading goes on.
 *
 * @module
 */

import type { JsonObject } from "../../core/json.ts";
import type { ConnectionFactory } from "../../protocol/connection.ts";
import { type Line, LineReader } from "../../io/lines.ts";
import { onAbort } from "../../io/waiting.ts";
import { ERROR } from "../../protocol/errors.ts";
import type { ClientTransport, ProtocolHost, ProtocolServer } from "../../protocol/server.ts";
import {
  capabilitiesIn,
  clientInfoIn,
  type Handshake,
  initializeResult,
  needsEarlyLists,
} from "../../protocol/initialize.ts";
import {
  answerText,
  type Message,
  type MessageRefusal,
  readMessage,
  refusalMessage,
  type RequestMessage,
  resultText,
} from "../../protocol/message.ts";
import { MessageWriter, type OutgoingOwner } from "./_outgoing.ts";
import { type ClientPipes, type Input, standardPipes } from "./_pipes.ts";

/** The maximum number of bytes that wait for a client before PML drops notifications. */
const NOTIFICATIONS_BYTES = 8_000_000;

/** How long PML waits for a first request before it loads the server, in milliseconds. */
const FIRST_REQUEST_MS = 50;

/** The limits of a client connection. */
export interface StdioLimits {
  /** The maximum size of a request, in bytes. */
  readonly inputBytes: number;
  /** The maximum number of bytes that wait for the client before PML pauses reading its requests. */
  readonly queuedBytes: number;
  /** How long the client may read nothing before PML closes its connection, in milliseconds. */
  readonly unreadMs: number;
}

/** Receives the events of a client connection. */
export interface StdioHost extends ProtocolHost {
  readonly limits: StdioLimits;
  /** The pipes of the client; standard input and output by default. */
  readonly pipes: ClientPipes | undefined;
  /** Whether lists can be prepared before the `initialize` answer. */
  readonly mayPrepare: boolean;
  /** Prepares lists. A client that needs lists at once gets the `initialize` answer after that. */
  prepare(): Promise<unknown>;
  /** Resolves when the code for a first call is loaded. PML loads sockets after that. */
  codeLoaded(): Promise<void>;
  /** Reports the number of bytes that wait for the client. */
  reportWaiting(size: number): void;
  /** Reports the ids, as JSON, of the requests whose answers the client no longer reads. */
  onAnswersLost(requests: readonly string[]): void;
  /** Reports the client's capabilities, and its name and version, whenever it declares them. */
  onDeclared(capabilities: JsonObject, info: JsonObject | undefined): void;
  /** Reports an error that belongs to no request. */
  reportError(error: Error): void;
}

/**
 * Serves one client over standard input and output. Calls `load` at the first request to load the
 * server. Resolves when the client disconnects or `signal` aborts.
 */
export async function serveStdio(
  load: () => Promise<ConnectionFactory>,
  host: StdioHost,
  signal: AbortSignal,
): Promise<void> {
  // The signal may abort while the app is being opened.
  if (signal.aborted) return;
  const connection = new StdioConnection(host, signal);
  if (!await connection.listen()) return;
  const { ProtocolServer } = await import("../../protocol/server.ts");
  const { promise: connections, resolve } = Promise.withResolvers<ConnectionFactory>();
  await using server = new ProtocolServer(connections, connection, host);
  connection.serve(server);
  // The first answer of the stateless revision does not need the server.
  resolve(load());
  await connections;
  void connection.useSockets();
  await connection.answerLateInitialize();
  await connection.closed;
}

/** Reads lines, answers invalid lines with errors, and writes each message as one line. */
class StdioConnection implements ClientTransport, OutgoingOwner {
  readonly #host: StdioHost;
  readonly #limits: StdioLimits;
  readonly #pipes: ClientPipes;
  #input: Input | undefined;
  readonly #output: MessageWriter;
  /** The ids, as JSON, of the requests without an answer. */
  readonly #inFlight = new Set<string>();
  readonly #closed = Promise.withResolvers<false>();
  /** Resolves when the connection is closed. */
  readonly closed = this.#closed.promise;
  readonly #firstRequest = Promise.withResolvers<true>();
  /** Sends the `initialize` answer, if it waits for lists. */
  #answerLate: (() => void) | undefined;
  #server: ProtocolServer | undefined;
  /** The messages that arrived before the server was loaded. */
  readonly #waiting: Message[] = [];
  /** The first request, if the connection answered it. */
  #handshake: Handshake | undefined;
  /** Whether PML drops notifications, because the client reads too slowly. */
  #isDropping = false;
  #isPaused = false;
  #isOpen = true;
  /** Closes the connection when its signal aborts. The signal may outlive many connections. */
  readonly #closing: Disposable;

  constructor(host: StdioHost, signal: AbortSignal) {
    this.#host = host;
    this.#limits = host.limits;
    this.#pipes = host.pipes ?? standardPipes();
    this.#output = new MessageWriter(this.#pipes.output, this.#limits.unreadMs, this);
    this.#closing = onAbort(signal, () => void this.close());
  }

  /**
   * Starts to read. Resolves to true with the first request, or after a short time without one, and
   * to false when the connection is closed.
   */
  async listen(): Promise<boolean> {
    void this.#read();
    const timer = setTimeout(() => this.#firstRequest.resolve(true), FIRST_REQUEST_MS);
    try {
      return await Promise.race([this.#firstRequest.promise, this.closed]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Passes all messages to the server, including those that arrived before it was loaded. */
  serve(server: ProtocolServer): void {
    this.#server = server;
    if (this.#handshake !== undefined) server.takeHandshake(this.#handshake);
    for (const message of this.#waiting.splice(0)) server.receive(message);
  }

  /** Reads and writes with sockets, which are loaded after the code of a first call. */
  async useSockets(): Promise<void> {
    await this.#host.codeLoaded();
    if (!this.#isOpen) return;
    await this.#pipes.useSockets?.().catch((error) => this.#host.reportError(asError(error)));
  }

  /**
   * Sends the `initialize` answer to a client that needs its lists at once, when they are ready.
   */
  async answerLateInitialize(): Promise<void> {
    if (this.#answerLate === undefined) return;
    // The first request that needs the lists reports the error.
    await Promise.race([this.#host.prepare().catch(() => {}), this.closed]);
    this.#answerLate();
  }

  send(message: JsonObject): Promise<void> {
    if (!this.#isOpen) return Promise.resolve();
    return "id" in message ? this.#write(message) : this.#notify(message);
  }

  answer(id: string, members: string): void {
    if (!this.#isOpen) return;
    this.#inFlight.delete(id);
    void this.#output.write(answerText(id, members), id);
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#closing[Symbol.dispose]();
    // An open read would keep the process alive.
    await this.#input?.close().catch((error) => this.#host.reportError(asError(error)));
    this.#closed.resolve(false);
    const isUnwritten = () => this.#output.size > 0;
    if (isUnwritten()) this.#pipes.discardOutput(isUnwritten);
  }

  async #read(): Promise<void> {
    const lines = new LineReader(this.#limits.inputBytes);
    try {
      const take = (line: Line) => this.#receive(line);
      this.#input = this.#pipes.open((piece) => lines.push(piece, take));
      await this.#input.whenEnded;
    } catch (error) {
      this.#host.reportError(asError(error));
    }
    await this.close();
  }

  #receive(line: Line): void {
    const read = readMessage(line);
    if (read === undefined) return;
    if (read.kind === "refusal") return this.#refuse(read);
    if (read.kind === "cancel") {
      this.#inFlight.delete(read.request);
      this.#output.drop(read.request);
    }
    if (read.kind === "request") {
      if (this.#inFlight.has(read.id)) {
        // The client could take an answer with this id for the answer to its other request.
        return this.#refuse({
          kind: "refusal",
          code: ERROR.invalidRequest,
          text: "The id is in use",
        });
      }
      this.#inFlight.add(read.id);
      // `serveStdio` waits for this to load the server.
      this.#firstRequest.resolve(true);
      const capabilities = capabilitiesIn(read.message);
      if (capabilities !== undefined) {
        this.#host.onDeclared(capabilities, clientInfoIn(read.message));
      }
      if (this.#answerInitialize(read)) return;
    }
    if (this.#server === undefined) this.#waiting.push(read);
    else this.#server.receive(read);
  }

  /** Writes a notification, or drops it, so that it neither delays answers nor closes the connection. */
  async #notify(message: JsonObject): Promise<void> {
    const sizeMax = Math.min(NOTIFICATIONS_BYTES, this.#limits.queuedBytes / 2);
    if (this.#output.size > sizeMax) return this.#dropNotification();
    await this.#write(message);
  }

  #dropNotification(): void {
    if (!this.#isDropping) {
      const why = "The client reads too slowly: notifications are dropped";
      this.#host.reportError(new Error(why));
    }
    this.#isDropping = true;
  }

  /** Answers the first request at once if it is `initialize`. Returns whether it does. */
  #answerInitialize({ message, id }: RequestMessage): boolean {
    if (this.#server !== undefined || this.#handshake !== undefined || this.#waiting.length > 0) {
      return false;
    }
    const result = initializeResult(message, this.#host.hello(false));
    if (result === undefined) return false;
    this.#handshake = { message, result };
    const answer = () => this.answer(id, resultText(result));
    if (this.#host.mayPrepare && needsEarlyLists(message)) this.#answerLate = answer;
    else answer();
    return true;
  }

  #refuse({ id, ...refusal }: MessageRefusal): void {
    // The client could take a refusal with this id for the answer to its other request.
    const isInUse = this.#inFlight.has(JSON.stringify(id));
    void this.#write(refusalMessage(isInUse ? refusal : { ...refusal, id }));
  }

  #write(message: unknown, answers?: string): Promise<void> {
    return this.#output.write(JSON.stringify(message), answers);
  }

  /**
   * Pauses reading from a client that does not read its answers, which limits the waiting bytes.
   */
  onWaiting(size: number): void {
    const { queuedBytes } = this.#limits;
    this.#host.reportWaiting(size);
    if (size === 0) this.#isDropping = false;
    // Reading pauses only at twice the limit, because one of the next requests may be a cancellation,
    // which frees memory.
    const isPaused = size > (this.#isPaused ? 1 : 2) * queuedBytes;
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    if (isPaused) this.#input?.pause();
    else this.#input?.resume();
  }

  /** Closes the connection to a client that closed its end or reads nothing. */
  onClientGone(why: unknown): void {
    if (!this.#isOpen) return;
    this.#host.reportError(asError(why));
    this.#host.onAnswersLost(this.#output.answeredIds);
    void this.close();
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/**
 * MCP over standard input and output of this process, or over the socket of a window: one JSON-RPC
 * message per line, and nothing else.
 *
 * Each byte is read once. After a line that is too long or invalid is answered, the next one is
 * read.
 *
 * @module
 */

import type { JsonObject } from "../../core/json.ts";
import type { ConnectionFactory } from "../../protocol/connection.ts";
import { type Line, LineReader } from "../../io/lines.ts";
import { onAbort } from "../../io/waiting.ts";
import { ERROR } from "../../protocol/errors.ts";
import type {
  ClientTransport,
  ProtocolServer,
  ProtocolServerOptions,
} from "../../protocol/server.ts";
import {
  capabilitiesIn,
  clientInfoIn,
  greet,
  type Handshake,
  isHurried,
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

/** How many bytes may wait for a client before notifications are dropped. */
const NOTES_BYTES = 8_000_000;

/** How long PML waits for a first request before it loads the server, in milliseconds. */
const FIRST_REQUEST_MS = 50;

/** Receives the events of a client connection. */
export interface StdioHost {
  /** Whether lists can be prepared before the `initialize` answer. */
  readonly mayPrepare: boolean;
  /** Prepares lists. A client that needs them at once gets the `initialize` answer after that. */
  prepare(): Promise<unknown>;
  /** Resolves when the first lists are answered, after which sockets are loaded. */
  listsAnswered(): Promise<void>;
  /** Reports the number of bytes that wait for the client. */
  waiting(size: number): void;
  /** Reports the ids, as JSON, of the requests whose answers the client no longer reads. */
  onAnswersLost(requests: readonly string[]): void;
  /** Reports the client's capabilities, and its name and version, whenever it declares them. */
  declared(capabilities: JsonObject, info: JsonObject | undefined): void;
  /** Reports an error that belongs to no request. */
  failed(error: Error): void;
}

/** The options of `serveStdio`. */
export interface StdioOptions extends Omit<ProtocolServerOptions, "transport"> {
  /** The pipes of the client; standard input and output by default. */
  readonly pipes?: ClientPipes | undefined;
  /** The maximum size of a request, in bytes. */
  readonly inputBytes: number;
  /** How many bytes may wait for the client. Beyond that, reading its requests pauses. */
  readonly queuedBytes: number;
  /** How long the client may read nothing before its connection is closed, in milliseconds. */
  readonly unreadMs: number;
  /** Aborting it closes the connection. */
  readonly signal: AbortSignal;
}

/**
 * Serves one client over standard input and output. Calls `load` at the first request to load the
 * server. Resolves when the client disconnects or `signal` aborts.
 */
export async function serveStdio(
  load: () => Promise<ConnectionFactory>,
  host: StdioHost,
  options: StdioOptions,
): Promise<void> {
  // The signal may abort while the app is being opened.
  if (options.signal.aborted) return;
  const connection = new StdioConnection(host, options);
  if (!await connection.listen()) return;
  const { ProtocolServer } = await import("../../protocol/server.ts");
  const { promise: connections, resolve } = Promise.withResolvers<ConnectionFactory>();
  await using server = new ProtocolServer(connections, { ...options, transport: connection });
  connection.serve(server);
  // The first answer of the stateless revision does not need the server.
  resolve(load());
  await connections;
  void connection.useSockets();
  await connection.greetLate();
  await connection.closed;
}

/** Reads lines, answers invalid ones, and writes each message as one line. */
class StdioConnection implements ClientTransport, OutgoingOwner {
  readonly #host: StdioHost;
  readonly #options: StdioOptions;
  readonly #pipes: ClientPipes;
  #input: Input | undefined;
  readonly #output: MessageWriter;
  readonly #inFlight = new Set<string>();
  readonly #closed = Promise.withResolvers<false>();
  /** Resolves when the connection is closed. */
  readonly closed = this.#closed.promise;
  readonly #request = Promise.withResolvers<true>();
  /** Sends the `initialize` answer, if it waits for lists. */
  #greetLate: (() => void) | undefined;
  #server: ProtocolServer | undefined;
  /** The messages that arrived before the server was loaded. */
  readonly #waiting: Message[] = [];
  /** The first request, if the connection answered it. */
  #greeted: Handshake | undefined;
  #isDropping = false;
  #isPaused = false;
  #open = true;
  /** Closes the connection when its signal aborts. The signal may outlive many connections. */
  readonly #closing: Disposable;

  constructor(host: StdioHost, options: StdioOptions) {
    this.#host = host;
    this.#options = options;
    this.#pipes = options.pipes ?? standardPipes();
    this.#output = new MessageWriter(this.#pipes.output, options.unreadMs, this);
    this.#closing = onAbort(options.signal, () => void this.close());
  }

  /**
   * Starts to read. Resolves to true with the first request, or after a short time without one, and
   * to false when the connection is closed.
   */
  async listen(): Promise<boolean> {
    void this.#read();
    const timer = setTimeout(() => this.#request.resolve(true), FIRST_REQUEST_MS);
    try {
      return await Promise.race([this.#request.promise, this.closed]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Passes all messages to the server, including those that arrived before it was loaded. */
  serve(server: ProtocolServer): void {
    this.#server = server;
    if (this.#greeted !== undefined) server.greeted(this.#greeted);
    for (const message of this.#waiting.splice(0)) server.take(message);
  }

  /** Reads and writes with sockets, which are loaded after the first lists. */
  async useSockets(): Promise<void> {
    await this.#host.listsAnswered();
    if (!this.#open) return;
    await this.#pipes.useSockets?.().catch((error) => this.#host.failed(asError(error)));
  }

  /**
   * Sends the `initialize` answer to a client that needs its lists at once, when they are ready.
   */
  async greetLate(): Promise<void> {
    if (this.#greetLate === undefined) return;
    // The first request that needs the lists reports the error.
    await Promise.race([this.#host.prepare().catch(() => {}), this.closed]);
    this.#greetLate();
  }

  send(message: JsonObject): Promise<void> {
    if (!this.#open) return Promise.resolve();
    return "id" in message ? this.#write(message) : this.#notify(message);
  }

  answer(id: string, members: string): void {
    if (!this.#open) return;
    this.#inFlight.delete(id);
    void this.#output.write(answerText(id, members), id);
  }

  async close(): Promise<void> {
    if (!this.#open) return;
    this.#open = false;
    this.#closing[Symbol.dispose]();
    // An open read would keep the process alive.
    await this.#input?.close().catch((error) => this.#host.failed(asError(error)));
    this.#closed.resolve(false);
    if (this.#output.size > 0) this.#pipes.giveUp();
  }

  async #read(): Promise<void> {
    const lines = new LineReader(this.#options.inputBytes);
    try {
      const take = (line: Line) => this.#receive(line);
      this.#input = this.#pipes.open((piece) => lines.push(piece, take));
      await this.#input.over;
    } catch (error) {
      this.#host.failed(asError(error));
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
        // The client could confuse an answer with this id with the answer to the first request.
        return this.#refuse({
          kind: "refusal",
          code: ERROR.invalidRequest,
          text: "The id is in use",
        });
      }
      this.#inFlight.add(read.id);
      // `serveStdio` waits for this to load the server.
      this.#request.resolve(true);
      const declared = capabilitiesIn(read.message);
      if (declared !== undefined) this.#host.declared(declared, clientInfoIn(read.message));
      if (this.#greets(read)) return;
    }
    if (this.#server === undefined) this.#waiting.push(read);
    else this.#server.take(read);
  }

  /** Writes a notification, or drops it: it must not delay answers or close the connection. */
  async #notify(message: JsonObject): Promise<void> {
    const most = Math.min(NOTES_BYTES, this.#options.queuedBytes / 2);
    if (this.#output.size > most) return this.#drop();
    await this.#write(message);
  }

  #drop(): void {
    if (!this.#isDropping) {
      const why = "The client reads too slowly: notifications are dropped";
      this.#host.failed(new Error(why));
    }
    this.#isDropping = true;
  }

  /** Answers the first request immediately if it is `initialize`. */
  #greets({ message, id }: RequestMessage): boolean {
    if (this.#server !== undefined || this.#greeted !== undefined || this.#waiting.length > 0) {
      return false;
    }
    const result = greet(message, this.#options.hello(false));
    if (result === undefined) return false;
    this.#greeted = { message, result };
    const answer = () => this.answer(id, resultText(result));
    if (this.#host.mayPrepare && isHurried(message)) this.#greetLate = answer;
    else answer();
    return true;
  }

  #refuse({ id, ...refusal }: MessageRefusal): void {
    // The client could confuse an answer with this id with the answer to the other request.
    const isInUse = this.#inFlight.has(JSON.stringify(id));
    void this.#write(refusalMessage(isInUse ? refusal : { ...refusal, id }));
  }

  #write(message: unknown, answers?: string): Promise<void> {
    return this.#output.write(JSON.stringify(message), answers);
  }

  /**
   * Pauses reading from a client that does not read its answers, which limits the waiting bytes.
   */
  waits(size: number): void {
    const { queuedBytes } = this.#options;
    this.#host.waiting(size);
    if (size === 0) this.#isDropping = false;
    // Reading does not pause at once, because a cancellation among the requests would free memory.
    const isPaused = size > (this.#isPaused ? 1 : 2) * queuedBytes;
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    if (isPaused) this.#input?.pause();
    else this.#input?.resume();
  }

  /** Closes the connection to a client that closed its end or reads nothing. */
  giveUp(why: unknown): void {
    if (!this.#open) return;
    this.#host.failed(asError(why));
    this.#host.onAnswersLost(this.#output.answers);
    void this.close();
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/**
 * A window: a `pml stdio` that forwards all messages to a running `pml serve`. If the connection
 * breaks, this process serves the client.
 *
 * @module
 */

import type { Duplex } from "node:stream";
import { type JsonObject, objectOf } from "../../core/json.ts";
import { toOneLine } from "../../core/json_text.ts";
import { NOT_BEGUN } from "../../protocol/takeover.ts";
import { joinBytes, type Line, LineReader } from "../../io/lines.ts";
import { callAfter, whenAborted } from "../../io/waiting.ts";
import { ConnectionState } from "../../protocol/connection_state.ts";
import { type ReadLine, readMessage, refusalMessage } from "../../protocol/message.ts";
import {
  type ClientPipes,
  type Input,
  LAST_WRITE_MS,
  type Output,
  standardPipes,
} from "../stdio/_pipes.ts";
import { parseBriefly } from "../_unknown_outcomes.ts";
import { pipesOf } from "./window_socket.ts";

/** The connection to a running PML that accepted the window. */
export interface RunningPml {
  readonly socket: Duplex;
  /** The maximum size of a message of the client, in bytes. */
  readonly inputBytes: number;
}

/** The state that a PML needs to take over: the state of the connection and the open requests. */
export interface TakeoverState {
  readonly client: ClientPipes;
  readonly input: Input;
  /** The state that the client set on its connection. */
  readonly state: Pick<ConnectionState, "restore">;
  /** The requests without an answer. */
  readonly waiting: readonly JsonObject[];
  /** The ids, as JSON, of the requests that did not run. */
  readonly notBegun: ReadonlySet<string>;
  /** Redirects further lines of the client, after the lines that are waiting. */
  readonly redirect: (take: (line: Uint8Array, read: ReadLine | undefined) => void) => void;
}

/** How many bytes may wait for one side before reading from the other side pauses. */
const WAITING_BYTES_MAX = 4 << 20;
/** The maximum size of a message of the running PML, in bytes. */
const LINE_BYTES_MAX = 1 << 30;

/**
 * Forwards messages until the client closes its end or the signal aborts. If the connection breaks
 * first, returns the client's pipes for PML in this process, which then repeats open requests.
 */
export async function passOn(
  running: RunningPml,
  signal: AbortSignal,
  client: ClientPipes = standardPipes(),
): Promise<ClientPipes | undefined> {
  const takeoverState = await new Window(running, client).passOn(signal);
  return takeoverState &&
    (await import("./_pipes_without_serve.ts")).pipesWithoutServe(takeoverState);
}

/** The forwarding between a client and a running PML. */
class Window {
  readonly #running: RunningPml;
  readonly #client: ClientPipes;
  readonly #waiting = new Map<string, JsonObject>();
  readonly #notBegun = new Set<string>();
  readonly #state = new ConnectionState();
  /** Whether the connection broke. PML in this process then handles all messages. */
  #isBroken = false;
  /** The lines that arrived after the connection broke. */
  readonly #storedLines: (readonly [Uint8Array, ReadLine | undefined])[] = [];
  #take = (line: Uint8Array, read: ReadLine | undefined): void =>
    void this.#storedLines.push([line.slice(), read]);

  constructor(running: RunningPml, client: ClientPipes) {
    this.#running = running;
    this.#client = client;
    // The socket module is already loaded, because the connection to the other PML is a socket.
    void this.#client.useSockets?.();
  }

  /** Forwards messages. Returns the state to take over if the connection broke. */
  async passOn(signal: AbortSignal): Promise<TakeoverState | undefined> {
    const { inputBytes, socket } = this.#running;
    const servePipes = pipesOf(socket);
    let isEnding = false;
    const lines = new LineReader(inputBytes);
    const onLine = (line: Line) => this.#onLine(line);
    const input: Input = this.#client.open((piece) => lines.push(piece, onLine));
    const answers = new LineReader(LINE_BYTES_MAX);
    const onAnswer = (line: Line) => {
      if (line.kind === "line" && this.#isForClient(line.bytes)) toClient.write(line.bytes);
    };
    const fromServe: Input = servePipes.open((piece) => answers.push(piece, onAnswer));
    const toClient = new Flow(this.#client.output, fromServe);
    const toServe = new Flow(servePipes.output, input);
    const storeLine = this.#take;
    this.#take = (line) => toServe.write(line);
    const clientEnded = Promise.race([input.whenEnded.catch(() => {}), whenAborted(signal)]).then(
      () => {
        isEnding = true;
        return fromServe.close();
      },
    );
    await Promise.race([fromServe.whenEnded, clientEnded]);
    if (!isEnding) {
      this.#take = storeLine;
      return this.#takeoverState(input);
    }
    using _ = callAfter(LAST_WRITE_MS, () => socket.destroy());
    await fromServe.whenEnded;
    await input.close();
    const isUnwritten = () => toClient.size > 0;
    if (isUnwritten()) this.#client.discardOutput(isUnwritten);
    return undefined;
  }

  #takeoverState(input: Input): TakeoverState {
    this.#isBroken = true;
    input.resume();
    return {
      input,
      client: this.#client,
      state: this.#state,
      waiting: [...this.#waiting.values()],
      notBegun: this.#notBegun,
      redirect: (take) => {
        this.#take = take;
        for (const [line, read] of this.#storedLines.splice(0)) take(line, read);
      },
    };
  }

  /** Forwards a message of the client. Records it, unless the connection is broken. */
  #onLine(line: Line): void {
    const read = readMessage(line);
    if (line.kind !== "line") {
      if (read?.kind === "refusal") this.#sendToClient(refusalMessage(read));
      return;
    }
    if (!this.#isBroken) this.#record(read);
    this.#take(line.bytes, read);
  }

  #record(read: ReadLine | undefined): void {
    if (read?.kind === "cancel") this.#waiting.delete(read.request);
    if (read?.kind !== "request") return;
    const message = read.message as unknown as JsonObject;
    this.#waiting.set(read.id, message);
    this.#state.record(message);
  }

  /** Records which request a message of the running PML answers. Returns whether the client gets it. */
  #isForClient(line: Uint8Array): boolean {
    const { id, method, params } = parseBriefly(line);
    if (method === undefined) this.#waiting.delete(JSON.stringify(id));
    if (method !== NOT_BEGUN) return true;
    // PML in this process repeats the request after the connection has ended.
    this.#notBegun.add(JSON.stringify(objectOf(params).requestId));
    return false;
  }

  #sendToClient(message: unknown): void {
    this.#client.output.write(lineOf(message)).catch(() => {});
  }
}

/** Writes lines to one side. Pauses reading from the other side while too many bytes wait. */
class Flow {
  readonly #to: Output;
  readonly #from: Input;
  #size = 0;

  constructor(to: Output, from: Input) {
    this.#to = to;
    this.#from = from;
  }

  /** The number of waiting bytes. */
  get size(): number {
    return this.#size;
  }

  write(line: Uint8Array): void {
    const bytes = withEnd(line);
    this.#size += bytes.length;
    if (this.#size > WAITING_BYTES_MAX) this.#from.pause();
    const done = () => {
      this.#size -= bytes.length;
      if (this.#size < WAITING_BYTES_MAX / 2) this.#from.resume();
    };
    // The input of this side reports a closed connection.
    this.#to.write(bytes).then(done, done);
  }
}

/** Returns a line with its line end. */
export function withEnd(line: Uint8Array): Uint8Array {
  return joinBytes([line, new Uint8Array([10])]);
}

/** Returns a message as a line. */
export function lineOf(message: unknown): Uint8Array {
  return new TextEncoder().encode(`${toOneLine(JSON.stringify(message))}\n`);
}

/**
 * A window: a `pml stdio` that forwards all messages to a running `pml serve`. If the connection
 * breaks, this process serves the client.
 *
 * @module
 */

import type { Duplex } from "node:stream";
import { type JsonObject, objectOf } from "../../core/json.ts";
import { inOneLine } from "../../core/json_text.ts";
import { NOT_BEGUN } from "../../protocol/window.ts";
import { joined, type Line, LineReader } from "../../io/lines.ts";
import { aborted, after } from "../../io/waiting.ts";
import { ConnectionState } from "../../protocol/connection_state.ts";
import { type ReadLine, readMessage, refusalMessage } from "../../protocol/message.ts";
import {
  type ClientPipes,
  type Input,
  LAST_WRITE_MS,
  type Output,
  standardPipes,
} from "../stdio/_pipes.ts";
import { briefly } from "../_unknown_end.ts";
import { pipesOf } from "./window_socket.ts";

/** Options of `passOn()`. */
export interface WindowOptions {
  /** The connection to the running PML. */
  readonly socket: Duplex;
  /** The maximum size of a message of the client, in bytes. */
  readonly inputBytes: number;
  /** Ends the window. */
  readonly signal: AbortSignal;
  /** The pipes of the client; standard input and output by default. */
  readonly pipes?: ClientPipes | undefined;
}

/** The state that a PML needs to take over: the state of the connection and the open requests. */
export interface Left {
  readonly client: ClientPipes;
  readonly input: Input;
  /** The state that the client set on its connection. */
  readonly state: Pick<ConnectionState, "restoring">;
  /** The requests without an answer. */
  readonly waiting: readonly JsonObject[];
  /** The ids, as JSON, of the requests that did not run. */
  readonly notBegun: ReadonlySet<string>;
  /** Redirects further lines of the client, after the lines that are waiting. */
  readonly redirect: (take: (line: Uint8Array, read: ReadLine | undefined) => void) => void;
}

/** How many bytes may wait for one side before reading from the other side pauses. */
const MOST_WAITING = 4 << 20;
/** The maximum size of a message of the running PML, in bytes. */
const LONGEST = 1 << 30;

/**
 * Forwards messages until the client closes its end or the signal aborts. If the connection breaks
 * before, it returns the pipes of the client for PML in this process, which repeats open requests.
 */
export async function passOn(options: WindowOptions): Promise<ClientPipes | undefined> {
  const rest = await new Window(options).passOn();
  return rest && (await import("./_alone.ts")).alone(rest);
}

class Window {
  readonly #options: WindowOptions;
  readonly #client: ClientPipes;
  readonly #waiting = new Map<string, JsonObject>();
  readonly #notBegun = new Set<string>();
  readonly #state = new ConnectionState();
  /** Whether the connection broke. The PML that takes over then handles all messages itself. */
  #isBroken = false;
  /** The lines that arrived after the connection broke. */
  readonly #lines: (readonly [Uint8Array, ReadLine | undefined])[] = [];
  #take = (line: Uint8Array, read: ReadLine | undefined): void =>
    void this.#lines.push([line.slice(), read]);

  constructor(options: WindowOptions) {
    this.#options = options;
    this.#client = options.pipes ?? standardPipes();
    // The socket module is already loaded, because the connection to the other PML is a socket.
    void this.#client.useSockets?.();
  }

  /** Forwards messages. Returns the state to take over if the connection broke. */
  async passOn(): Promise<Left | undefined> {
    const { inputBytes, socket, signal } = this.#options;
    const link = pipesOf(socket);
    let isEnding = false;
    const lines = new LineReader(inputBytes);
    const onLine = (line: Line) => this.#onLine(line);
    const input: Input = this.#client.open((piece) => lines.push(piece, onLine));
    const answers = new LineReader(LONGEST);
    const answered = (line: Line) => {
      if (line.kind === "line" && this.#isForClient(line.bytes)) toClient.write(line.bytes);
    };
    const back: Input = link.open((piece) => answers.push(piece, answered));
    const toClient = new Flow(this.#client.output, back);
    const toLink = new Flow(link.output, input);
    const keep = this.#take;
    this.#take = (line) => toLink.write(line);
    const ended = Promise.race([input.over.catch(() => {}), aborted(signal)]).then(() => {
      isEnding = true;
      return back.close();
    });
    await Promise.race([back.over, ended]);
    if (!isEnding) {
      this.#take = keep;
      return this.#restOf(input);
    }
    using _ = after(LAST_WRITE_MS, () => socket.destroy());
    await back.over;
    await input.close();
    if (toClient.size > 0) this.#client.giveUp();
    return undefined;
  }

  #restOf(input: Input): Left {
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
        for (const [line, read] of this.#lines.splice(0)) take(line, read);
      },
    };
  }

  /** Records a message of the client until the connection breaks, and forwards it. */
  #onLine(line: Line): void {
    const read = readMessage(line);
    if (line.kind !== "line") {
      if (read?.kind === "refusal") this.#tell(refusalMessage(read));
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
    this.#state.note(message);
  }

  /** Records a message of the running PML. Returns whether it is meant for the client. */
  #isForClient(line: Uint8Array): boolean {
    const { id, method, params } = briefly(line);
    if (method === undefined) this.#waiting.delete(JSON.stringify(id));
    if (method !== NOT_BEGUN) return true;
    // The request is repeated after the connection has ended.
    this.#notBegun.add(JSON.stringify(objectOf(params).requestId));
    return false;
  }

  #tell(message: unknown): void {
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
    if (this.#size > MOST_WAITING) this.#from.pause();
    const done = () => {
      this.#size -= bytes.length;
      if (this.#size < MOST_WAITING / 2) this.#from.resume();
    };
    // The input of this side reports a closed connection.
    this.#to.write(bytes).then(done, done);
  }
}

/** Returns a line with its line end. */
export function withEnd(line: Uint8Array): Uint8Array {
  return joined([line, new Uint8Array([10])]);
}

/** Returns a message as a line. */
export function lineOf(message: unknown): Uint8Array {
  return new TextEncoder().encode(`${inOneLine(JSON.stringify(message))}\n`);
}

/**
 * A connection between a running PML and `pml page`: JSON-RPC in lines, in both directions. The bytes
 * that one side can make the other side keep are bounded.
 *
 * @module
 */

import type { Duplex } from "node:stream";
import { asPmlError } from "../core/errors.ts";
import { isObject, type Json, type JsonObject, objectOf, textOf } from "../core/json.ts";
import { toOneLine } from "../core/json_text.ts";
import { LineReader } from "../io/lines.ts";
import { RpcError } from "../protocol/errors.ts";
import { classify, type Message, type RequestMessage } from "../protocol/message.ts";
import {
  type IncomingNotification,
  type IncomingRequest,
  type PeerHost,
  RpcPeer,
  withoutClient,
} from "../protocol/rpc_peer.ts";
import { Cancellation } from "../core/cancellation.ts";

/** The side that uses a connection. */
export interface ControlHost {
  /** Returns the result of a request of the other side. */
  serve(method: string, params: JsonObject): Promise<JsonObject>;
  /** Takes a notification of the other side. */
  onNotification(method: string, params: JsonObject): void;
  /** Is called once when the connection has ended. */
  onEnd(): void;
}

/** The maximum size of a line, in bytes. The largest states have some hundred kilobytes. */
const LINE_MAX = 16 << 20;
/** The maximum number of bytes that wait for the other side while notifications are still sent. */
const SLOW_BYTES = 1 << 18;
/**
 * The maximum number of bytes that wait for the other side. With more, the connection is closed, because
 * the other side does not read.
 */
const WAITING_BYTES = 32 << 20;
/** The maximum number of open requests of the other side. */
const OPEN_MAX = 64;
/** The error code of a request that PML refuses. */
const REFUSED = -32000;

/** One side of a connection. */
export class ControlConnection implements PeerHost, Disposable {
  readonly #socket: Duplex;
  readonly #host: ControlHost;
  readonly #peer: RpcPeer;
  readonly #lines: LineReader;
  #isOver = false;

  /** Begins to read the messages of the other side, of at most `lineMax` bytes each. */
  constructor(socket: Duplex, host: ControlHost, lineMax: number = LINE_MAX) {
    this.#lines = new LineReader(lineMax);
    this.#socket = socket;
    this.#host = host;
    this.#peer = new RpcPeer(this);
    socket.on("error", () => {}); // the end follows
    socket.on("data", (piece: Uint8Array) => this.#take(piece));
    for (const event of ["end", "close"] as const) socket.once(event, () => this.#end());
    socket.resume();
  }

  /** Whether the other side reads too slowly, so that notifications are dropped. */
  get isSlow(): boolean {
    return this.#socket.writableLength > SLOW_BYTES;
  }

  /** Sends a request and returns its result. Rejects if it is refused, or if the signal aborts. */
  async request(method: string, params: JsonObject, signal?: AbortSignal): Promise<Json> {
    using cancellation = signal === undefined ? new Cancellation() : Cancellation.of(signal);
    return await this.#peer.request(method, params, withoutClient(cancellation));
  }

  /** Sends a notification. Returns whether it was sent: a slow reader does not get it. */
  notify(method: string, params: JsonObject): boolean {
    if (this.#isOver || this.isSlow) return false;
    this.#peer.notify(method, params);
    return true;
  }

  /** Writes a message as one line. */
  send(message: JsonObject): void {
    if (this.#isOver) return;
    // guard: control-unread
    if (this.#socket.writableLength > WAITING_BYTES) return this[Symbol.dispose]();
    this.#socket.write(`${toOneLine(JSON.stringify({ jsonrpc: "2.0", ...message }))}\n`);
  }

  /** Serves a request of the other side. */
  onRequest({ message, id }: RequestMessage): void {
    // guard: control-flood
    if (this.#peer.openCount >= OPEN_MAX) return this[Symbol.dispose]();
    const serve = () => this.#host.serve(textOf(message.method), objectOf(message.params));
    void this.#peer.serve(new ControlRequest(this, { idText: id, id: message.id ?? null, serve }));
  }

  /** Passes a notification on. */
  onNotification({ method, params }: IncomingNotification): void {
    this.#host.onNotification(method, params);
  }

  /** Closes the connection. */
  [Symbol.dispose](): void {
    this.#end();
  }

  #take(piece: Uint8Array): void {
    this.#lines.push(piece, (line) => {
      if (this.#isOver) return;
      const message = line.kind === "line" ? parseMessage(line.bytes) : undefined;
      if (message !== undefined) return void this.#peer.receive(message);
      // guard: control-line
      this[Symbol.dispose]();
    });
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#socket.destroy();
    this.#peer.end(new Error("The connection has ended"));
    this.#host.onEnd();
  }
}

/** Returns the message in a line; undefined if the line contains no message. */
function parseMessage(bytes: Uint8Array): Message | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    const message = isObject(value) ? classify(value) : undefined;
    return message?.kind === "refusal" ? undefined : message;
  } catch {
    return undefined; // it is not JSON
  }
}

/** A request of the other side. */
class ControlRequest implements IncomingRequest {
  readonly idText: string;
  isCancelled = false;
  readonly serve: () => Promise<JsonObject>;
  readonly #connection: ControlConnection;
  readonly #id: Json;

  constructor(
    connection: ControlConnection,
    { idText, id, serve }: {
      readonly idText: string;
      readonly id: Json;
      readonly serve: () => Promise<JsonObject>;
    },
  ) {
    this.#connection = connection;
    this.idText = idText;
    this.#id = id;
    this.serve = serve;
  }

  cancel(): void {
    this.isCancelled = true;
  }

  answer(result: JsonObject): void {
    this.#connection.send({ id: this.#id, result });
  }

  refuse(error: unknown): void {
    const { code, message, hint } = asPmlError(error);
    const number = error instanceof RpcError ? error.code : REFUSED;
    const data = { code, ...hint !== undefined && { hint } };
    this.#connection.send({ id: this.#id, error: { code: number, message, data } });
  }
}

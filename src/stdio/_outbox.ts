/**
 * Sends messages to a process. Messages that wait are sent in one piece.
 *
 * @module
 */

import type { JsonObject } from "../core/json.ts";

/** The limit of what may wait for a process that does not read. */
export interface OutboxLimit {
  /** In characters. */
  readonly max: number;
  /** Called when a message would exceed the limit. The message is dropped. */
  readonly onFull: () => void;
}

/** The messages to a process. */
export class Outbox {
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;
  readonly #limit: OutboxLimit;
  readonly #unsent: string[] = [];
  #waiting = 0;
  #isWriting = false;

  /** Takes the standard input of the process. */
  constructor(stdin: WritableStream<Uint8Array>, limit: OutboxLimit) {
    this.#stdin = stdin.getWriter();
    this.#limit = limit;
  }

  /** Sends a JSON-RPC message. */
  send(message: JsonObject): void {
    const line = `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`;
    // A single message may have any length.
    if (this.#waiting > 0 && this.#waiting + line.length > this.#limit.max) {
      return this.#limit.onFull();
    }
    this.#waiting += line.length;
    this.#unsent.push(line);
    if (this.#unsent.length === 1 && !this.#isWriting) queueMicrotask(() => void this.#flush());
  }

  /** Closes the standard input. */
  async close(): Promise<void> {
    await this.#stdin.close().catch(() => {}); // its other end is gone already
  }

  // While one piece is written, more messages can come.
  async #flush(): Promise<void> {
    this.#isWriting = true;
    while (this.#unsent.length > 0) {
      const text = this.#unsent.splice(0).join("");
      // A broken pipe is reported by the end of the process.
      await this.#stdin.write(new TextEncoder().encode(text)).catch(() => {});
      this.#waiting -= text.length;
    }
    this.#isWriting = false;
  }
}

/**
 * Sends messages to a process, those that wait together in one piece.
 *
 * @module
 */

import type { JsonObject } from "../core/json.ts";

/** How much may wait for a process that does not read. */
export interface OutboxLimit {
  /** In characters. */
  readonly max: number;
  /** Told when more would have to wait; what it was is lost. */
  readonly onFull: () => void;
}

/** The way of messages to a process. */
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

  /** Sends a message of JSON-RPC. */
  send(message: JsonObject): void {
    const line = `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`;
    // One message may be as long as it likes.
    if (this.#waiting > 0 && this.#waiting + line.length > this.#limit.max) {
      return this.#limit.onFull();
    }
    this.#waiting += line.length;
    this.#unsent.push(line);
    if (this.#unsent.length === 1 && !this.#isWriting) queueMicrotask(() => void this.#flush());
  }

  /** Ends the standard input. */
  async close(): Promise<void> {
    await this.#stdin.close().catch(() => {}); // its end is gone already
  }

  // While one piece is written, others come.
  async #flush(): Promise<void> {
    this.#isWriting = true;
    while (this.#unsent.length > 0) {
      const text = this.#unsent.splice(0).join("");
      // A pipe that broke is told by the end of the process.
      await this.#stdin.write(new TextEncoder().encode(text)).catch(() => {});
      this.#waiting -= text.length;
    }
    this.#isWriting = false;
  }
}

/**
 * Sends messages to a process, those that wait together in one piece.
 *
 * @module
 */

import type { JsonObject } from "../core/json.ts";

/** The way of messages to a process. */
export class Outbox {
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;
  readonly #unsent: string[] = [];
  #isWriting = false;

  /** Takes the standard input of the process. */
  constructor(stdin: WritableStream<Uint8Array>) {
    this.#stdin = stdin.getWriter();
  }

  /** Sends a message of JSON-RPC. */
  send(message: JsonObject): void {
    this.#unsent.push(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
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
      const bytes = new TextEncoder().encode(this.#unsent.splice(0).join(""));
      // A pipe that broke is told by the end of the process.
      await this.#stdin.write(bytes).catch(() => {});
    }
    this.#isWriting = false;
  }
}

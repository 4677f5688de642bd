/**
 * Forwards requests of the Worker, such as the tool calls of code, to PML while a call runs, and
 * returns the answers. The host thread numbers the requests itself, so an answer always belongs to
 * its request.
 *
 * @module
 */

import type { HostFunction } from "./host_function.ts";
import type { WriteFrame } from "./lines.ts";
import type { Answered, HostReply } from "./message.ts";

const encoder = new TextEncoder();

/** The requests that PML has not answered yet. */
export class Wants {
  readonly #write: WriteFrame;
  readonly #pending = new Map<number, (reply: HostReply) => void>();
  #last = 0;

  /** The request `want`. Its arguments: the id of the call, and JSON as a string or as bytes. */
  readonly ops: Readonly<Record<string, HostFunction>> = {
    want: async ([call, json], { signal }) => {
      const id = ++this.#last;
      const { promise, resolve } = Promise.withResolvers<HostReply>();
      this.#pending.set(id, resolve);
      const drop = () => this.#write("drop", id, "0");
      try {
        this.#write("want", id, encodeRequest(Number(call), json));
        signal.addEventListener("abort", drop);
        const reply = await promise;
        if (reply.ok) return reply.value;
        const { message, ...more } = reply.error;
        throw Object.assign(new Error(message), more);
      } finally {
        signal.removeEventListener("abort", drop);
        this.#pending.delete(id);
      }
    },
  };

  /** Creates an instance with the function that writes frames. */
  constructor(write: WriteFrame) {
    this.#write = write;
  }

  /** Resolves a request with its answer. */
  settle({ id, reply }: Answered): void {
    this.#pending.get(id)?.(reply);
  }
}

/** Returns the id of a call, a space and the JSON of a request. */
function encodeRequest(call: number, json: unknown): string | Uint8Array {
  const head = `${Number.isSafeInteger(call) && call > 0 ? call : 0} `;
  if (!(json instanceof Uint8Array)) return head + String(json);
  const bytes = new Uint8Array(head.length + json.length);
  bytes.set(encoder.encode(head));
  bytes.set(json, head.length);
  return bytes;
}

/**
 * The requests that code in a child makes of PML while one of its calls runs.
 *
 * @module
 */

import { asPmlError, PmlError } from "../core/errors.ts";
import type { Json } from "../core/json.ts";
import { listOf } from "../core/json.ts";
import { unlessAborted } from "../io/waiting.ts";
import type { Reply } from "./boot/message.ts";
import { plainJson } from "./_plain.ts";
import type { Frame } from "./_wire.ts";

/**
 * Answers a request of the code that a call runs. It must trust neither the name nor the arguments.
 * The signal aborts when the code no longer waits, or when the call is over.
 */
export type OnRequest = (name: string, args: Json, signal: AbortSignal) => Promise<Json>;

/** A request of a call. */
interface Wanted {
  /** The id that the host thread gave the request. */
  readonly id: number;
  /** The call whose code asks; the code can name any. */
  readonly call: number;
  readonly json: Uint8Array;
}

interface Open {
  readonly call: number;
  readonly stop: AbortController;
}

/** How many characters the two numbers before the JSON can have. */
const HEAD_MAX = 20;

/** The open requests of one child. */
export class Requests {
  readonly #open = new Map<number, Open>();
  readonly #answer: (id: number, reply: Reply) => void;

  /** Takes the function that sends an answer to the child. */
  constructor(answer: (id: number, reply: Reply) => void) {
    this.#answer = answer;
  }

  /** Answers a request, always once. If its call has no handler, the request is refused. */
  async take({ id, call, json }: Wanted, handler: OnRequest | undefined): Promise<void> {
    const stop = new AbortController();
    this.#open.set(id, { call, stop });
    const answered = async () => {
      // guard: request-right
      if (handler === undefined) throw refused();
      const said = plainJson(json, "the request");
      const [name, args = null] = listOf(said);
      if (typeof name !== "string") throw refused();
      return await handler(name, args, stop.signal);
    };
    try {
      this.#answer(id, { ok: true, value: await unlessAborted(answered(), stop.signal) });
    } catch (error) {
      const { message, code } = asPmlError(error);
      this.#answer(id, { ok: false, error: { name: "Error", message, code } });
    } finally {
      this.#open.delete(id);
    }
  }

  /** Stops a request that the code no longer waits for. */
  drop(id: number): void {
    this.#open.get(id)?.stop.abort(over());
  }

  /** Stops the requests of a call that is over. */
  end(call: number): void {
    for (const open of this.#open.values()) {
      if (open.call === call) open.stop.abort(over());
    }
  }
}

/** Reads the id of the call before the JSON of a request; 0 if there is none. */
export function wantedOf({ id, json }: Frame): Wanted {
  const head = /^(\d+) /.exec(new TextDecoder().decode(json.subarray(0, HEAD_MAX)));
  return { id, call: Number(head?.[1] ?? 0), json: json.subarray(head?.[0].length ?? 0) };
}

function refused(): PmlError {
  return new PmlError("SANDBOX_DENIED", "Cannot make this request: the call has no such right");
}

function over(): PmlError {
  return new PmlError("CANCELLED", "Cannot answer the request: nobody waits for it");
}

/**
 * The requests that code in a child sends to PML while one of its calls runs.
 *
 * @module
 */

import { asPmlError, PmlError } from "../core/errors.ts";
import type { Json } from "../core/json.ts";
import { listOf } from "../core/json.ts";
import { unlessAborted } from "../io/waiting.ts";
import type { HostReply } from "./boot/message.ts";
import { plainJson } from "./_plain_json.ts";
import type { Frame } from "./_wire.ts";

/**
 * Answers a request of the code that a call runs. It must not trust the name or the arguments. The
 * signal aborts when the code stops waiting, or when the call ends.
 */
export type OnRequest = (name: string, args: Json, signal: AbortSignal) => Promise<Json>;

/** A request of a call. */
interface ChildRequest {
  /** The id of the request, from the host thread. */
  readonly id: number;
  /** The id of the call that the code sent. It can be any id. */
  readonly call: number;
  readonly json: Uint8Array;
}

interface RunningRequest {
  readonly call: number;
  readonly stop: AbortController;
}

/** The maximum length of the call's id, which comes before the JSON, in bytes. */
const HEAD_MAX = 20;

/** The open requests of one child. */
export class ChildRequests {
  readonly #open = new Map<number, RunningRequest>();
  readonly #answer: (id: number, reply: HostReply) => void;

  /** Creates an instance with the function that sends an answer to the child. */
  constructor(answer: (id: number, reply: HostReply) => void) {
    this.#answer = answer;
  }

  /** Answers a request exactly once. Refuses it if its call has no handler. */
  async take({ id, call, json }: ChildRequest, handler: OnRequest | undefined): Promise<void> {
    const stop = new AbortController();
    this.#open.set(id, { call, stop });
    const answerRequest = async () => {
      // guard: request-right
      if (handler === undefined) throw refusedError();
      const request = plainJson(json, "the request");
      const [name, args = null] = listOf(request);
      if (typeof name !== "string") throw refusedError();
      return await handler(name, args, stop.signal);
    };
    try {
      this.#answer(id, { ok: true, value: await unlessAborted(answerRequest(), stop.signal) });
    } catch (error) {
      const { message, code } = asPmlError(error);
      this.#answer(id, { ok: false, error: { name: "Error", message, code } });
    } finally {
      this.#open.delete(id);
    }
  }

  /** Aborts a request that the code no longer waits for. */
  drop(id: number): void {
    this.#open.get(id)?.stop.abort(droppedError());
  }

  /** Aborts the requests of a call that ended. */
  end(call: number): void {
    for (const open of this.#open.values()) {
      if (open.call === call) open.stop.abort(droppedError());
    }
  }
}

/** Reads the id of the call before the JSON of a request; 0 if there is none. */
export function parseRequest({ id, json }: Frame): ChildRequest {
  const head = /^(\d+) /.exec(new TextDecoder().decode(json.subarray(0, HEAD_MAX)));
  return { id, call: Number(head?.[1] ?? 0), json: json.subarray(head?.[0].length ?? 0) };
}

function refusedError(): PmlError {
  return new PmlError("SANDBOX_DENIED", "Cannot make this request: the call has no such right");
}

function droppedError(): PmlError {
  return new PmlError("CANCELLED", "Cannot answer the request: its code no longer waits");
}

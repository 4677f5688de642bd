/**
 * JSON-RPC with a server: requests under ids that nobody can guess, and what it asks and tells
 * meanwhile. What it sends is believed in nothing.
 *
 * @module
 */

import { randomBytes } from "node:crypto";
import type { Meanwhile, Progress } from "../core/call.ts";
import {
  defined,
  isObject,
  type Json,
  type JsonObject,
  objectOf,
  textOf,
  visibleLines,
} from "../core/json.ts";
import { PmlError } from "../core/errors.ts";
import { onAbort } from "../io/waiting.ts";

/** How a request is waited for, and who is told and asked meanwhile. */
export interface RequestOptions extends Meanwhile {
  readonly signal: AbortSignal;
  /** Whether the server may answer with a task. */
  readonly takesTasks?: boolean;
}

/** What a peer needs of who made it. */
export interface PeerOptions {
  readonly send: (message: JsonObject) => void;
  /** Takes back a request, of which then nothing more comes; else the server is only told. */
  readonly cancel?: ((id: string) => void) | undefined;
  /** Takes secrets out of what the server says beside its results. */
  readonly withoutSecrets: <T>(said: T) => T;
  /** Answers what the server asks. */
  readonly onRequest: (asked: Asked) => Promise<JsonObject>;
  readonly onNotification: (method: string, params: JsonObject, meant?: string) => void;
}

/** A request of the server's. */
export interface Asked {
  readonly method: string;
  readonly params: JsonObject;
  readonly signal: AbortSignal;
  /** The request that it belongs to, as far as that can be told, whose maker can be asked something. */
  readonly during: RequestOptions | undefined;
}

interface Pending {
  readonly answer: PromiseWithResolvers<Json>;
  readonly options: RequestOptions;
  /** Whether it lasts as long as the connection, and counts as no work. */
  readonly lasts: boolean;
}

const INTERNAL_ERROR = -32603;
/** How long the other end may take to say that it is there. */
const PONG_MS = 1_000;
/** How many requests that were given up are remembered. */
const LEFT_MAX = 10_000;
/** The most characters of an id that is answered. */
const ID_MAX = 1_000;
/** How many questions a server may have open. */
const ASKED_MAX = 64;

/** The other end of a connection. */
export class Peer {
  readonly #options: PeerOptions;
  readonly #pending = new Map<string, Pending>();
  readonly #asked = new Map<string, AbortController>();
  readonly #prefix = randomBytes(9).toString("base64url");
  /** What was given up and may go on. */
  readonly #left = new Set<string>();
  #pinged: { readonly id: string; readonly at: number } | undefined;
  #last = 0;
  #lasting = 0;
  #dead: Error | undefined;

  /** Makes the peer of a connection that is open. */
  constructor(options: PeerOptions) {
    this.#options = options;
  }

  /** How many requests are not answered yet, those that were given up among them. */
  get pending(): number {
    return this.#pending.size - this.#lasting + this.#left.size;
  }

  /** Whether it answers nothing any more: neither what was given up, nor whether it is there. */
  get hung(): boolean {
    return this.#pinged !== undefined && performance.now() - this.#pinged.at > PONG_MS;
  }

  /** Sends a request and gives its result as it is; an error that the server answers is thrown. */
  async request(
    method: string,
    params: JsonObject,
    options: RequestOptions & { readonly lasts?: boolean },
  ): Promise<Json> {
    if (this.#dead) throw this.#dead;
    const { signal, onProgress, lasts = false } = options;
    signal.throwIfAborted();
    const id = `${this.#prefix}${++this.#last}`;
    const answer = Promise.withResolvers<Json>();
    const cancel = () => {
      this.#pending.delete(id);
      answer.reject(signal.reason);
      const { cancel } = this.#options;
      if (cancel !== undefined) cancel(id);
      else this.#options.send({ method: "notifications/cancelled", params: { requestId: id } });
      if (lasts) return;
      if (cancel === undefined) this.#leave(id);
      this.#ping(id);
    };
    this.#pending.set(id, { answer, options, lasts });
    if (lasts) this.#lasting++;
    using _ = onAbort(signal, cancel);
    try {
      const said = onProgress === undefined ? params : {
        ...params,
        _meta: { ...objectOf(params._meta), progressToken: id },
      };
      this.#options.send({ id, method, params: said });
      return await answer.promise;
    } finally {
      this.#pending.delete(id);
      if (lasts) this.#lasting--;
    }
  }

  /** The request that was meant; where nobody says which, the latest whose maker takes something. */
  latest(able: "onAsk" | "onMessage", meant?: string): RequestOptions | undefined {
    if (meant !== undefined) return this.#pending.get(meant)?.options;
    return [...this.#pending.values()].findLast(({ options }) => options[able])?.options;
  }

  /** Takes a message, of the request that it came for if any; false for one that means nothing here. */
  receive(message: unknown, meant?: string): boolean {
    if (!isObject(message)) return false;
    const { id, method, result, error } = message;
    const params = objectOf(message.params);
    if (typeof method === "string") {
      if (id === undefined) this.#notified(method, params, meant);
      else if (isId(id)) {
        void this.#answer(id, { method, params, during: this.latest("onAsk", meant) });
      } else return false;
      return true;
    }
    if (typeof id !== "string") return false;
    if (id === this.#pinged?.id) {
      this.#pinged = undefined;
      return true;
    }
    if (this.#left.delete(id)) return true; // too late
    const pending = this.#pending.get(id);
    if (pending === undefined) return false;
    this.#pending.delete(id);
    if (error === undefined) pending.answer.resolve(result as Json); // parsed JSON
    else pending.answer.reject(Answered.of(this.#options.withoutSecrets(error)));
    return true;
  }

  /** Ends the request whose id stands in the ends of what answered it; false where none does. */
  refuse(ends: string, error: Error): boolean {
    for (const [, id = ""] of ends.matchAll(/"id"\s*:\s*"([^"]*)"/g)) {
      if (this.#left.delete(id)) return true; // too late
      if (!this.#pending.has(id)) continue;
      this.fail(id, error);
      return true;
    }
    return false;
  }

  /** Ends one request; that it could not be sent says that nobody hangs. */
  fail(id: string, error: Error): void {
    if (id === this.#pinged?.id) this.#pinged = undefined;
    this.#pending.get(id)?.answer.reject(error);
    this.#pending.delete(id);
  }

  /** Ends it for good: what waits is told. */
  end(error: Error): void {
    this.#dead ??= error;
    for (const { answer } of this.#pending.values()) answer.reject(error);
    this.#pending.clear();
    for (const abort of this.#asked.values()) abort.abort(error);
    this.#asked.clear();
  }

  /** One that stopped the request need not answer it, and is asked whether it is there. */
  #leave(id: string): void {
    this.#left.add(id);
    const [oldest] = this.#left;
    if (this.#left.size > LEFT_MAX && oldest !== undefined) this.#left.delete(oldest);
  }

  #ping(id: string): void {
    if (this.#pinged !== undefined) return;
    this.#pinged = { id: `${id}?`, at: performance.now() };
    this.#options.send({ id: this.#pinged.id, method: "ping" });
  }

  #notified(method: string, params: JsonObject, meant: string | undefined): void {
    switch (method) {
      case "notifications/progress": {
        const progress = progressOf(params);
        const pending = this.#pending.get(textOf(params.progressToken));
        if (progress !== undefined) pending?.options.onProgress?.(progress);
        return;
      }
      case "notifications/cancelled":
        return this.#asked.get(JSON.stringify(params.requestId) ?? "")?.abort();
      default:
        return this.#options.onNotification(method, params, meant);
    }
  }

  async #answer(id: number | string, asked: Omit<Asked, "signal">): Promise<void> {
    const key = JSON.stringify(id);
    if (this.#asked.size >= ASKED_MAX) {
      const error = { code: INTERNAL_ERROR, message: "too many requests are open" };
      return this.#options.send({ id, error });
    }
    const abort = new AbortController();
    // An id that is used twice stands for the later one.
    this.#asked.set(key, abort);
    try {
      const result = await this.#options.onRequest({ ...asked, signal: abort.signal });
      if (!abort.signal.aborted) this.#options.send({ id, result });
    } catch (error) {
      const code = error instanceof Answered ? error.code : INTERNAL_ERROR;
      const said = error instanceof Error ? error.message : String(error);
      // A server hands on a message at best, so that has to say what to do.
      const hint = error instanceof PmlError && error.hint !== undefined ? `. ${error.hint}` : "";
      const message = said + hint;
      if (!abort.signal.aborted) this.#options.send({ id, error: { code, message } });
    } finally {
      if (this.#asked.get(key) === abort) this.#asked.delete(key);
    }
  }
}

/** An error that the other end answered. */
export class Answered extends Error {
  override readonly name = "Answered";
  /** The code of JSON-RPC. */
  readonly code: number;
  /** What it said for programs. */
  readonly data: Json | undefined;

  /** Keeps what it said. */
  constructor(code: number, message: string, data?: Json) {
    super(visibleLines(message, 2_000));
    this.code = code;
    this.data = data;
  }

  /** Reads the error of an answer. */
  static of(error: unknown): Answered {
    const { code, message, data } = isObject(error) ? error : {};
    const number = Number.isSafeInteger(code) ? Number(code) : INTERNAL_ERROR;
    return new Answered(number, textOf(message), data as Json | undefined); // parsed JSON
  }
}

function isId(id: unknown): id is number | string {
  return Number.isSafeInteger(id) || typeof id === "string" && id.length <= ID_MAX;
}

function progressOf({ progress, total, message }: JsonObject): Progress | undefined {
  if (typeof progress !== "number") return undefined;
  return defined({
    progress,
    total: typeof total === "number" ? total : undefined,
    message: typeof message === "string" ? message : undefined,
  });
}

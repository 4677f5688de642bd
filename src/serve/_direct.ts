/**
 * Serves the usual requests of a connection without the SDK. Loading it takes most of a start, and
 * each message costs it several checks. All that is not plainly usual goes to the SDK, which is
 * loaded by the first such message and told what the connection is bound to.
 *
 * @module
 */

import type { JSONRPCMessage, Server } from "@modelcontextprotocol/server";
import { type JsonObject, objectOf } from "../core/json.ts";
import type { Connection, Face } from "../gateway/connection.ts";
import type { Hello } from "../gateway/hello.ts";
import { turn } from "../io/waiting.ts";
import { type Era, eraOf, hasFitToken } from "./_envelope.ts";
import { peerOf } from "./_client_peer.ts";
import { ClientRequests } from "./_client_requests.ts";
import { greet, type Greeted } from "./_greeting.ts";
import type { ReadLine, Refusal } from "../protocol/message.ts";
import { ResultTexts } from "./_result_texts.ts";
import { isUsual, UsualRequests } from "./_usual_requests.ts";

type Request = Extract<ReadLine, { readonly kind: "request" }>;

/** A message of the client. */
export type Message = Exclude<ReadLine, Refusal>;

/** The ends of a connection. */
export interface Ends {
  send(message: JSONRPCMessage): Promise<void>;
  /** Sends the answer to a request: the text of its members but for the id, which is JSON. */
  answer(id: string, said: string): void;
  close(): void;
}

/** The options of `Direct`. */
export interface DirectOptions {
  readonly ends: Ends;
  /** Returns what PML says of itself. */
  readonly hello: (isModern: boolean) => Hello;
  /** Whether the SDK has to serve everything; not if left out. */
  readonly bySdk?: boolean;
  /** Receives the roots of the client. */
  readonly roots?: RootsReceiver;
  /** Receives the function that asks the client outside of its requests. */
  readonly questions?: QuestionsReceiver;
  readonly onError: (error: Error) => void;
}

/** Receives the roots of a client. */
export interface RootsReceiver {
  /** Takes the function that asks the client for its roots. */
  connect(ask: () => Promise<JsonObject | undefined>): void;
  /** Is called when the client notifies that its roots have changed. */
  changed(): void;
}

/** Receives the function that asks a client outside of its requests. */
export interface QuestionsReceiver {
  /** Takes the function. It returns undefined if the client refuses, or cannot be asked so. */
  connect(ask: ClientRequests["request"]): void;
}

/** How long a client may take to return its roots, in milliseconds. */
const ROOTS_MS = 2_000;
const BAD_TOKEN = "Invalid params: progressToken is neither a string nor a whole number";
const INITIALIZED = "notifications/initialized";
const ROOTS_CHANGED = "notifications/roots/list_changed";
const INVALID_PARAMS = -32602;

/** Serves one connection. */
export class Direct implements AsyncDisposable {
  readonly #face: Promise<Face>;
  readonly #options: DirectOptions;
  readonly #ends: Ends;
  readonly #requests: UsualRequests;
  /** What the connection is bound to, as the SDK is told it. */
  #bound: { readonly era: Era; readonly by: readonly JSONRPCMessage[] } | undefined;
  #connection: Promise<Connection> | undefined;
  /** The connection, once it is open. */
  #opened: Connection | undefined;
  #greeted: Greeted | undefined;
  readonly #texts: ResultTexts;
  #sdk: Promise<SdkSide> | undefined;
  #server: Server | undefined;
  /** Whether the SDK serves everything. */
  #isLeft: boolean;
  readonly #changed = new Set<string>();
  readonly #asked: ClientRequests;
  /** Whether the client speaks an older revision. */
  #isOlder = false;

  /** Takes what serves the requests, and the ends of the connection. */
  constructor(face: Promise<Face>, options: DirectOptions) {
    this.#face = face;
    this.#options = options;
    this.#ends = options.ends;
    this.#texts = new ResultTexts(options.hello);
    this.#isLeft = options.bySdk ?? false;
    this.#asked = new ClientRequests((message) => void this.#ends.send(message));
    const ask: ClientRequests["request"] = async (method, asked) =>
      // In the newest revision, a client can be asked only within a call.
      this.#isOlder ? await this.#asked.request(method, asked) : undefined;
    options.roots?.connect(() => ask("roots/list", { ms: ROOTS_MS }));
    options.questions?.connect(ask);
    this.#requests = new UsualRequests({
      texts: this.#texts,
      opened: () => this.#opened,
      connect: (era) => this.#connection ??= this.#connect(era),
      answer: (id, said) => this.#ends.answer(id, said),
      notify: (one) => this.#notify(one),
      ask: async (method, params, { signal, ms }) => {
        const [{ server }, { ANY }] = await Promise.all([
          this.#sdk ??= this.#loadSdk(),
          import("../gateway/any_schema.ts"),
        ]);
        const options = { signal, timeout: ms };
        return await (await server).request({ method, params }, ANY, options) as JsonObject;
      },
    });
  }

  /** Takes note of `initialize`, which was answered. */
  greeted(greeted: Greeted): void {
    this.#greeted = greeted;
    this.#isOlder = true;
    this.#bound = { era: "legacy", by: [greeted.message] };
  }

  /** Serves a message. */
  take(message: Message): void {
    if (message.kind === "cancel") this.#requests.cancel(message.request, message.reason);
    if (message.kind === "request" && this.#serves(message)) return;
    if (message.kind === "other" && this.#takes(message.message)) return;
    if (message.kind !== "request" && this.#ignores(message.message)) return;
    this.#sdk ??= this.#loadSdk();
    this.#sdk.then(({ take }) => take(message.message), (error) => {
      this.#options.onError(error);
      this.#ends.close();
    });
  }

  /** Gives everything up. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#requests[Symbol.dispose]();
    const [connection, sdk] = await Promise.allSettled([this.#connection, this.#sdk]);
    if (sdk.status === "fulfilled") await sdk.value?.end();
    if (connection.status === "fulfilled") connection.value?.close();
  }

  /** Begins to serve a request. Returns false for one that is the SDK's. */
  #serves({ message, id }: Request): boolean {
    if (!("method" in message)) return false;
    const { method } = message;
    const params = objectOf(message.params);
    if (!hasFitToken(params)) {
      // The SDK would never answer it.
      this.#refuse(id, { code: INVALID_PARAMS, message: BAD_TOKEN });
      return true;
    }
    if (method === "initialize") this.#isOlder = true;
    if (this.#isLeft) return false;
    const era = eraOf(params);
    if (this.#bound === undefined) {
      if (method === "initialize") return this.#greets(message, id);
      this.#isLeft = era === undefined;
    }
    if (era === undefined || era !== (this.#bound?.era ?? era)) return false;
    if (era === "modern" && method === "server/discover") {
      this.#answer(id, this.#texts.discovered());
      return true;
    }
    this.#bound ??= { era, by: [binding(params)] };
    if (!isUsual(method, era)) return false;
    this.#requests.take(params, { id, method, era });
    return true;
  }

  /** Takes an answer to a request of PML. Returns false for other messages. */
  #takes(message: JSONRPCMessage): boolean {
    if ("method" in message && message.method === ROOTS_CHANGED) this.#options.roots?.changed();
    return this.#asked.takes(message);
  }

  #greets(message: JSONRPCMessage, id: string): boolean {
    const result = greet(message, this.#options.hello(false));
    this.#isLeft = result === undefined;
    if (result === undefined) return false;
    this.greeted({ message, result });
    this.#answer(id, result);
    return true;
  }

  /** Returns whether the SDK needs no notification and no answer of the client. */
  #ignores(message: JSONRPCMessage): boolean {
    const bound = this.#bound;
    // What comes first may bind the connection.
    this.#isLeft ||= bound === undefined;
    if (bound === undefined || this.#isLeft || this.#sdk !== undefined) return false;
    if ("method" in message && message.method === INITIALIZED) {
      this.#bound = { ...bound, by: [...bound.by, message] };
    }
    return true;
  }

  async #connect(era: Era): Promise<Connection> {
    const face = await this.#face;
    const peer = peerOf(era, {
      greeted: this.#greeted,
      server: () => this.#server,
      tell: (one) => this.#tell(one),
    });
    return this.#opened = face.connect(peer, era === "modern");
  }

  /** Tells of a list that changed several times at once only once. */
  async #tell(one: { readonly method: string }): Promise<void> {
    const { method } = one;
    if (!method.endsWith("/list_changed")) return await this.#notify(one);
    if (this.#changed.has(method)) return;
    this.#changed.add(method);
    await Promise.resolve();
    this.#changed.delete(method);
    await this.#notify(one);
  }

  async #notify(one: object): Promise<void> {
    await this.#ends.send({ jsonrpc: "2.0", ...one } as JSONRPCMessage);
  }

  #answer(id: string, result: JsonObject): void {
    this.#ends.answer(id, `"result":${JSON.stringify(result)}`);
  }

  #refuse(id: string, error: object): void {
    this.#ends.answer(id, `"error":${JSON.stringify(error)}`);
  }

  async #loadSdk(): Promise<SdkSide> {
    const [{ BySdk, TOLD }, face] = await Promise.all([import("./_by_sdk.ts"), this.#face]);
    const made = Promise.withResolvers<Server>();
    const sdk = new BySdk({
      factory: async (about) => {
        const isModern = about.era === "modern";
        const opened = this.#isLeft
          ? undefined
          : await (this.#connection ??= this.#connect(about.era));
        const fits = opened?.isModern === isModern ? opened : undefined;
        const server = await face.factory(about, fits && (() => fits));
        made.resolve(this.#server = server);
        return server;
      },
      send: (message) => this.#ends.send(message),
      close: () => this.#ends.close(),
      onError: (error) => this.#options.onError(error),
    });
    const { by = [] } = this.#bound ?? {};
    for (const one of by) sdk.onmessage?.("id" in one ? { ...one, id: TOLD } : one);
    return {
      // The SDK connects it at once when it has it.
      server: made.promise.then((server) => turn().then(() => server)),
      take: (message) => sdk.take(message),
      end: () => sdk[Symbol.asyncDispose](),
    };
  }
}

/** What serves messages by the SDK. */
interface SdkSide {
  /** The server, as soon as the SDK has made it. */
  readonly server: Promise<Server>;
  readonly take: (message: JSONRPCMessage) => void;
  readonly end: () => Promise<void>;
}

/** Makes a notification that nobody handles. It binds the SDK's side as a request did this one. */
function binding({ _meta }: JsonObject): JSONRPCMessage {
  const { progressToken: _, ...meta } = objectOf(_meta);
  return { jsonrpc: "2.0", method: "notifications/pml/bound", params: { _meta: meta } };
}

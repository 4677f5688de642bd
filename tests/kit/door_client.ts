/**
 * A client of `pml serve` that can act as no honest client does: it exposes each message, stream
 * and handle, and sends any.
 *
 * @module
 */

import { CLIENT_INFO, type Era, type Message, paramsFor } from "./json_rpc.ts";
import type { TestServer } from "./pml_serve.ts";
import { DEADLINE_MS, until, within } from "./wait.ts";

/** The revision and headers of the client. */
export interface DoorClientOptions {
  readonly era?: Era;
  readonly capabilities?: Record<string, unknown>;
  /** The token of another identity. */
  readonly token?: string;
  /** More headers of each request. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A response that is read as it arrives. */
export class Reading implements AsyncDisposable {
  readonly status: number;
  readonly headers: Headers;
  /** The messages so far. */
  readonly messages: Message[] = [];
  /** All text so far. */
  text = "";
  /** Resolves at the end of the response. */
  readonly over: Promise<void>;
  readonly #reader: ReadableStreamDefaultReader<string> | undefined;

  /** Starts to read. */
  constructor({ status, headers, body }: Response) {
    this.status = status;
    this.headers = headers;
    this.#reader = body?.pipeThrough(new TextDecoderStream()).getReader();
    this.over = this.#read().catch(() => {}); // the other side may abort it
  }

  /** The ids of its events. */
  get ids(): readonly string[] {
    return [...this.text.matchAll(/^id: (.*)$/gm)].map(([, id = ""]) => id);
  }

  /** Waits for a message. */
  async message(isIt: (message: Message) => boolean): Promise<Message> {
    await until(() => this.messages.some(isIt));
    return this.messages.find(isIt) as Message;
  }

  /** Disconnects. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reader?.cancel().catch(() => {});
    await this.over;
  }

  async #read(): Promise<void> {
    const isStream = this.headers.get("content-type")?.startsWith("text/event-stream") === true;
    let rest = "";
    for (;;) {
      const { done = true, value = "" } = await this.#reader?.read() ?? {};
      if (done) break;
      this.text += value;
      const lines = (rest + value).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (isStream && line.startsWith("data: {")) this.messages.push(JSON.parse(line.slice(6)));
      }
    }
    if (!isStream && this.text !== "") this.messages.push(JSON.parse(this.text));
  }
}

/** The client. Its disposal ends its session. */
export class DoorClient implements AsyncDisposable {
  readonly era: Era;
  /** The headers of its session. */
  session: Record<string, string> = {};
  readonly #served: Pick<TestServer, "fetch">;
  readonly #options: DoorClientOptions;
  #id = 0;

  private constructor(served: Pick<TestServer, "fetch">, options: DoorClientOptions) {
    this.#served = served;
    this.#options = options;
    this.era = options.era ?? "2025-11-25";
  }

  /** Connects a client. */
  static async open(
    served: Pick<TestServer, "fetch">,
    options: DoorClientOptions = {},
  ): Promise<DoorClient> {
    const client = new DoorClient(served, options);
    if (client.era === "2026-07-28") return client;
    const { capabilities = {} } = options;
    const params = { protocolVersion: client.era, capabilities, clientInfo: CLIENT_INFO };
    const reading = await client.begin("initialize", params);
    await reading.over;
    client.session = {
      "mcp-session-id": reading.headers.get("mcp-session-id") ?? "",
      "mcp-protocol-version": client.era,
    };
    await client.send({ method: "notifications/initialized" });
    return client;
  }

  /** Sends a message, and reads the response as it arrives. */
  async send(message: Omit<Message, "jsonrpc">, more: HeadersInit = {}): Promise<Reading> {
    const { method, params } = message;
    const isModern = this.era === "2026-07-28";
    const name = ["name", "uri", "taskId"].map((key) => params?.[key]).find((one) =>
      typeof one === "string"
    );
    const standard = isModern && method !== undefined && {
      "mcp-protocol-version": this.era,
      "mcp-method": method,
      ...name !== undefined && { "mcp-name": String(name) },
    };
    const body = JSON.stringify({ jsonrpc: "2.0", ...message });
    return await this.fetch({ method: "POST", body, headers: { ...standard, ...more } });
  }

  /** Sends a request. */
  begin(method: string, params: Record<string, unknown> = {}): Promise<Reading> {
    const { capabilities = {} } = this.#options;
    return this.send({ id: ++this.#id, method, params: paramsFor(this.era, params, capabilities) });
  }

  /** Sends a request, and waits for its answer. */
  async request(method: string, params: Record<string, unknown> = {}): Promise<Message> {
    await using reading = await this.begin(method, params);
    const answered = reading.message((one) => one.method === undefined);
    return await within(answered, { ms: DEADLINE_MS, what: () => `no answer: ${reading.text}` });
  }

  /** Opens the stream of its session, after an event id if there is one. */
  listen(lastEventId?: string): Promise<Reading> {
    return this.fetch({ headers: defined({ "last-event-id": lastEventId }) });
  }

  /** Sends any request. */
  async fetch(init: RequestInit): Promise<Reading> {
    const { token, headers } = this.#options;
    const own = defined({ authorization: token && `Bearer ${token}` });
    const all = { ...this.session, ...own, ...headers, ...init.headers as Record<string, string> };
    return new Reading(await this.#served.fetch({ ...init, headers: all }));
  }

  /** Ends its session. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.era === "2026-07-28") return;
    await using _ = await this.fetch({ method: "DELETE" }).catch(() => undefined) ?? noReading();
  }
}

/** Removes members without a value. */
function defined(all: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(all).filter(([, value]) => value !== undefined),
  ) as Record<
    string,
    string
  >;
}

function noReading(): Reading {
  return new Reading(new Response(null));
}

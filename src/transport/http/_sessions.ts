/**
 * The sessions of clients of older revisions. A session starts with `initialize`, and ends with
 * `DELETE` or after some time without use.
 *
 * @module
 */

import { isObject, objectOf } from "../../core/json.ts";
import { JSON_TYPE } from "../../io/event_stream.ts";
import { ERROR, HTTP_ERROR } from "../../protocol/errors.ts";
import { capabilitiesIn, isInitialize } from "../../protocol/initialize.ts";
import { classify, type Message } from "../../protocol/message.ts";
import { HANDSHAKE_REVISIONS } from "../../protocol/revisions.ts";
import type { SharedCapabilities } from "./_shared_capabilities.ts";
import { onSent, rejection, TextAnswer } from "./_answer.ts";
import type { HttpRequest } from "./_route.ts";
import { ClientSession, SESSION_HEADER, type SessionHost } from "./_session.ts";
import { SentBytes, SentEvents } from "./_sent_events.ts";

/** The limits of sessions. */
export interface SessionLimits {
  /** The maximum number of sessions. A further session replaces the one unused for longest. */
  readonly connections: number;
  /** The maximum size of all stored events, in bytes. */
  readonly queuedBytes: number;
}

/** A session and its state. */
interface SessionEntry {
  readonly clientSession: ClientSession;
  readonly events: SentEvents;
  /**
   * The ids of the open requests as JSON, and a unique value for each other open body or stream.
   */
  readonly open: Set<unknown>;
  /** When the last request ended, by `performance.now()`. */
  usedAt: number;
  /** Holds the capabilities of its client until it is disposed. */
  heldCapabilities?: Disposable;
}

/** The parts that the sessions of an endpoint share. */
export interface SharedSessionParts {
  /** The beginning of the ids of the sessions. */
  readonly prefix: string;
  /** The capabilities of all clients of the endpoint. */
  readonly capabilities: SharedCapabilities;
}

/** The maximum number of messages in a request. */
const BATCH_MAX = 100;
/** The revision of a client that does not send one. */
const DEFAULT_REVISION = "2025-03-26";
/** How long a session lives without open requests or streams, in milliseconds. */
const IDLE_MS = 30 * 60_000;
/** How often PML looks for sessions to end, in milliseconds. */
const CHECK_MS = 60_000;

/** The sessions of one endpoint. */
export class Sessions implements AsyncDisposable {
  readonly #host: SessionHost;
  readonly #sessionsMax: number;
  readonly #prefix: string;
  readonly #capabilities: SharedCapabilities;
  readonly #all = new Map<string, SessionEntry>();
  readonly #sentBytes: SentBytes;
  readonly #timer = setInterval(() => {
    for (const session of this.#idle(performance.now() - IDLE_MS)) void this.#end(session);
  }, CHECK_MS);
  #isEnding = false;

  /** Creates an empty set of sessions. */
  constructor(
    host: SessionHost,
    { connections, queuedBytes }: SessionLimits,
    { prefix, capabilities }: SharedSessionParts,
  ) {
    this.#host = host;
    this.#capabilities = capabilities;
    this.#sessionsMax = connections;
    this.#prefix = prefix;
    this.#sentBytes = new SentBytes(queuedBytes);
    Deno.unrefTimer(this.#timer);
  }

  /** Answers a request of an older revision. */
  async answer(request: HttpRequest): Promise<Response | TextAnswer> {
    const { body, headers } = request;
    const id = headers[SESSION_HEADER];
    const isFirst = isObject(body) && isInitialize(body) && "id" in body;
    if (id === undefined && isFirst) return await this.#begin(request);
    if (id === undefined) return rejection(400, { why: "it has no Mcp-Session-Id" });
    const session = this.#all.get(id);
    // After this error, the client starts a new session.
    if (session === undefined) {
      return rejection(404, { why: "there is no such session", code: HTTP_ERROR.noSession });
    }
    const revision = headers["mcp-protocol-version"]?.trim();
    if (revision !== undefined && !HANDSHAKE_REVISIONS.includes(revision)) {
      const revisions = HANDSHAKE_REVISIONS.join(", ");
      return rejection(400, { why: `MCP-Protocol-Version is not one of ${revisions}` });
    }
    return await this.#whileOpen(session, body, async () => await this.#handle(session, request));
  }

  /** Closes the streams that carry no answers. */
  closeStandalone(): void {
    this.#isEnding = true;
    for (const { clientSession } of this.#all.values()) clientSession.closeStandalone();
  }

  /** Ends all sessions. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([...this.#all.values()].map((session) => this.#end(session)));
  }

  async #begin(request: HttpRequest): Promise<Response | TextAnswer> {
    if (this.#isEnding) return rejection(503, { why: "PML is ending" });
    if (this.#all.size >= this.#sessionsMax) {
      const [oldest] = this.#idle();
      if (!oldest) return rejection(503, { why: `${this.#sessionsMax} sessions are in use` });
      void this.#end(oldest);
    }
    const id = `${this.#prefix}${crypto.randomUUID()}`;
    const events = new SentEvents(this.#sentBytes);
    const clientSession = new ClientSession(id, events, this.#host);
    const session: SessionEntry = {
      clientSession: clientSession,
      events: events,
      open: new Set(),
      usedAt: performance.now(),
    };
    this.#all.set(id, session);
    const answer = await this.#whileOpen(
      session,
      request.body,
      () => this.#handle(session, request),
    );
    const isRefused = answer instanceof Response ? !answer.ok : answer.text.startsWith('{"error"');
    if (isRefused) await this.#end(session);
    else {
      session.heldCapabilities = this.#capabilities.hold(
        capabilitiesIn(objectOf(request.body)) ?? {},
      );
      await clientSession.open();
    }
    if (answer instanceof Response) return answer;
    const headers = { "content-type": JSON_TYPE, [SESSION_HEADER]: id };
    return new Response(answer.text, { status: answer.status, headers });
  }

  async #handle(
    session: SessionEntry,
    { method, body, headers }: HttpRequest,
  ): Promise<Response | TextAnswer> {
    const { clientSession } = session;
    if (method === "DELETE") {
      await this.#end(session);
      return new Response(null, { status: 200 });
    }
    if (method === "GET") return clientSession.get(headers["last-event-id"]);
    const messages = readMessages(body);
    if (!Array.isArray(messages)) return messages as Response;
    const isFirst = headers[SESSION_HEADER] === undefined;
    if (!isFirst && messages.some(({ message }) => isInitialize(message))) {
      return rejection(400, { why: "its session has begun", code: ERROR.invalidRequest });
    }
    const { protocolVersion } = objectOf(objectOf(body).params);
    const revision = isFirst
      ? `${protocolVersion}`
      : headers["mcp-protocol-version"] ?? DEFAULT_REVISION;
    return await clientSession.post(messages, { revision, isBatch: Array.isArray(body) });
  }

  /**
   * Counts a request as open until its answer is sent. No other request may use its id until then.
   */
  #whileOpen(
    session: SessionEntry,
    body: unknown,
    answer: () => Promise<Response | TextAnswer>,
  ): Promise<Response | TextAnswer> {
    const { open } = session;
    const ids = idsIn(body);
    // guard: http-ids
    if (new Set(ids).size < ids.length || ids.some((id) => open.has(id))) {
      return Promise.resolve(
        rejection(400, { why: "its id is in use", code: ERROR.invalidRequest }),
      );
    }
    ids.forEach((id) => open.add(id));
    const answering = answer();
    const done = () => {
      ids.forEach((id) => open.delete(id));
      session.usedAt = performance.now();
    };
    answering.then((answer) => answer instanceof TextAnswer ? done() : onSent(answer, done), done);
    return answering;
  }

  /** Returns the unused sessions, the least recently used one first. */
  #idle(usedBefore = Infinity): readonly SessionEntry[] {
    return [...this.#all.values()].filter(({ open, usedAt }) =>
      open.size === 0 && usedAt < usedBefore
    )
      .sort((one, other) => one.usedAt - other.usedAt);
  }

  async #end(
    { clientSession, events, heldCapabilities }: SessionEntry,
  ): Promise<void> {
    this.#all.delete(clientSession.sessionId);
    heldCapabilities?.[Symbol.dispose]();
    await clientSession[Symbol.asyncDispose]();
    events[Symbol.dispose]();
  }
}

/** Returns the messages of a body, or the refusal of a body with an invalid message. */
function readMessages(body: unknown): readonly Message[] | Response {
  const all = [body].flat().map(classify);
  if (all.length > BATCH_MAX) {
    return rejection(400, {
      why: `it has more than ${BATCH_MAX} messages`,
      code: ERROR.invalidRequest,
    });
  }
  const refused = all.find((message) => message.kind === "refusal");
  if (refused?.kind === "refusal") {
    return rejection(400, { why: refused.text, code: refused.code });
  }
  return all as readonly Message[];
}

/** Returns the ids of the requests in a body as JSON, or a unique value if there are none. */
function idsIn(body: unknown): readonly unknown[] {
  const all = [body].flat().map(objectOf).filter((message) =>
    "id" in message && "method" in message
  );
  return all.length === 0 ? [{}] : all.map(({ id }) => JSON.stringify(id));
}

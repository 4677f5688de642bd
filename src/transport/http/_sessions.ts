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
import type { Able } from "./_able.ts";
import { followedBy, rejection, TextAnswer } from "./_answer.ts";
import type { HttpRequest } from "./_route.ts";
import { ClientSession, SESSION_HEADER, type SessionHost } from "./_session.ts";
import { SentBytes, SentEvents } from "./_sent_events.ts";

/** The limits of sessions. */
export interface SessionLimits {
  /** The maximum number of sessions. A new session replaces the one that was unused for longest. */
  readonly connections: number;
  /** The maximum size of all stored events, in bytes. */
  readonly queuedBytes: number;
}

interface SessionEntry {
  readonly serving: ClientSession;
  readonly sent: SentEvents;
  /**
   * The ids of the open requests as JSON, and a unique value for each other open body or stream.
   */
  readonly open: Set<unknown>;
  usedAt: number;
  /** Its capabilities, which count until it ends. */
  able?: Disposable;
}

/** The parts that the sessions of an endpoint share. */
export interface SessionsOwner {
  /** The beginning of their ids. */
  readonly prefix: string;
  /** The capabilities of all clients of the endpoint. */
  readonly able: Able;
}

/** The maximum number of messages in a request. */
const MOST_MESSAGES = 100;
/** The revision of a client that does not send one. */
const UNNAMED = "2025-03-26";
/** How long a session lives without open requests or streams. */
const IDLE_MS = 30 * 60_000;
const CHECK_MS = 60_000;

/** The sessions of one endpoint. */
export class Sessions implements AsyncDisposable {
  readonly #host: SessionHost;
  readonly #most: number;
  readonly #prefix: string;
  readonly #able: Able;
  readonly #all = new Map<string, SessionEntry>();
  readonly #sentBytes: SentBytes;
  readonly #timer = setInterval(() => {
    for (const one of this.#idle(performance.now() - IDLE_MS)) void this.#end(one);
  }, CHECK_MS);
  #isHushed = false;

  /** Creates an empty set. */
  constructor(
    host: SessionHost,
    { connections, queuedBytes }: SessionLimits,
    { prefix, able }: SessionsOwner,
  ) {
    this.#host = host;
    this.#able = able;
    this.#most = connections;
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
    // The client then starts another session.
    if (session === undefined) {
      return rejection(404, { why: "there is no such session", code: HTTP_ERROR.noSession });
    }
    const revision = headers["mcp-protocol-version"]?.trim();
    if (revision !== undefined && !HANDSHAKE_REVISIONS.includes(revision)) {
      const revisions = HANDSHAKE_REVISIONS.join(", ");
      return rejection(400, { why: `MCP-Protocol-Version is not one of ${revisions}` });
    }
    return await this.#during(session, body, async () => await this.#through(session, request));
  }

  /** Closes the streams that carry no answers. */
  hush(): void {
    this.#isHushed = true;
    for (const { serving } of this.#all.values()) serving.hush();
  }

  /** Ends all sessions. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([...this.#all.values()].map((session) => this.#end(session)));
  }

  async #begin(request: HttpRequest): Promise<Response | TextAnswer> {
    if (this.#isHushed) return rejection(503, { why: "PML is ending" });
    if (this.#all.size >= this.#most) {
      const [oldest] = this.#idle();
      if (!oldest) return rejection(503, { why: `${this.#most} sessions are in use` });
      void this.#end(oldest);
    }
    const id = `${this.#prefix}${crypto.randomUUID()}`;
    const sent = new SentEvents(this.#sentBytes);
    const serving = new ClientSession(id, sent, this.#host);
    const session: SessionEntry = { serving, sent, open: new Set(), usedAt: performance.now() };
    this.#all.set(id, session);
    const answer = await this.#during(session, request.body, () => this.#through(session, request));
    const isRefused = answer instanceof Response ? !answer.ok : answer.text.startsWith('{"error"');
    if (isRefused) await this.#end(session);
    else {
      session.able = this.#able.hold(capabilitiesIn(objectOf(request.body)) ?? {});
      await serving.open();
    }
    if (answer instanceof Response) return answer;
    const headers = { "content-type": JSON_TYPE, [SESSION_HEADER]: id };
    return new Response(answer.text, { status: answer.status, headers });
  }

  async #through(
    session: SessionEntry,
    { method, body, headers }: HttpRequest,
  ): Promise<Response | TextAnswer> {
    const { serving } = session;
    if (method === "DELETE") {
      await this.#end(session);
      return new Response(null, { status: 200 });
    }
    if (method === "GET") return serving.get(headers["last-event-id"]);
    const messages = readAll(body);
    if (!Array.isArray(messages)) return messages as Response;
    const isFirst = headers[SESSION_HEADER] === undefined;
    if (!isFirst && messages.some(({ message }) => isInitialize(message))) {
      return rejection(400, { why: "its session has begun", code: ERROR.invalidRequest });
    }
    const { protocolVersion } = objectOf(objectOf(body).params);
    const revision = isFirst ? `${protocolVersion}` : headers["mcp-protocol-version"] ?? UNNAMED;
    return await serving.post(messages, { revision, isBatch: Array.isArray(body) });
  }

  /**
   * Counts a request as open until its answer is sent. No other request may use its id until then.
   */
  #during(
    session: SessionEntry,
    body: unknown,
    answer: () => Promise<Response | TextAnswer>,
  ): Promise<Response | TextAnswer> {
    const { open } = session;
    const own = idsIn(body);
    // guard: http-ids
    if (new Set(own).size < own.length || own.some((one) => open.has(one))) {
      return Promise.resolve(
        rejection(400, { why: "its id is in use", code: ERROR.invalidRequest }),
      );
    }
    own.forEach((one) => open.add(one));
    const coming = answer();
    const done = () => {
      own.forEach((one) => open.delete(one));
      session.usedAt = performance.now();
    };
    coming.then((made) => made instanceof TextAnswer ? done() : followedBy(made, done), done);
    return coming;
  }

  /** Returns the unused sessions, the least recently used one first. */
  #idle(before = Infinity): readonly SessionEntry[] {
    return [...this.#all.values()].filter(({ open, usedAt }) => open.size === 0 && usedAt < before)
      .sort((one, other) => one.usedAt - other.usedAt);
  }

  async #end({ serving, sent, able }: SessionEntry): Promise<void> {
    this.#all.delete(serving.id);
    able?.[Symbol.dispose]();
    await serving[Symbol.asyncDispose]();
    sent[Symbol.dispose]();
  }
}

/** Returns the messages of a body, or the refusal if it contains an invalid one. */
function readAll(body: unknown): readonly Message[] | Response {
  const all = [body].flat().map(classify);
  if (all.length > MOST_MESSAGES) {
    return rejection(400, {
      why: `it has more than ${MOST_MESSAGES} messages`,
      code: ERROR.invalidRequest,
    });
  }
  const refused = all.find((one) => one.kind === "refusal");
  if (refused?.kind === "refusal") {
    return rejection(400, { why: refused.text, code: refused.code });
  }
  return all as readonly Message[];
}

/** Returns the ids of the requests in a body as JSON, or a unique value if there are none. */
function idsIn(body: unknown): readonly unknown[] {
  const all = [body].flat().map(objectOf).filter((one) => "id" in one && "method" in one);
  return all.length === 0 ? [{}] : all.map(({ id }) => JSON.stringify(id));
}

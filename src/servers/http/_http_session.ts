/**
 * Sends the HTTP requests of one connection to a server, with its session id and revision.
 *
 * @module
 */

import type { PmlError } from "../../core/errors.ts";
import { isObject, type JsonObject, objectOf, textOf, withoutUndefined } from "../../core/json.ts";
import { parsedJson } from "../../core/json_bounds.ts";
import type { ListItem } from "../../protocol/lists.ts";
import { encodeHeader, markedValues } from "../../protocol/marked_arguments.ts";
import {
  contentType,
  drainBody,
  EVENTS_TYPE,
  JSON_TYPE,
  readStart,
  type StreamEvent,
} from "../../io/event_stream.ts";
import { SessionLost } from "../client/wire.ts";
import { META } from "../../protocol/envelope.ts";
import { ERROR, HTTP_ERROR } from "../../protocol/errors.ts";
import { nameHeaderOf } from "../../protocol/revisions.ts";
import { headerError, statusError } from "./_http_errors.ts";
import type { HttpWireOptions } from "./http_options.ts";

/** Matches values of headers that `fetch` accepts. */
const SENDABLE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** The maximum length of a header's value, in characters. */
const HEADER_MAX = 16_384;
/** Matches session ids and revisions that can be sent back in a header. */
const HEADER_TOKEN = /^[\x21-\x7e]{1,1000}$/;
/**
 * Matches refusals that are about the session, for answers without a JSON-RPC error, and for errors
 * with one of `SESSION_CODES`.
 */
const SESSION_WORD = /session/i;
const SESSION_CODES: readonly number[] = [
  ERROR.invalidRequest,
  HTTP_ERROR.refused,
  HTTP_ERROR.noSession,
];
/** Matches refusals that are about the session, for errors with another code. */
const SESSION_ID_WORDS = /session[ -]?id\b/i;
/** Matches event ids that can be sent back to resume a stream. */
const EVENT_ID = /^[\x20-\x7e]{1,4096}$/;

/** The options of an HTTP request. */
interface RequestParts {
  /** The message to send; without it, the request is for a stream, or ends the session. */
  readonly message?: JsonObject;
  /** The event id after which a stream is resumed. */
  readonly last?: string | undefined;
  readonly signal: AbortSignal;
}

/** Sends HTTP requests to one server, with the headers of its session. */
export class ServerHttpSession {
  readonly #options: HttpWireOptions;
  readonly #tool: (name: string) => ListItem | undefined;
  /** Whether the last request had the token of a sign-in. */
  #isSignedIn = false;
  /** The session id, if the server sent one. */
  id: string | undefined;
  /** Whether the server has opened a session, which it can lose later. */
  isOpen = false;
  /** The address for messages, if it differs from the address of the stream. */
  address: string | undefined;
  /** The revision that the server chose in the handshake of the older revisions. */
  version: string | undefined;

  /** `tool` returns the cached definition of a tool. Throws if a header cannot be sent. */
  constructor(options: HttpWireOptions, tool: (name: string) => ListItem | undefined) {
    const { headers, keyHeaders } = options;
    for (const [header, value] of Object.entries({ ...headers, ...keyHeaders })) {
      if (!SENDABLE.test(value) || value.length > HEADER_MAX) throw headerError(options, header);
    }
    this.#options = options;
    this.#tool = tool;
  }

  /** Takes the session id from the headers of the answer to the handshake. */
  begin({ headers }: Response): void {
    const id = headers.get("mcp-session-id") ?? "";
    if (!HEADER_TOKEN.test(id)) return;
    this.id = id;
    this.isOpen = true;
  }

  /** Takes the revision that the server chose, and stores that this transport works. */
  onInitialized(result: unknown): void {
    const version = textOf(objectOf(result).protocolVersion);
    this.version = HEADER_TOKEN.test(version) ? version : "2025-03-26";
    this.#options.addressState.store({});
  }

  /**
   * Reads an answer with an error status, and returns the JSON-RPC error in it. Throws
   * `SessionLost` if the server no longer knows the session. Throws another error if the answer
   * contains no JSON-RPC error, or if its status says that the server is down or refuses the user.
   */
  async readRefusal(response: Response): Promise<JsonObject> {
    const { status, headers } = response;
    const isJson = contentType(response) === JSON_TYPE;
    const text = await readStart(response.body);
    const { error } = objectOf(isJson ? parsedJson(new TextEncoder().encode(text)) : undefined);
    const hasOtherCode = isObject(error) && !SESSION_CODES.includes(Number(error.code));
    const about = hasOtherCode ? SESSION_ID_WORDS : SESSION_WORD;
    if (this.isOpen && (status === 404 || status === 400 && about.test(text))) {
      throw new SessionLost(this.#options.name);
    }
    if (isObject(error) && status >= 400 && ![401, 403, 429, 503].includes(status)) {
      return error as JsonObject; // parsed JSON
    }
    throw statusError(this.#options, { status, text, headers, isSignedIn: this.#isSignedIn });
  }

  /**
   * Returns whether the connection is lost after this error: no request could be sent on it, or a
   * server with a session answered 503. Such a server may be restarting, which ends its sessions.
   */
  isConnectionLost({ code, detail }: PmlError): boolean {
    const { status, may_have_run: mayHaveRun } = detail ?? {};
    return code === "UPSTREAM_DOWN" &&
      (status === undefined ? mayHaveRun === false : status === 503 && this.isOpen);
  }

  /**
   * Sends an HTTP request. If the server refuses the token of the sign-in, and the sign-in then has
   * another token, sends the request once more.
   */
  async fetch(method: string, options: RequestParts): Promise<Response> {
    const { authorization } = this.#options;
    if (authorization === undefined) return await this.#send(method, options);
    const { signal } = options;
    for (let isAgain = false;; isAgain = true) {
      const sent = await authorization.header(signal);
      this.#isSignedIn = sent !== undefined;
      const response = await this.#send(method, { ...options, token: sent });
      if (response.status !== 401 && response.status !== 403) return response;
      try {
        const maySendAgain = await authorization.handleRefusal({ response, sent, signal, isAgain });
        if (!maySendAgain || isAgain) return response;
      } catch (error) {
        await drainBody(response);
        throw error;
      }
      await drainBody(response);
    }
  }

  #send(
    method: string,
    { message, last, signal, token }: RequestParts & { token?: string | undefined },
  ): Promise<Response> {
    const { fetch, headers, keyHeaders, named, certificates } = this.#options;
    const { url, requestUrl = url } = this.#options;
    // `Headers` makes the names lower-case, so that the headers of PML replace those of the user.
    const configured = new Headers({
      ...headers,
      ...message?.method === "tools/call" && keyHeaders,
    });
    const headersToSend = {
      ...Object.fromEntries(configured),
      ...withoutUndefined({
        "authorization": token,
        "accept": method === "GET" ? EVENTS_TYPE : `${JSON_TYPE}, ${EVENTS_TYPE}`,
        "mcp-session-id": this.id,
        "mcp-protocol-version": this.version,
        "last-event-id": last,
      }),
    };
    const fetchOptions = { method, signal, named, certificates };
    if (message === undefined) {
      return fetch(requestUrl, { ...fetchOptions, headers: headersToSend });
    }
    return fetch(this.address ?? requestUrl, {
      ...fetchOptions,
      headers: {
        ...headersToSend,
        ...requestHeaders(message, this.#tool),
        "content-type": JSON_TYPE,
      },
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
    });
  }
}

/**
 * Returns the event id with which a stream can be resumed after an event; undefined if it cannot be
 * resumed. `before` is the id before this event, which stays if the event has none.
 */
export function eventIdAfter({ id }: StreamEvent, before: string | undefined): string | undefined {
  if (id === undefined) return before;
  // guard: stream-place
  return EVENT_ID.test(id) ? id : undefined;
}

/**
 * Returns the headers that the stateless revision requires for a message; none for older revisions.
 */
function requestHeaders(
  { method, params: rawParams }: JsonObject,
  tool: (name: string) => ListItem | undefined,
): Record<string, string> {
  const params = objectOf(rawParams);
  const version = objectOf(params._meta)[META.version];
  if (typeof version !== "string") return {};
  const name = nameHeaderOf(textOf(method), params);
  const headers: Record<string, string> = {
    "mcp-protocol-version": version,
    "mcp-method": textOf(method),
    ...(typeof name === "string" && { "mcp-name": encodeHeader(name) }),
  };
  const definition = method === "tools/call" ? tool(textOf(name)) : undefined;
  for (const [header, value] of definition ? markedValues(definition, params.arguments) : []) {
    headers[header] = encodeHeader(String(value));
  }
  return headers;
}

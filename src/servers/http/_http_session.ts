/**
 * Sends the HTTP requests of one connection to a server, with its session id and revision.
 *
 * @module
 */

import type { PmlError } from "../../core/errors.ts";
import { defined, isObject, type JsonObject, objectOf, textOf } from "../../core/json.ts";
import { parsedJson } from "../../core/json_bounds.ts";
import type { ListItem } from "../../protocol/lists.ts";
import { encoded, markedValues } from "../../protocol/marked_arguments.ts";
import {
  contentType,
  EVENTS_TYPE,
  JSON_TYPE,
  leave,
  readStart,
  type StreamEvent,
} from "../../io/event_stream.ts";
import { SessionLost } from "../client/wire.ts";
import { META } from "../../protocol/envelope.ts";
import { ERROR, HTTP_ERROR } from "../../protocol/errors.ts";
import { namedBy } from "../../protocol/revisions.ts";
import { headerError, statusError } from "./_http_errors.ts";
import type { HttpWireOptions } from "./http_options.ts";

/** Matches values of headers that `fetch` accepts. */
const SENDABLE = /^[\t\x20-\x7e\x80-\xff]*$/;
const HEADER_MAX = 16_384;
const SESSION_ID = /^[\x21-\x7e]{1,1000}$/;
/** Matches the message of a refusal that is about the session; the codes of such errors follow. */
const SESSION = /session/i;
const SESSION_CODES: readonly number[] = [
  ERROR.invalidRequest,
  HTTP_ERROR.refused,
  HTTP_ERROR.noSession,
];
/** Matches the message of an error with another code that is about the session. */
const NAMED = /session[ -]?id\b/i;
/** Matches event ids that can be sent back to resume a stream. */
const PLACE = /^[\x20-\x7e]{1,4096}$/;

/** The parts of an HTTP request. */
interface Sending {
  readonly message?: JsonObject;
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
  /** Whether the server keeps a session, which it can lose. */
  isKept = false;
  /** The address for messages, if it differs from that of the stream. */
  address: string | undefined;
  /** The revision that the server chose, if it accepted the handshake of the older revisions. */
  version: string | undefined;

  /** Takes a function that returns cached tools. Throws if a header cannot be sent. */
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
    if (!SESSION_ID.test(id)) return;
    this.id = id;
    this.isKept = true;
  }

  /** Takes the revision that the server chose. */
  greeted(result: unknown): void {
    const version = textOf(objectOf(result).protocolVersion);
    this.version = SESSION_ID.test(version) ? version : "2025-03-26";
    this.#options.addressState.store({});
  }

  /**
   * Reads an answer that refuses. Returns the error of JSON-RPC in it; throws another
   * error if there is none or the server is down, and `SessionLost` if it does not know the
   * session.
   */
  async refused(response: Response): Promise<JsonObject> {
    const { status, headers } = response;
    const isJson = contentType(response) === JSON_TYPE;
    const text = await readStart(response.body);
    const { error } = objectOf(isJson ? parsedJson(new TextEncoder().encode(text)) : undefined);
    const isOther = isObject(error) && !SESSION_CODES.includes(Number(error.code));
    const about = isOther ? NAMED : SESSION;
    if (this.isKept && (status === 404 || status === 400 && about.test(text))) {
      throw new SessionLost(this.#options.name);
    }
    if (isObject(error) && status >= 400 && ![401, 403, 429, 503].includes(status)) {
      return error as JsonObject; // parsed JSON
    }
    const location = headers.get("location");
    throw statusError(this.#options, { status, text, location, isSignedIn: this.#isSignedIn });
  }

  /** Returns whether the next request needs another connection after this error. */
  isOver({ code, detail }: PmlError): boolean {
    const { status, may_have_run: mayHaveRun } = detail ?? {};
    return code === "UPSTREAM_DOWN" &&
      (status === undefined ? mayHaveRun === false : status === 503 && this.isKept);
  }

  /**
   * Sends a message, or requests a stream, which resumes after an event id if there is one. After a
   * refusal it is sent once more if the sign-in has another token.
   */
  async fetch(method: string, options: Sending): Promise<Response> {
    const { authorization } = this.#options;
    if (authorization === undefined) return await this.#send(method, options);
    const { signal } = options;
    for (let isAgain = false;; isAgain = true) {
      const sent = await authorization.header(signal);
      this.#isSignedIn = sent !== undefined;
      const response = await this.#send(method, { ...options, token: sent });
      if (response.status !== 401 && response.status !== 403) return response;
      try {
        const mayAgain = await authorization.refused({ response, sent, signal, isAgain });
        if (!mayAgain || isAgain) return response;
      } catch (error) {
        await leave(response);
        throw error;
      }
      await leave(response);
    }
  }

  #send(
    method: string,
    { message, last, signal, token }: Sending & { token?: string | undefined },
  ): Promise<Response> {
    const { fetch, headers, keyHeaders, named, certificates } = this.#options;
    const { url, requestUrl = url } = this.#options;
    const all = new Headers({ ...headers, ...message?.method === "tools/call" && keyHeaders });
    const own = {
      ...Object.fromEntries(all),
      ...defined({
        "authorization": token,
        "accept": method === "GET" ? EVENTS_TYPE : `${JSON_TYPE}, ${EVENTS_TYPE}`,
        "mcp-session-id": this.id,
        "mcp-protocol-version": this.version,
        "last-event-id": last,
      }),
    };
    const way = { method, signal, named, certificates };
    if (message === undefined) return fetch(requestUrl, { ...way, headers: own });
    return fetch(this.address ?? requestUrl, {
      ...way,
      headers: { ...own, ...requestHeaders(message, this.#tool), "content-type": JSON_TYPE },
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
    });
  }
}

/** Returns the id to resume a stream after an event; undefined if it cannot be resumed. */
export function placeAfter({ id }: StreamEvent, before: string | undefined): string | undefined {
  if (id === undefined) return before;
  // guard: stream-place
  return PLACE.test(id) ? id : undefined;
}

/** Returns the headers of a request. There are none in older revisions. */
function requestHeaders(
  { method, params: rawParams }: JsonObject,
  tool: (name: string) => ListItem | undefined,
): Record<string, string> {
  const params = objectOf(rawParams);
  const version = objectOf(params._meta)[META.version];
  if (typeof version !== "string") return {};
  const name = namedBy(textOf(method), params);
  const headers: Record<string, string> = {
    "mcp-protocol-version": version,
    "mcp-method": textOf(method),
    ...(typeof name === "string" && { "mcp-name": encoded(name) }),
  };
  const own = method === "tools/call" ? tool(textOf(name)) : undefined;
  for (const [header, value] of own ? markedValues(own, params.arguments) : []) {
    headers[header] = encoded(String(value));
  }
  return headers;
}

/**
 * Reads the header `Accept` (RFC 9110 section 12.5.1), and answers in a type that it accepts.
 *
 * @module
 */

import { isObject } from "../../core/json.ts";
import { dropOldest } from "../../core/memo.ts";
import {
  contentType,
  drainBody,
  eachEvent,
  EVENTS_TYPE,
  JSON_TYPE,
} from "../../io/event_stream.ts";
import { onAbort } from "../../io/waiting.ts";
import { eventBytes, onSent, reportSent, STREAM_HEADERS, TextAnswer } from "./_answer.ts";

/** Which of the two MCP content types a client accepts. */
export type Accepted = "both" | "json" | "events" | "neither";

/** The header of clients that follow MCP. */
const BOTH = `${JSON_TYPE}, ${EVENTS_TYPE}`;

/** The maximum number of cached headers. A client sends the same header each time. */
const CACHED_HEADERS = 100;
/** The maximum length of a header that PML parses. Browsers send about 150 characters. */
const HEADER_MAX = 1_000;
const UNLIMITED = { lineBytes: Infinity, resultBytes: Infinity };

/** Parses `Accept` headers, and caches the results. */
export class AcceptHeaders {
  readonly #results = new Map<string | undefined, Accepted>([[BOTH, "both"], [undefined, "both"]]);

  /** Returns the types that a client accepts. Without the header it accepts all types. */
  async parse(accept: string | undefined): Promise<Accepted> {
    const result = this.#results.get(accept);
    if (result !== undefined) return result;
    const accepted = await negotiate(accept ?? "");
    this.#results.set(accept, accepted);
    dropOldest(this.#results, CACHED_HEADERS);
    return accepted;
  }
}

async function negotiate(accept: string): Promise<Accepted> {
  if (accept.length > HEADER_MAX) return "neither";
  const { default: Negotiator } = await import("negotiator");
  const negotiator = new Negotiator({ headers: { accept } });
  // A range with a parameter matches only an offer that has it, and both types are UTF-8.
  const accepts = (type: string) =>
    negotiator.mediaTypes([type, `${type};charset=utf-8`]).length > 0;
  if (!accepts(JSON_TYPE)) return accepts(EVENTS_TYPE) ? "events" : "neither";
  return accepts(EVENTS_TYPE) ? "both" : "json";
}

/** Converts an answer to the type that a client accepts. Errors stay JSON. */
export async function toAcceptedType(
  answer: Response | TextAnswer,
  accepted: Accepted,
  signal: AbortSignal,
): Promise<Response | TextAnswer> {
  if (accepted === "events" && answer.status === 200) return await toEvents(answer);
  const isStream = !(answer instanceof TextAnswer) && contentType(answer) === EVENTS_TYPE;
  return accepted === "json" && isStream ? await toJson(answer, signal) : answer;
}

async function toEvents(answer: Response | TextAnswer): Promise<Response> {
  if (answer instanceof TextAnswer) {
    return new Response(eventBytes(answer.text), { headers: STREAM_HEADERS });
  }
  if (contentType(answer) !== JSON_TYPE) return answer;
  const headers = new Headers(answer.headers);
  for (const [name, value] of Object.entries(STREAM_HEADERS)) headers.set(name, value);
  headers.delete("content-length");
  return new Response(eventBytes(await answer.text()), { headers });
}

/** Waits for the answers in a stream. Drops notifications, which a JSON answer cannot contain. */
async function toJson(stream: Response, signal: AbortSignal): Promise<Response> {
  const answers: unknown[] = [];
  using _ = onAbort(signal, () => void drainBody(stream));
  const decoder = new TextDecoder();
  await eachEvent(stream.body, {
    limits: UNLIMITED,
    take: ({ data }) => {
      const text = decoder.decode(data);
      const message: unknown = text === "" ? undefined : JSON.parse(text);
      const isAnswer = isObject(message) && ("result" in message || "error" in message);
      if (isAnswer) answers.push(text);
    },
  });
  const headers = new Headers(stream.headers);
  for (const name of Object.keys(STREAM_HEADERS)) headers.delete(name);
  headers.set("content-type", JSON_TYPE);
  // The text is forwarded unchanged, because parsing it would change large integers.
  const body = answers.length > 1 ? `[${answers.join(",")}]` : answers[0];
  const answer = body === undefined
    ? new Response(null, { status: 202 })
    : new Response(body as string, { headers });
  // A session counts its requests as open until their answers are sent.
  onSent(answer, () => reportSent(stream));
  return answer;
}

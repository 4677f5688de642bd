/**
 * Reads the header `Accept` (RFC 9110 section 12.5.1), and answers in a type that it accepts.
 *
 * @module
 */

import { isObject } from "../../core/json.ts";
import { dropOldest } from "../../core/memo.ts";
import { contentType, eachEvent, EVENTS_TYPE, JSON_TYPE, leave } from "../../io/event_stream.ts";
import { onAbort } from "../../io/waiting.ts";
import { eventBytes, followedBy, STREAM_HEADERS, TextAnswer, wasSent } from "./_answer.ts";

/** Which of the two MCP content types a client accepts. */
export type Accepted = "both" | "json" | "events" | "neither";

/** The header of clients that follow MCP. */
const BOTH = `${JSON_TYPE}, ${EVENTS_TYPE}`;

/** How many different headers are cached. A client sends the same header each time. */
const REMEMBERED = 100;
/** Longer headers are not parsed. Browsers send about 150 characters. */
const LONGEST = 1_000;
const UNLIMITED = { lineBytes: Infinity, resultBytes: Infinity };

/** Parses `Accept` headers, and caches the results. */
export class AcceptHeaders {
  readonly #results = new Map<string | undefined, Accepted>([[BOTH, "both"], [undefined, "both"]]);

  /** Returns the types that a client accepts. Without the header it accepts all types. */
  async accepted(accept: string | undefined): Promise<Accepted> {
    const result = this.#results.get(accept);
    if (result !== undefined) return result;
    const accepted = await negotiated(accept ?? "");
    this.#results.set(accept, accepted);
    dropOldest(this.#results, REMEMBERED);
    return accepted;
  }
}

async function negotiated(accept: string): Promise<Accepted> {
  if (accept.length > LONGEST) return "neither";
  const { default: Negotiator } = await import("negotiator");
  const negotiator = new Negotiator({ headers: { accept } });
  // A range with a parameter matches only an offer that has it, and both types are UTF-8.
  const accepts = (type: string) =>
    negotiator.mediaTypes([type, `${type};charset=utf-8`]).length > 0;
  if (!accepts(JSON_TYPE)) return accepts(EVENTS_TYPE) ? "events" : "neither";
  return accepts(EVENTS_TYPE) ? "both" : "json";
}

/** Returns an answer in the type that a client accepts. Errors stay JSON. */
export async function inAccepted(
  made: Response | TextAnswer,
  accepted: Accepted,
  signal: AbortSignal,
): Promise<Response | TextAnswer> {
  if (accepted === "events" && made.status === 200) return await asEvents(made);
  const isStream = !(made instanceof TextAnswer) && contentType(made) === EVENTS_TYPE;
  return accepted === "json" && isStream ? await asJson(made, signal) : made;
}

async function asEvents(made: Response | TextAnswer): Promise<Response> {
  if (made instanceof TextAnswer) {
    return new Response(eventBytes(made.text), { headers: STREAM_HEADERS });
  }
  if (contentType(made) !== JSON_TYPE) return made;
  const headers = new Headers(made.headers);
  for (const [name, value] of Object.entries(STREAM_HEADERS)) headers.set(name, value);
  headers.delete("content-length");
  return new Response(eventBytes(await made.text()), { headers });
}

/** Waits for the answers in a stream. Drops notifications, which a JSON answer cannot contain. */
async function asJson(stream: Response, signal: AbortSignal): Promise<Response> {
  const answers: unknown[] = [];
  using _ = onAbort(signal, () => void leave(stream));
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
  followedBy(answer, () => wasSent(stream));
  return answer;
}

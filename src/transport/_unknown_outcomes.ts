/**
 * Answers for requests whose outcome PML cannot know, because the process that worked on them ended.
 *
 * @module
 */

import { parseExact } from "../core/exact_json.ts";
import { type JsonObject, objectOf } from "../core/json.ts";
import { parsedJson } from "../core/json_bounds.ts";
import { processEndedAnswer } from "../protocol/failures.ts";
import { endsOf } from "../io/lines.ts";

/** The maximum length of an answer that is read as a whole, in bytes. */
const READ_MAX = 1 << 16;
const ANSWER = /^\{"(?:result|error)".*,"id":("(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*)\}$/s;

/** Returns, for each request in a body, the answer that its outcome is unknown. */
export function unknownOutcomes(body: unknown): readonly object[] {
  return [body].flat().map(objectOf)
    .filter((message) => "id" in message && "method" in message)
    .map(processEndedAnswer);
}

/**
 * Parses a message. Of a long answer of PML or the SDK, returns only the id, which is at its end.
 */
export function parseBriefly(json: Uint8Array): JsonObject {
  const beginAndEnd = json.length > READ_MAX ? new TextDecoder().decode(endsOf(json)) : "";
  const [, id] = ANSWER.exec(beginAndEnd) ?? [];
  return id === undefined ? objectOf(parsedJson(json, parseExact)) : { id: parseExact(id) };
}

/** Removes from a list the requests whose answers are in a text of events or JSON lines. */
export function removeAnswered(requests: unknown[], text: string): void {
  if (requests.length === 0) return;
  for (const line of text.split("\n")) {
    const { id, method } = parseBriefly(new TextEncoder().encode(line.replace("data: ", "")));
    if (method !== undefined || id === undefined) continue;
    const idText = JSON.stringify(id);
    // guard: http-batch-once
    requests.splice(0, Infinity, ...requests.filter((request) => idOf(request) !== idText));
  }
}

function idOf(request: unknown): string {
  return JSON.stringify(objectOf(request).id);
}

/**
 * Answers for requests whose outcome cannot be known.
 *
 * @module
 */

import { parseExact } from "../core/exact_json.ts";
import { type JsonObject, objectOf } from "../core/json.ts";
import { parsedJson } from "../core/json_bounds.ts";
import { unknownEnd } from "../protocol/failures.ts";
import { endsOf } from "../io/lines.ts";

/** Of a longer answer, only the beginning and the end are read. */
const MOST_READ = 1 << 16;
const ANSWER = /^\{"(?:result|error)".*,"id":("(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*)\}$/s;

/** Returns an answer with an unknown outcome for each request in a body. */
export function unknownEnds(body: unknown): readonly object[] {
  return [body].flat().map(objectOf)
    .filter((one) => "id" in one && "method" in one)
    .map(unknownEnd);
}

/** Returns a message. For most long answers of PML and the SDK, the result contains only the id. */
export function briefly(json: Uint8Array): JsonObject {
  const ends = json.length > MOST_READ ? new TextDecoder().decode(endsOf(json)) : "";
  const [, id] = ANSWER.exec(ends) ?? [];
  return id === undefined ? objectOf(parsedJson(json, parseExact)) : { id: parseExact(id) };
}

/** Removes the requests that a text answers from a list. The text contains whole events or JSON. */
export function removeAnswered(requests: unknown[], text: string): void {
  if (requests.length === 0) return;
  for (const line of text.split("\n")) {
    const { id, method } = briefly(new TextEncoder().encode(line.replace("data: ", "")));
    if (method !== undefined || id === undefined) continue;
    const text = JSON.stringify(id);
    // guard: http-batch-once
    requests.splice(0, Infinity, ...requests.filter((one) => idOf(one) !== text));
  }
}

function idOf(request: unknown): string {
  return JSON.stringify(objectOf(request).id);
}

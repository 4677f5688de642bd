/**
 * The answer to a request of which nobody will know how it ended.
 *
 * @module
 */

import { type JsonObject, objectOf } from "../core/json.ts";
import { failed, goneElsewhere, refusal } from "../gateway/results.ts";

/** Returns the answer to a request that a PML worked on when it ended. */
export function unknownEnd({ id, method }: JsonObject): object {
  const error = goneElsewhere();
  const { code, message, data } = refusal(error);
  const said = method === "tools/call"
    ? { result: { ...failed(error), resultType: "complete" } }
    : { error: { code, message, data } };
  return { ...said, jsonrpc: "2.0", id };
}

/** Returns the answers to all requests in a body. */
export function unknownEnds(body: unknown): readonly object[] {
  return [body].flat().map(objectOf)
    .filter((one) => "id" in one && "method" in one)
    .map(unknownEnd);
}

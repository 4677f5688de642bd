/**
 * Reads the body of a request: one JSON text in UTF-8, within limits.
 *
 * @module
 */

import type { IncomingMessage } from "node:http";
import { whyBroken } from "../../io/listener.ts";
import { joinBytes } from "../../io/lines.ts";
import { yieldTurn } from "../../io/waiting.ts";
import { ERROR } from "../../protocol/errors.ts";
import { readText } from "../../protocol/message.ts";

/** The parsed body, or the status and the reason of the refusal. */
export interface ParsedBody {
  readonly json?: unknown;
  readonly refused?: Refused;
}

/** The status, the reason and the JSON-RPC code of a refusal. */
type Refused = readonly [status: number, why: string, more: { readonly code?: number | undefined }];

/** Counts the incomplete bodies of one endpoint. */
export interface IncompleteBodies {
  bodies: number;
  bytes: number;
}

/** The limits of a body, and of all incomplete bodies of its endpoint. */
export interface BodyLimits {
  readonly inputBytes: number;
  readonly connections?: number;
  readonly incomplete?: IncompleteBodies;
}

/**
 * Incomplete bodies of an endpoint may use one of every `CONNECTION_SHARE` connections, and as many
 * bytes as `LARGE_BODIES` bodies of the maximum size.
 */
const [CONNECTION_SHARE, LARGE_BODIES] = [4, 16];
const JSON_TYPE = /^application\/json\s*(;|$)/i;

/** Reads the body of a request. Never throws. */
export async function readBody(
  request: IncomingMessage,
  { inputBytes, connections = Infinity, incomplete = { bodies: 0, bytes: 0 } }: BodyLimits,
): Promise<ParsedBody> {
  const { "content-type": type = "", "content-encoding": encoding, "content-length": length } =
    request.headers;
  // guard: http-type
  if (!JSON_TYPE.test(type.trim())) {
    return refusedBody(415, "its content type is not application/json");
  }
  // guard: http-coding
  if (encoding !== undefined && encoding !== "identity") {
    return refusedBody(415, "it is compressed");
  }
  const tooLarge = refusedBody(413, `it has more than ${inputBytes} bytes`, ERROR.invalidRequest);
  if (Number(length) > inputBytes) return tooLarge;
  const tooMany = refusedBody(503, "too many other requests with its token are incomplete");
  const isFull = () => incomplete.bodies >= connections / CONNECTION_SHARE && !request.complete;
  // A body that arrived together with the headers is complete in the next turn.
  if (isFull()) await yieldTurn();
  // guard: http-bodies
  if (isFull()) return tooMany;
  const parts: Uint8Array[] = [];
  let size = 0;
  incomplete.bodies++;
  try {
    for await (const part of request as AsyncIterable<Uint8Array>) {
      size += part.length;
      incomplete.bytes += part.length;
      // guard: http-size
      if (size > inputBytes) return tooLarge;
      // guard: http-bodies-bytes
      if (incomplete.bytes > LARGE_BODIES * inputBytes) return tooMany;
      parts.push(part);
    }
  } catch (error) {
    return refusedBody(...whyBroken(Object(error), "its body is incomplete"));
  } finally {
    incomplete.bodies--;
    incomplete.bytes -= size;
  }
  return parseBody(joinBytes(parts));
}

function parseBody(bytes: Uint8Array): ParsedBody {
  const read = readText(bytes, "client");
  // guard: http-deep
  if (read.kind === "excess") return refusedBody(400, read.why, ERROR.invalidRequest);
  if (read.kind === "invalid") return refusedBody(400, "it is not JSON in UTF-8", ERROR.parse);
  return { json: read.value };
}

function refusedBody(status: number, why: string, code?: number): ParsedBody {
  return { refused: [status, why, { code }] };
}

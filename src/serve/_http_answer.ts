/**
 * Sends the answers of the door over HTTP.
 *
 * @module
 */

import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { isObject, objectOf } from "../core/json.ts";
import { parsedJson } from "../core/json_bounds.ts";
import { JSON_TYPE, typeOf } from "../io/event_stream.ts";
import { after } from "../io/waiting.ts";

/** The limits of an answer. */
export interface AnswerLimits {
  /** How long a client may read nothing before its connection is closed, in milliseconds. */
  readonly unreadMs: number;
}

/** Why a request is refused. */
export interface Rejection {
  readonly why: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The JSON-RPC code. */
  readonly code?: number | undefined;
}

/** Returns the answer for a refused request. */
export function rejection(
  status: number,
  { why, headers = {}, code = -32000 }: Rejection,
): Response {
  const error = { code, message: `Cannot take the request: ${why}` };
  return Response.json({ jsonrpc: "2.0", id: null, error }, {
    status,
    // The rest of a refused request is not read.
    headers: { ...headers, connection: "close" },
  });
}

/** The statuses of answers that are errors in the newest revision, by their codes. */
const STATUSES: Readonly<Record<number, number>> = { [-32601]: 404, [-32021]: 400 };
/** No error is longer. */
const ERROR_CHARACTERS = 65_536;

/** Returns an answer of the newest revision with the status that its error has there. */
export async function withStatus(response: Response): Promise<Response> {
  const { status, headers, body } = response;
  if (status !== 200 || body === null || typeOf(response) !== JSON_TYPE) return response;
  const bytes = new Uint8Array(await response.arrayBuffer());
  const { error } = bytes.length > ERROR_CHARACTERS ? {} : objectOf(parsedJson(bytes));
  const found = isObject(error) ? STATUSES[Number(error.code)] : undefined;
  return new Response(bytes, { status: found ?? status, headers });
}

/** Sends an answer. A client that reads nothing loses its connection. */
export async function sendResponse(
  to: ServerResponse,
  { status, headers, body }: Response,
  { unreadMs }: AnswerLimits,
): Promise<void> {
  const reader = body?.getReader();
  // A client that is gone ends what is made for it.
  to.once("close", () => void reader?.cancel().catch(() => {}));
  to.writeHead(status, Object.fromEntries(headers));
  to.flushHeaders();
  try {
    for (;;) {
      const { done = true, value } = await reader?.read() ?? {};
      if (done || to.destroyed) break;
      if (to.write(value)) continue;
      using _ = after(unreadMs, () => to.destroy());
      await Promise.race([once(to, "drain"), once(to, "close")]);
    }
  } catch {
    to.destroy();
  }
  to.end();
}

/**
 * Sends the answers of the door over HTTP.
 *
 * @module
 */

import { once } from "node:events";
import type { ServerResponse } from "node:http";
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

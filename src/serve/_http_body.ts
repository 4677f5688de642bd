/**
 * Reads the body of a request: one JSON text in UTF-8, within limits.
 *
 * @module
 */

import type { IncomingMessage } from "node:http";
import { excessOf } from "../core/json_bounds.ts";
import { parseJson } from "../core/parse_json.ts";
import { whyBroken } from "../io/listener.ts";
import { joined } from "../io/lines.ts";

/** A body that was read, or why the request is refused. */
export interface Body {
  readonly json?: unknown;
  readonly refused?: Refused;
}

interface Refused {
  readonly status: number;
  readonly why: string;
  /** The JSON-RPC code. */
  readonly code?: number | undefined;
}

const UTF_8 = new TextDecoder("utf-8", { fatal: true });
const JSON_TYPE = /^application\/json\s*(;|$)/i;

/** Reads the body of a request. It never throws. */
export async function readBody(
  request: IncomingMessage,
  { inputBytes }: { readonly inputBytes: number },
): Promise<Body> {
  const { "content-type": type = "", "content-encoding": encoding, "content-length": length } =
    request.headers;
  if (!JSON_TYPE.test(type.trim())) return refused(415, "its content type is not application/json");
  if (encoding !== undefined && encoding !== "identity") return refused(415, "it is compressed");
  const tooLarge = refused(413, `it has more than ${inputBytes} bytes`, -32600);
  if (Number(length) > inputBytes) return tooLarge;
  const parts: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const part of request as AsyncIterable<Uint8Array>) {
      size += part.length;
      if (size > inputBytes) return tooLarge;
      parts.push(part);
    }
  } catch (error) {
    return refused(...whyBroken(Object(error), "it broke off"));
  }
  return parsed(joined(parts));
}

function parsed(bytes: Uint8Array): Body {
  const excess = excessOf(bytes);
  if (excess !== undefined) return refused(400, excess, -32600);
  try {
    return { json: parseJson(UTF_8.decode(bytes)) };
  } catch {
    return refused(400, "it is not JSON in UTF-8", -32700);
  }
}

function refused(status: number, why: string, code?: number): Body {
  return { refused: { status, why, code } };
}

/**
 * Recognizes a server of MCP's older transport, HTTP+SSE.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { after } from "../io/waiting.ts";
import { EVENTS_TYPE, leave, typeOf } from "../io/event_stream.ts";

/** The first event of such a stream. It names the address for messages. */
const ENDPOINT = /^event: ?endpoint\r?$/m;
const MOST_CHARACTERS = 4_000;
const LOOK_MS = 3_000;

/** Returns an error if a `GET` shows that the address is one of the older transport. */
export async function olderTransport(
  name: string,
  { get, signal }: {
    readonly get: (signal: AbortSignal) => Promise<Response>;
    readonly signal: AbortSignal;
  },
): Promise<PmlError | undefined> {
  const over = new AbortController();
  using _ = after(LOOK_MS, () => over.abort());
  try {
    const stream = await get(AbortSignal.any([over.signal, signal]));
    const isStream = stream.ok && typeOf(stream) === EVENTS_TYPE;
    if (!isStream) await leave(stream);
    else if (await namesEndpoint(stream.body)) return unspoken(name);
  } catch {
    // It is only known that the handshake was refused.
  } finally {
    over.abort();
  }
  return undefined;
}

/** Reads the start of a stream. Returns whether it names an endpoint. */
async function namesEndpoint(body: ReadableStream<Uint8Array> | null): Promise<boolean> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (ENDPOINT.test(text)) return true;
    if (text.length > MOST_CHARACTERS) break;
  }
  return false;
}

function unspoken(name: string): PmlError {
  const why = "it speaks HTTP+SSE, an older transport of MCP that PML does not speak yet";
  return new PmlError("UPSTREAM_PROTOCOL", `Cannot use ${quoted(name)}: ${why}`, {
    hint: "Give its address for Streamable HTTP, if it has one: it often ends in /mcp, not in /sse",
    detail: { may_have_run: false },
  });
}

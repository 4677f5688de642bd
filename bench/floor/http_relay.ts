/**
 * A relay from stdio to an HTTP server that does the minimum of a gateway: it parses each message,
 * posts it with the headers of its revision, and writes the answer.
 *
 *     deno run -A bench/floor/http_relay.ts URL legacy|modern
 *
 * @module
 */

const [url = "", era = "legacy"] = Deno.args;
const MODERN = "2026-07-28";
const PREFIX = "io.modelcontextprotocol/";
const encoder = new TextEncoder();
const writer = Deno.stdout.writable.getWriter();
let session: string | null = null;

/** The members of a message that the relay reads. */
interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

const decoder = new TextDecoder();
let rest = "";
for await (const piece of Deno.stdin.readable) {
  const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) void relay(JSON.parse(line));
}

async function relay(message: Message): Promise<void> {
  const isModern = era === "modern";
  // The newest revision has no handshake, so the relay answers the client's handshake itself.
  if (isModern && message.method === "initialize") return write({ id: message.id, result: {} });
  if (isModern && message.id === undefined) return;
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": isModern ? MODERN : "2025-11-25",
      ...session !== null && { "mcp-session-id": session },
      ...isModern && {
        "mcp-method": message.method ?? "",
        "mcp-name": String(message.params?.name ?? ""),
      },
    },
    body: JSON.stringify(isModern ? withMeta(message) : message),
  });
  session ??= response.headers.get("mcp-session-id");
  const text = await response.text();
  if (message.id === undefined) return;
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
  const json = isStream ? /^data: ?(\{.*\})$/m.exec(text)?.[1] ?? "{}" : text;
  write({ ...JSON.parse(json), id: message.id });
}

function withMeta(message: Message): Message {
  const _meta = {
    [`${PREFIX}protocolVersion`]: MODERN,
    [`${PREFIX}clientInfo`]: { name: "relay", version: "1" },
    [`${PREFIX}clientCapabilities`]: {},
  };
  return { ...message, params: { ...message.params, _meta } };
}

function write(message: object): void {
  // The client may have disconnected.
  writer.write(encoder.encode(`${JSON.stringify(message)}\n`)).catch(() => {});
}

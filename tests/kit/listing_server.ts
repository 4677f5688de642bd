/**
 * An MCP server on stdio whose list of tools is the present content of a file, and a ledger: a file
 * that gets a line for each received method.
 *
 *     deno run -A listing_server.ts LIST LEDGER
 *
 * @module
 */

type Json = Readonly<Record<string, unknown>>;

/** The content of the file. */
export interface Listing {
  /** The pages of the list of tools. */
  readonly pages: readonly (readonly Json[])[];
  /** The behaviour of the list instead of a response: none, or endless pages, or an error. */
  readonly instead?: "hang" | "endless" | "refuse";
  /** How long the list stays current, over HTTP, in milliseconds. */
  readonly ttlMs?: number;
  /** The instructions of the server. */
  readonly instructions?: string;
  /** The resources; without them, the server has no such capability. */
  readonly resources?: readonly Json[];
}

/** Returns the result of `tools/list`; undefined if there is none. Throws if it is refused. */
export function listResult(
  { pages, instead, ttlMs }: Listing,
  params: Json = {},
): Json | undefined {
  if (instead === "hang") return undefined;
  if (instead === "refuse") throw new Error("no list today");
  const at = Number(params.cursor ?? 0);
  if (instead === "endless") return { tools: pages[0], nextCursor: String(at + 1) };
  const more = at + 1 < pages.length && { nextCursor: String(at + 1) };
  return { tools: pages[at] ?? [], ...more, ...ttlMs !== undefined && { ttlMs } };
}

/** Returns the result of a call: the name of its tool. */
export function callResult({ name }: Json = {}): Json {
  return { content: [{ type: "text", text: `ran ${name}` }] };
}

function note(ledger: string, line: string): void {
  Deno.writeTextFileSync(ledger, `${line}\n`, { append: true });
}

function send(message: object): void {
  const text = `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`;
  Deno.stdout.writeSync(new TextEncoder().encode(text));
}

function answer(method: string, params: Json | undefined, file: string): Json | undefined {
  const listing = (): Listing => JSON.parse(Deno.readTextFileSync(file));
  switch (method) {
    case "initialize": {
      const { instructions, resources } = listing();
      return {
        protocolVersion: "2025-11-25",
        capabilities: { tools: { listChanged: true }, ...resources && { resources: {} } },
        serverInfo: { name: "listing", version: "1" },
        instructions,
      };
    }
    case "resources/list":
      return { resources: listing().resources ?? [] };
    case "resources/templates/list":
      return { resourceTemplates: [] };
    case "tools/list":
      return listResult(listing(), params);
    case "tools/call":
      if (params?.name === "die") Deno.exit(3);
      if (params?.name === "changed") send({ method: "notifications/tools/list_changed" });
      return callResult(params);
    default:
      return {};
  }
}

function heard(line: string, file: string, ledger: string): void {
  const { id, method, params } = JSON.parse(line);
  note(ledger, method === "tools/call" ? `call ${params.name}` : method);
  if (id === undefined) return;
  try {
    const result = answer(method, params, file);
    if (result !== undefined) send({ id, result });
  } catch (error) {
    send({ id, error: { code: -32000, message: String(error) } });
  }
}

if (import.meta.main) {
  const [file = "", ledger = ""] = Deno.args;
  let rest = "";
  for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) heard(line, file, ledger);
  }
}

/**
 * A server that only answers from a table, over stdio or over HTTP.
 *
 *     deno run -A said_server.ts TABLE.json
 *
 * @module
 */

/**
 * The answers by method: a `result` or an `error`; several are used in turn, and the last is
 * repeated.
 */
export type Table = Readonly<Record<string, CannedResponse | readonly CannedResponse[]>>;

/** A JSON-RPC response, without its id. */
export type CannedResponse =
  /** A notification may follow, over stdio. */
  | { readonly result: unknown; readonly tells?: string }
  | { readonly error: { readonly code: number; readonly message: string } }
  /** A member of the received params, or `*` for all of them; as JSON unless it is a string. */
  | { readonly echo: string };

interface Request {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

const MODERN = "2026-07-28";
const ALL = { tools: {}, resources: { subscribe: true }, prompts: {}, completions: {} };

/**
 * Creates the function that answers the requests of one server; `tell` receives its notifications.
 */
export function answers(
  table: Table,
  tell: (method: string) => void = () => {},
): (request: Request) => object | undefined {
  const turns = new Map<string, number>();
  const greetings: Table = {
    initialize: {
      result: {
        protocolVersion: "2025-11-25",
        capabilities: ALL,
        serverInfo: { name: "said", version: "1" },
      },
    },
  };
  return ({ id, method = "", params = {} }) => {
    if (id === undefined) return undefined;
    const known = table[method] ?? greetings[method];
    const all = known === undefined ? [] : [known].flat();
    const turn = turns.get(method) ?? 0;
    turns.set(method, turn + 1);
    const missing = { error: { code: -32601, message: "Method not found" } };
    const said = all[Math.min(turn, all.length - 1)] ?? missing;
    if ("result" in said) {
      if (said.tells !== undefined) tell(said.tells);
      return { jsonrpc: "2.0", id, result: said.result };
    }
    if (!("echo" in said)) return { jsonrpc: "2.0", id, ...said };
    const value = said.echo === "*" ? params : params[said.echo];
    const text = typeof value === "object" ? JSON.stringify(value) : String(value);
    const content = [{ type: "text", text }];
    return { jsonrpc: "2.0", id, result: { content } };
  };
}

/** The part of a table that makes a server one of the newest revision only. */
export const NEWEST: Table = {
  initialize: { error: { code: -32601, message: "Method not found" } },
  "server/discover": { result: { supportedVersions: [MODERN], capabilities: ALL } },
};

/** Serves a table over Streamable HTTP, on a free port of 127.0.0.1. */
export function servedOverHttp(table: Table): Deno.HttpServer<Deno.NetAddr> {
  const answer = answers(table);
  return Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    if (request.method !== "POST") return new Response(null, { status: 405 });
    const said = answer(await request.json());
    return said === undefined ? new Response(null, { status: 202 }) : Response.json(said);
  });
}

if (import.meta.main) await serve(Deno.args[0] ?? "");

async function serve(file: string): Promise<void> {
  const answer = answers(
    JSON.parse(Deno.readTextFileSync(file)),
    (method) => queueMicrotask(() => write({ jsonrpc: "2.0", method })),
  );
  let rest = "";
  for await (const chunk of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) write(answer(JSON.parse(line)));
  }
}

function write(said: object | undefined): void {
  if (said === undefined) return;
  const bytes = new TextEncoder().encode(`${JSON.stringify(said)}\n`);
  for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
}

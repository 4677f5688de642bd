/**
 * One of the six invented MCP servers behind the pictures in the documentation, on stdio:
 * `deno run one_server.ts NAME`.
 *
 * @module
 */

import { ARGUMENTS, type PictureServer, type PictureTool, SERVERS } from "./servers.ts";

/** A request or a notification from the client. */
interface ClientMessage {
  readonly id?: number | string;
  readonly method: string;
  readonly params?: { readonly name?: string; readonly protocolVersion?: string };
}

if (import.meta.main) await serve(Deno.args[0] ?? "");

async function serve(name: string): Promise<void> {
  const tools = SERVERS[name];
  if (tools === undefined) throw new Error(`There is no server "${name}"`);
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of Deno.stdin.readable) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) answer(JSON.parse(line) as ClientMessage, { name, tools });
  }
}

function answer(
  { id, method, params = {} }: ClientMessage,
  { name, tools }: { readonly name: string; readonly tools: PictureServer },
): void {
  if (id === undefined) return;
  const results: Readonly<Record<string, () => unknown>> = {
    initialize: () => ({
      protocolVersion: params.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name, version: "1.0.0" },
    }),
    "tools/list": () => ({ tools: Object.entries(tools).map(toolOf) }),
    "tools/call": () => ({
      content: [{ type: "text", text: tools[params.name ?? ""]?.answers ?? "Done" }],
    }),
  };
  const result = results[method]?.();
  const outcome = result === undefined
    ? { error: { code: -32601, message: `There is no method "${method}"` } }
    : { result };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...outcome }));
}

function toolOf([name, { does, takes }]: readonly [string, PictureTool]): unknown {
  const names = takes.split(" ");
  // A "?" marks an optional argument.
  const withoutMark = (name: string) => name.replace("?", "");
  return {
    name,
    description: does,
    inputSchema: {
      type: "object",
      properties: Object.fromEntries(
        names.map(withoutMark).map((key) => [key, { type: "string", description: ARGUMENTS[key] }]),
      ),
      required: names.filter((name) => !name.endsWith("?")),
    },
    annotations: { readOnlyHint: /^(?:search|get|list|find|read|query|show)_/.test(name) },
  };
}

/**
 * One of the six MCP servers of the pictures, on stdio: `deno run one_server.ts NAME`.
 *
 * @module
 */

import { ARGUMENTS, type PictureServer, type PictureTool, SERVERS } from "./servers.ts";

/** A request or a notification of the client. */
interface Asked {
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
    for (const line of lines) answer(JSON.parse(line) as Asked, { name, tools });
  }
}

function answer(
  { id, method, params = {} }: Asked,
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
  const said = result === undefined
    ? { error: { code: -32601, message: `There is no method "${method}"` } }
    : { result };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...said }));
}

function toolOf([name, { does, takes }]: readonly [string, PictureTool]): unknown {
  const names = takes.split(" ");
  const bare = (each: string) => each.replace("?", "");
  return {
    name,
    description: does,
    inputSchema: {
      type: "object",
      properties: Object.fromEntries(
        names.map(bare).map((each) => [each, { type: "string", description: ARGUMENTS[each] }]),
      ),
      required: names.filter((each) => !each.endsWith("?")),
    },
    annotations: { readOnlyHint: /^(?:search|get|list|find|read|query|show)_/.test(name) },
  };
}

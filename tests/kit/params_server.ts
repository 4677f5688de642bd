/**
 * An MCP server on stdio that appends the params of each call to a file and returns them.
 *
 *     deno run -A params_server.ts FILE
 *
 * @module
 */

interface Message {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: object;
}

const [file = "/dev/null"] = Deno.args;
const TOOLS = ["change", "read"].map((name) => ({ name, inputSchema: { type: "object" } }));
const RESOURCES = [{ uri: "memo://a", name: "a" }];

if (import.meta.main) {
  let rest = "";
  for await (const chunk of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) take(JSON.parse(line));
  }
}

function take({ id, method, params }: Message): void {
  if (id === undefined) return;
  console.log(JSON.stringify({ jsonrpc: "2.0", id, result: resultOf(method, params) }));
}

function resultOf(method: string | undefined, params: object | undefined): unknown {
  switch (method) {
    case "initialize":
      return {
        protocolVersion: "2025-11-25",
        capabilities: { tools: {}, resources: {} },
        serverInfo: { name: "params", version: "1" },
      };
    case "tools/list":
      return { tools: TOOLS };
    case "resources/list":
      return { resources: RESOURCES };
    case "resources/read":
      note(params);
      return { contents: [{ uri: "memo://a", text: "a" }] };
    case "tools/call":
      note(params);
      return { content: [{ type: "text", text: JSON.stringify(params) }] };
    default:
      return {};
  }
}

function note(params: object | undefined): void {
  Deno.writeTextFileSync(file, `${JSON.stringify(params)}\n`, { append: true });
}

// A server on stdio without a library: its tool `tell` returns the text of its argument.
const INFO = { name: "tiny", version: "1" };
const TOOLS = [{ name: "tell", inputSchema: { type: "object" } }];

function resultOf(method, params) {
  switch (method) {
    case "initialize":
      return {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: INFO,
      };
    case "tools/list":
      return { tools: TOOLS };
    case "tools/call":
      return { content: [{ type: "text", text: String(params.arguments?.text) }] };
    default:
      return {};
  }
}

let rest = "";
process.stdin.on("data", (chunk) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop();
  let output = "";
  for (const { id, method, params } of lines.map((line) => JSON.parse(line))) {
    if (id === undefined) continue;
    output += JSON.stringify({ jsonrpc: "2.0", id, result: resultOf(method, params) }) + "\n";
  }
  if (output !== "") process.stdout.write(output);
});
process.stdin.on("end", () => process.exit(0));

// A server on stdio without a library: its tool `tell` gives its text back.
const INFO = { name: "tiny", version: "1" };
const TOOLS = [{ name: "tell", inputSchema: { type: "object" } }];

function answered(method, params) {
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
  let said = "";
  for (const { id, method, params } of lines.map((line) => JSON.parse(line))) {
    if (id === undefined) continue;
    said += JSON.stringify({ jsonrpc: "2.0", id, result: answered(method, params) }) + "\n";
  }
  if (said !== "") process.stdout.write(said);
});
process.stdin.on("end", () => process.exit(0));

/**
 * A server in plain JavaScript for node and Deno, in one text.
 *
 * @module
 */

/**
 * Returns a server whose only tool returns the value of an expression of its arguments, as JSON.
 */
export function tinyServer(expression: string): string {
  return `#!/usr/bin/env node
let rest = "";
process.stdin.on("data", async (chunk) => {
  rest += chunk;
  const lines = rest.split("\\n");
  rest = lines.pop();
  for (const { id, method, params } of lines.map((line) => JSON.parse(line))) {
    if (id === undefined) continue;
    const answer = { jsonrpc: "2.0", id };
    try {
      answer.result = method === "initialize"
        ? { protocolVersion: params.protocolVersion, capabilities: {}, serverInfo: { name: "t", version: "1" } }
        : method === "tools/list"
        ? { tools: [{ name: "tell", inputSchema: { type: "object" } }] }
        : { content: [{ type: "text", text: JSON.stringify(await (${expression})) }] };
    } catch (error) {
      answer.result = { isError: true, content: [{ type: "text", text: String(error.message) }] };
    }
    process.stdout.write(JSON.stringify(answer) + "\\n");
  }
});
process.stdin.on("end", () => process.exit(0));
`;
}

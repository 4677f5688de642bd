/**
 * A server in plain JavaScript, as the files of an npm package.
 *
 * @module
 */

/** Returns the files of a server whose tool `tell` returns the value of an expression. */
export function npmServer(
  text: string,
  more: Readonly<Record<string, unknown>> = {},
): Readonly<Record<string, string>> {
  return {
    "package.json": JSON.stringify({ bin: { tiny: "main.js" }, ...more }),
    "main.js": `#!/usr/bin/env node
let rest = "";
process.stdin.on("data", (chunk) => {
  rest += chunk;
  const lines = rest.split("\\n");
  rest = lines.pop();
  for (const { id, method, params } of lines.map((line) => JSON.parse(line))) {
    if (id === undefined) continue;
    const said = ${text};
    const result = method === "initialize"
      ? { protocolVersion: params.protocolVersion, capabilities: {}, serverInfo: { name: "t", version: "1" } }
      : method === "tools/list"
      ? { tools: [{ name: "tell", inputSchema: { type: "object" } }] }
      : { content: [{ type: "text", text: JSON.stringify(said) }] };
    process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
  }
});
process.stdin.on("end", () => process.exit(0));
`,
  };
}

/**
 * An MCP server of the SDK, on stdio and in both revisions, that returns the results of
 * `tests/fixtures/results`, and others that tests need.
 *
 * @module
 */

import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import process from "node:process";
import { brotliDecompressSync } from "node:zlib";

const file = new URL("../fixtures/results/bodies.json.br", import.meta.url);
const bodies: Readonly<Record<string, string>> = JSON.parse(
  new TextDecoder().decode(brotliDecompressSync(Deno.readFileSync(file))),
);
const [name = ""] = Deno.args;
const ITEMS = Array.from({ length: 2_000 }, (_, id) => ({ id, name: `item ${id}`, secret: "s" }));
const text = (value: string) => ({ type: "text" as const, text: value });
const LINES = Array.from({ length: 3_000 }, (_, at) => `line ${at + 1}`).join("\n");

/** The results by the names of the tools. */
const TOOLS: Readonly<Record<string, () => Record<string, unknown>>> = {
  lines: () => ({ content: [text(LINES)] }),
  middle: () => ({ content: [text(LINES.slice(0, 11_500))] }),
  failed: () => ({ content: [text(LINES)], isError: true }),
  items: () => ({ content: [text(JSON.stringify(ITEMS))] }),
  structured: () => ({ content: [text("2000 items")], structuredContent: { items: ITEMS } }),
  promised: () => ({ content: [text("2000 items")], structuredContent: { items: ITEMS } }),
  blocks: () => ({ content: ITEMS.map((one) => text(JSON.stringify(one))) }),
  picture: () => ({
    content: [text(LINES), { type: "image", data: "AA==", mimeType: "image/png" }],
  }),
  small: () => ({ content: [text('{"a": {"b": 1}, "c": [1, 2]}')] }),
  plain: () => ({ content: [text("no JSON")] }),
};

serveStdio(resultsServer);

function resultsServer(): McpServer {
  const server = new McpServer({ name: "results", version: "1.0.0" });
  server.server.registerCapabilities({ tools: {} });
  const inputSchema = { type: "object" };
  server.server.setRequestHandler("tools/list", () => ({
    tools: [...Object.keys(TOOLS), ...Object.keys(bodies)].map((name) => ({
      name,
      inputSchema: inputSchema as { type: "object" },
      ...name === "promised" && { outputSchema: inputSchema as { type: "object" } },
    })),
  }));
  server.server.setRequestHandler("tools/call", ({ params }) => {
    if (name !== "") Deno.writeTextFileSync(name, `${params.name}\n`, { append: true });
    const own = TOOLS[params.name]?.();
    return (own ?? { content: [text(bodies[params.name] ?? "")] }) as { content: [] };
  });
  return server;
}

process.on("SIGTERM", () => Deno.exit(0));
